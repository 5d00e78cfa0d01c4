package data

import (
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/trace"
)

// trackOf makes the track of a worker, nil where there is no trace.
func (c *workerConfig) trackOf(id int) *trace.Track {
	if c.Workers == 0 {
		return c.Trace.Track("loader")
	}
	return c.Trace.Track(fmt.Sprint("loader worker ", id))
}

// span adds what the worker has done since begin, and returns its end.
func (w *worker) span(name string, begin time.Time) time.Time {
	end := w.track.Now()
	w.track.Span(name, begin, end)
	return end
}

// waited ends a wait for a request, and returns its end. A consumer that loads by itself does other
// things meanwhile.
func (w *worker) waited() time.Time {
	if w.Workers == 0 {
		return w.track.Now()
	}
	return w.span("wait", w.idle)
}

// delivered ends the way of a result to the consumer.
func (w *worker) delivered() { w.idle = w.span("deliver", w.idle) }

// borrowTrack returns a track for a loop over batches. Loops at the same time have one each.
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
