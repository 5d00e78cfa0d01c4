package data

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A timeline publishes the activity of a Loader in shared memory, for shoal watch. It is always on
// if the program uses shared memory, because two records for each task of a worker cost less than a
// percent.
type timeline struct{ *arena.Timeline }

// MarshalWire sends the timeline to a worker process, which writes its own track.
func (t *timeline) MarshalWire(e *codec.Encoder) error {
	if err := t.Retain(); err != nil {
		return err
	}
	d, h := arena.Current(), t.Handle()
	e.OnDone(codec.WatcherFunc(func(bool) { d.Release(h) }))
	e.Block(h)
	return e.Err()
}

// UnmarshalWire opens a timeline sent by MarshalWire.
func (t *timeline) UnmarshalWire(d *codec.Decoder) error {
	h, err := d.Block()
	if err != nil {
		return err
	}
	here, err := arena.Default()
	if err != nil {
		return err
	}
	if t.Timeline, err = here.OpenTimeline(h); err != nil {
		here.Release(h)
		return err
	}
	d.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			t.Close()
		}
	}))
	return nil
}

// borrowTimeline returns the Loader's timeline for a loop over batches. It returns nil if another
// loop uses it, or if the program has no shared memory. The caller must pass the result to
// [Loader.returnTimeline].
func (l *Loader) borrowTimeline() *timeline {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown || l.closed.Err() != nil {
		return nil
	}
	if l.timeline == nil {
		l.timeline = l.newTimeline()
	}
	l.shown = l.timeline != nil
	return l.timeline
}

// newTimeline makes a timeline. It returns nil if the program has no shared memory domain,
// because a timeline alone is no reason to create one, or if the domain is full. The caller must
// hold l.mu.
func (l *Loader) newTimeline() *timeline {
	d := arena.Current()
	if d == nil && Kind(l.kind.Load()) == Processes && l.opts.Workers > 0 {
		d, _ = arena.Default() // the worker processes will use it
	}
	if d == nil {
		return nil
	}
	tracks := max(1, l.opts.Workers)
	if l.opts.Kind == Auto {
		tracks *= kinds
	}
	t, err := d.NewTimeline(l.opts.Workers, tracks)
	if err != nil { // out of space; a missing timeline is not an error
		return nil
	}
	return &timeline{t}
}

func (l *Loader) returnTimeline(t *timeline) {
	if t == nil {
		return
	}
	l.mu.Lock()
	l.shown = false
	l.mu.Unlock()
	if l.closed.Err() != nil {
		l.endTimeline()
	}
}

// endTimeline closes the timeline, unless a loop or a worker may still use it. The caller must
// not hold l.mu.
func (l *Loader) endTimeline() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timeline; t != nil && !l.shown && l.kept == nil && l.ending == 0 {
		l.timeline = nil
		t.Close()
	}
}

// beginTrack begins to write a track: 0 for the consumer, 1 and up for workers. It returns nil,
// which discards all records, if t is nil.
func (t *timeline) beginTrack(track int) *arena.Track {
	if t == nil {
		return nil
	}
	return t.Track(track, time.Now())
}

// clockTime returns the time of the machine's monotonic clock in nanoseconds, or 0 if t is nil.
func (t *timeline) clockTime() int64 {
	if t == nil {
		return 0
	}
	return t.Clock(time.Now())
}

// batchKey returns the key of a batch on a timeline, with the epoch in the upper and the number
// in the lower half.
func batchKey(epoch, number int) uint64 { return uint64(epoch&0xffffff)<<32 | uint64(uint32(number)) }

// recordTimes records the times of a batch on the timeline, if there is one. The consumer began
// to wait at begin and received the batch at taken.
func (p *prefetcher) recordTimes(b *batchState, begin, taken time.Time) {
	if t := p.timeline; t != nil {
		t.Passed(arena.Passage{Batch: batchKey(p.epoch, b.number), Asked: b.asked, Began: b.began, Ready: b.done,
			Want: t.Clock(begin), Taken: t.Clock(taken)})
	}
}
