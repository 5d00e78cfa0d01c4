package trace

import (
	"strings"
	"time"
)

// A Track is a timeline in the viewer, for the activities of one goroutine. Use [Trace.Track] to
// create one. Its methods may be called from several goroutines, and on nil.
type Track struct {
	t  *Trace
	id int32
}

// Now returns the current time, or the zero time if k is nil.
func (k *Track) Now() time.Time {
	if k == nil {
		return time.Time{}
	}
	return time.Now()
}

// Span records an activity that lasted from begin to end. It is a no-op if k is nil, if either
// time is the zero time, or if the Trace is closed. begin and end should be results of
// [Track.Now] in this process, because the conversion uses its monotonic clock. Only the first
// 200 bytes of the name are recorded.
func (k *Track) Span(name string, begin, end time.Time) {
	if k == nil || begin.IsZero() || end.IsZero() {
		return
	}
	k.t.addSpan(span{k.id, shortenName(name), k.t.monotonicTime(begin), k.t.monotonicTime(end)})
}

// monotonicTime converts at, a time that this process has read, to nanoseconds on the machine's
// monotonic clock.
func (t *Trace) monotonicTime(at time.Time) int64 { return t.at + int64(at.Sub(t.zero)) }

// longest is the maximum length of a name in bytes; longer names are truncated.
const longest = 200

func shortenName(name string) string {
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "?")
}
