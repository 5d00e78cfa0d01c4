package data

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// frame returns the frame of a batch. If it is in shared memory, it has that.
func (l *Loader) frame(lay layout, rows int, c crew) (*frame, error) {
	_, here := c.(*locals)
	if dev := lay.device(); dev != nil && l.opts.Kind == Processes && !here {
		return nil, apart(dev)
	}
	shared := !here && l.Kind() != Goroutines || l.inSharedMemory()
	f := planFrame(l, lay, rows, shared)
	if !shared {
		return f, nil
	}
	err := f.furnish()
	if errors.Is(err, shm.ErrNoSpace) && l.shed() {
		err = f.furnish()
	}
	if errors.Is(err, shm.ErrNoSpace) && !l.opts.Reuse {
		runtime.GC() // what it finds that nobody has, is given back some time after: a batch that has to wait tries again
		err = f.furnish()
	}
	return f, err
}

// inSharedMemory reports whether batches are to be there even if goroutines make them.
func (l *Loader) inSharedMemory() bool { return l.opts.Shared || l.opts.PinMemory }

// reuse gives a frame the memory of an earlier batch, if there is any that fits: of the last one, which is most likely in a cache.
func (l *Loader) reuse(f *frame) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range slices.Backward(l.idle) {
		if old.rows == f.rows && old.shared == f.shared && old.layout.equal(f.layout) {
			f.batch, f.block = old.batch, old.block
			l.idle = slices.Delete(l.idle, i, i+1)
			return true
		}
	}
	return false
}

// pin locks the pages of a batch, if that is wanted, and there is a device.
func (l *Loader) pin(b Batch) error {
	if !l.opts.PinMemory {
		return nil
	}
	for _, t := range b {
		if t.Device() != nil {
			continue
		}
		if err := t.PinMemory(); err != nil && !errors.Is(err, tensor.ErrDevice) {
			return fmt.Errorf("a batch: %w", err)
		}
	}
	return nil
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
	keep := f.batch != nil && l.closed.Err() == nil && len(l.idle) <= l.ahead() && !(f.shared && l.opts.Shared)
	if keep {
		l.idle = append(l.idle, f)
	}
	l.mu.Unlock()
	if !keep {
		closeAll(f.batch)
	}
}
