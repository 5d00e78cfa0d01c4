package data

import (
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/trace"
)

// trackOf returns the trace track of worker id, or nil without a trace.
func (c *workerConfig) trackOf(id int) *trace.Track {
	if c.Workers == 0 {
		return c.Trace.Track("loader")
	}
	return c.Trace.Track(fmt.Sprint("loader worker ", id))
}

// recordSpan records a span from begin until now, and returns its end.
func (w *worker) recordSpan(name string, begin time.Time) time.Time {
	end := w.track.Now()
	w.track.Span(name, begin, end)
	return end
}

// recordWait records the wait for a request, and returns its end. Without workers nothing is
// recorded, because the consumer does other work between requests.
func (w *worker) recordWait() time.Time {
	if w.Workers == 0 {
		return w.track.Now()
	}
	return w.recordSpan("wait", w.idle)
}

// recordDeliver records the delivery of a result, from the end of loading until now.
func (w *worker) recordDeliver() { w.idle = w.recordSpan("deliver", w.idle) }

// borrowTrack returns a track for a loop over batches, or nil, which records nothing, without a
// trace. Concurrent loops get different tracks. The caller must return it with
// [Loader.returnTrack].
func (l *Loader) borrowTrack() *trace.Track {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.tracks)
	if n == 0 {
		return l.opts.Trace.Track("batches")
	}
	k := l.tracks[n-1]
	l.tracks = l.tracks[:n-1]
	return k
}

func (l *Loader) returnTrack(k *trace.Track) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracks = append(l.tracks, k)
}
