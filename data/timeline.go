package data

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A timeline is what others see of a Loader: shoal watch draws it. It is there wherever the program
// has shared memory: two notes for each task of a worker cost less than a percent.
type timeline struct{ *arena.Timeline }

// MarshalWire lets a worker that is a process write its track.
func (t *timeline) MarshalWire(e *codec.Encoder) error {
	if err := t.Retain(); err != nil {
		return err
	}
	d, h := arena.Current(), t.Handle()
	e.OnDone(codec.WatcherFunc(func(bool) { d.Release(h) }))
	e.Block(h)
	return e.Err()
}

// UnmarshalWire is the counterpart of MarshalWire.
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

// borrowTimeline returns the timeline of a Loader for a loop over batches, nil where another loop
// has it, or where there is no shared memory that others could look at.
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

// newTimeline makes one. A program that has no shared memory does not get any for it.
func (l *Loader) newTimeline() *timeline {
	d := arena.Current()
	if d == nil && Kind(l.kind.Load()) == Processes && l.opts.Workers > 0 {
		d, _ = arena.Default() // which the workers take part in
	}
	if d == nil {
		return nil
	}
	tracks := max(1, l.opts.Workers)
	if l.opts.Kind == Auto {
		tracks *= kinds
	}
	t, err := d.NewTimeline(l.opts.Workers, tracks)
	if err != nil { // there is no room: to be seen is worth no error
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

// endTimeline lets go of the timeline, unless a loop or a worker may have it.
func (l *Loader) endTimeline() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.timeline; t != nil && !l.shown && l.kept == nil && l.ending == 0 {
		l.timeline = nil
		t.Close()
	}
}

// show begins to write a track, the consumer's if it is 0.
func (t *timeline) show(track int) *arena.Track {
	if t == nil {
		return nil
	}
	return t.Track(track, time.Now())
}

// clock returns the time on the clock of the machine, 0 where there is no timeline.
func (t *timeline) clock() int64 {
	if t == nil {
		return 0
	}
	return t.Clock(time.Now())
}

// batchKey names a batch on a timeline.
func batchKey(epoch, number int) uint64 { return uint64(epoch&0xffffff)<<32 | uint64(uint32(number)) }

// passed notes the way of a batch that the consumer has taken.
func (p *prefetcher) passed(b *batchState, begin, taken time.Time) {
	if t := p.timeline; t != nil {
		t.Passed(arena.Passage{Batch: batchKey(p.epoch, b.number), Asked: b.asked, Began: b.began, Ready: b.done,
			Want: t.Clock(begin), Taken: t.Clock(taken)})
	}
}
