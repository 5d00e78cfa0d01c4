package data

import (
	"context"
)

// hire gives a window its crew.
func (l *Loader) hire(w *window) (err error) {
	if !l.opts.Persistent {
		w.crew, err = l.newCrew()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil && l.closed.Err() == nil {
		if l.kept, err = l.newCrew(); err != nil {
			l.kept = nil
			return err
		}
	}
	if w.crew = l.kept; w.crew == nil {
		return ErrClosed
	}
	return nil
}

func (l *Loader) newCrew() (crew, error) {
	s := station{
		Source: l.source, Workers: l.opts.Workers, Seed: l.opts.Seed, Retries: l.opts.Retries, Skip: l.opts.Skip != nil,
		Single: l.opts.BatchSize == Single, Shared: l.inSharedMemory(), Debug: l.opts.Debug, Ragged: l.opts.Ragged.rules(),
	}
	if l.opts.Transform != nil {
		s.Transform = l.opts.Transform
	}
	s.Collate = collateName(l.opts.Collate)
	kind, dev := Kind(l.kind.Load()), placeOf(l.source)
	if dev != nil && kind == Auto {
		kind = Goroutines
		l.choose(kind)
	}
	switch {
	case l.opts.Workers > 0 && kind == Processes && dev != nil:
		return nil, apart(dev)
	case l.opts.Workers > 0 && kind == Processes:
		return newProcesses(s, l.opts.Process)
	case l.opts.Workers > 0 && kind == Auto:
		return newAuto(l, s), nil
	}
	return newLocals(s), nil
}

// choose is what Auto has come to.
func (l *Loader) choose(k Kind) { l.kind.Store(uint32(k)) }

// dismiss is the end of a window, and of its crew unless that is kept.
func (l *Loader) dismiss(w *window, cancel context.CancelCauseFunc) {
	w.leave()
	cancel(nil)
	if !l.opts.Persistent {
		w.crew.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.window == w {
		l.window = nil
	}
}
