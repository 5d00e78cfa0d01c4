package data

import (
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/shm"
)

// advance begins a batch, if the window has room, and has unlock go on with the next. mu is held.
func (w *window) advance() {
	for _, s := range w.line {
		if !s.begun && !w.begin(s) {
			return
		}
	}
	if w.left || w.over || len(w.line) >= w.l.ahead() || !w.room() {
		return
	}
	s, ok := w.plan.next()
	if !ok {
		w.over = true
		return
	}
	w.line = append(w.line, s)
	w.more = w.begin(s)
}

// room reports whether another batch may be begun as far as bytes go. mu is held.
func (w *window) room() bool {
	switch {
	case len(w.line) == 0:
		return true
	case w.fills() && w.layout == nil:
		return false
	case w.usual == 0:
		return len(w.line) < w.l.opts.Workers
	}
	return w.bytes+w.usual <= w.l.opts.PrefetchBytes
}

// weigh notes how many bytes a batch has. mu is held.
func (w *window) weigh(s *slot, n int) {
	w.bytes += n - s.bytes
	s.bytes = n
}

// begin has a batch made, and reports whether others may be begun. mu is held.
func (w *window) begin(s *slot) bool {
	if s.progress != nil {
		if s.before != nil && !s.before.ready {
			return true // its turn comes
		}
		s.before, s.begun, s.from = nil, true, s.progress.read
		if s.progress.end {
			w.complete(s)
			return true
		}
		w.weigh(s, w.usual)
		w.send(&job{s: s, n: s.size, kind: makeJob})
		return true
	}
	if len(s.indices) == 0 {
		s.begun, s.err = true, fmt.Errorf("%w: the BatchSampler asks for batch %d of epoch %d without a sample", ErrEmptyBatch, s.number, w.epoch)
		w.complete(s)
		return true
	}
	if !w.fills() {
		s.begun, s.other = true, false
		w.weigh(s, w.usual)
		w.send(&job{s: s, n: len(s.indices), kind: makeJob})
		return true
	}
	if w.layout == nil || s.other {
		s.begun, s.other, s.sure = true, false, true
		w.send(&job{s: s, n: 1, kind: probeJob})
		return w.layout != nil
	}
	err := w.allot(s, 0)
	if errors.Is(err, shm.ErrNoSpace) && w.line[0] != s {
		return false // there will be some when those before it are consumed
	}
	if s.begun = true; err != nil {
		s.err = err
		w.complete(s)
	}
	return true
}

// allot gives a batch its frame and has it filled from row from on. mu is held.
func (w *window) allot(s *slot, from int) error {
	f, err := w.l.frame(w.layout, len(s.indices), w.crew)
	if err != nil {
		return err
	}
	s.frame, s.spec, s.like = f, w.spec, w.like
	w.usual = f.size
	w.weigh(s, f.size)
	if n := len(s.indices) - from; n > 0 {
		parts := (n + w.chunk(n) - 1) / w.chunk(n)
		for k := range parts {
			at := from + k*n/parts
			w.send(&job{s: s, from: at, n: from + (k+1)*n/parts - at, kind: fillJob})
		}
	}
	return nil
}

// chunk is how many samples a worker gets at once, of n: so many that handing them out costs little of its time, and no more, so that
// others can take what is behind a slow one. mu is held.
func (w *window) chunk(n int) int {
	if w.l.opts.Workers == 0 || w.cost == 0 {
		return max(1, n)
	}
	unit := goroutineUnit
	if w.l.opts.Kind != Goroutines {
		unit = processUnit
	}
	return min(max(1, int(unit/w.cost)), n)
}

// How long what a worker gets at once should take it.
const (
	goroutineUnit = 50 * time.Microsecond
	processUnit   = 250 * time.Microsecond
)

func (w *window) send(j *job) {
	j.w = w
	j.s.open++
	w.out = append(w.out, j)
}
