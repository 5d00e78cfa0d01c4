package trace

import (
	"strings"
	"time"
)

// A Track is a line of the picture: what one goroutine does. Track makes it. Its methods may be
// called by several goroutines, and for nil.
type Track struct {
	t  *Trace
	id int32
}

// Now returns the time, or no time where there is no trace.
func (k *Track) Now() time.Time {
	if k == nil {
		return time.Time{}
	}
	return time.Now()
}

// Span adds what was done from begin to end. It does nothing where one of them is no time.
func (k *Track) Span(name string, begin, end time.Time) {
	if k == nil || begin.IsZero() || end.IsZero() {
		return
	}
	k.t.add(span{k.id, short(name), k.t.clock(begin), k.t.clock(end)})
}

// clock returns a time of this process on the clock of the machine.
func (t *Trace) clock(at time.Time) int64 { return t.at + int64(at.Sub(t.zero)) }

// longest is how many bytes of a name are kept.
const longest = 200

func short(name string) string {
	if len(name) > longest {
		name = name[:longest]
	}
	return strings.ToValidUTF8(name, "?")
}
