package data

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/shm"
)

// frame returns memory for a batch, of an earlier one if it fits.
func (l *Loader) frame(lay layout, rows int, c crew) (*frame, error) {
	_, here := c.(*locals)
	shared := !here && l.Kind() != Goroutines || l.opts.Shared && l.opts.Transform == nil
	l.mu.Lock()
	i := slices.IndexFunc(l.idle, func(f *frame) bool { return f.rows == rows && f.shared == shared && f.layout.equal(lay) })
	if i >= 0 {
		f := l.idle[i]
		l.idle = slices.Delete(l.idle, i, i+1)
		l.mu.Unlock()
		return f, nil
	}
	l.mu.Unlock()
	if !shared {
		return planFrame(lay, rows, false), nil
	}
	f, err := newFrame(lay, rows, shared)
	if errors.Is(err, shm.ErrNoSpace) && l.shed() {
		f, err = newFrame(lay, rows, shared)
	}
	return f, err
}

// shed closes the frames that are kept for later, and reports whether there were any.
func (l *Loader) shed() bool {
	l.mu.Lock()
	idle := l.idle
	l.idle = nil
	l.mu.Unlock()
	for _, f := range idle {
		f.end()
	}
	return len(idle) > 0
}

// forget takes back a batch that nobody has any more. It keeps its memory, unless parts of it are gone.
func (l *Loader) forget(s *slot) {
	if s.frame == nil || len(s.bad) > 0 {
		closeAll(s.batch)
	}
	if s.frame != nil && len(s.bad) > 0 {
		closeAll(s.frame.batch)
	} else if s.frame != nil {
		l.recycle(s.frame)
	}
	s.frame, s.batch = nil, nil
}

// recycle keeps a frame for later, unless its batch would be the consumer's.
func (l *Loader) recycle(f *frame) {
	l.mu.Lock()
	keep := l.closed.Err() == nil && len(l.idle) <= l.ahead() && !(f.shared && l.opts.Shared)
	if keep {
		l.idle = append(l.idle, f)
	}
	l.mu.Unlock()
	if !keep {
		closeAll(f.batch)
	}
}

// transform makes of a slot's batch what the consumer gets.
func (l *Loader) transform(s *slot) error {
	var last = new(frame)
	if s.frame != nil {
		last = s.frame
	}
	images := l.opts.Transform(last.transformed, s.batch[0])
	if !images.SameStorage(s.batch[0]) {
		last.transformed = images
	}
	s.batch[0] = images
	if !l.opts.Shared {
		return nil
	}
	lay, rows := layoutOf(s.batch, 0), single
	f, err := newFrame(lay, rows, true)
	if err != nil {
		return fmt.Errorf("share a transformed batch: %w", err)
	}
	for k, t := range s.batch {
		f.batch[k].CopyFrom(t)
	}
	s.batch = f.batch
	if s.frame != nil {
		l.recycle(s.frame)
		s.frame = nil
	}
	return nil
}
