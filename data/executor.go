package data

import "context"

// An executor runs the fetches of a Loader on its workers. For each submitted fetch it calls
// [prefetcher.completeFetch] exactly once, possibly before submit returns and at the latest before
// close returns.
type executor interface {
	submit(f *fetch)
	runOne() bool   // runs one fetch in the caller's goroutine, if there are no workers
	isBroken() bool // reports whether the workers are gone and fetches can only fail
	close()
}

// startExecutor sets the prefetcher's executor: a new one, or the kept one if Options.Persistent
// is set. It returns [ErrClosed] if a Persistent Loader was closed, and an error that wraps
// [ErrPlace] for samples on a device with worker processes.
func (l *Loader) startExecutor(p *prefetcher) (err error) {
	if !l.opts.Persistent {
		p.executor, err = l.newExecutor(p.timeline)
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept != nil && l.kept.isBroken() {
		l.ending++
		go func(kept executor) { // its workers are gone; epochs that use it still get their results
			kept.close()
			l.mu.Lock()
			l.ending--
			l.mu.Unlock()
			if l.closed.Err() != nil {
				l.endTimeline()
			}
		}(l.kept)
		l.kept = nil
	}
	if l.kept == nil && l.closed.Err() == nil {
		if l.kept, err = l.newExecutor(p.timeline); err != nil {
			l.kept = nil
			return err
		}
	}
	if p.executor = l.kept; p.executor == nil {
		return ErrClosed
	}
	return nil
}

func (l *Loader) newExecutor(t *timeline) (executor, error) {
	if l.elsewhere != nil {
		return l.elsewhere(), nil
	}
	c := workerConfig{
		Source: l.source, Workers: l.opts.Workers, Seed: l.opts.Seed, Retries: l.opts.Retries,
		Skip: l.opts.Skip != nil, Single: l.opts.BatchSize == Single, Shared: l.needsSharedMemory(),
		Debug: l.opts.Debug, Ragged: l.opts.Ragged.rulesByName(), Collate: collateName(l.opts.Collate),
		Trace:    l.opts.Trace,
		Timeline: t,
	}
	if l.opts.Transform != nil {
		c.Transform = l.opts.Transform
	}
	kind, dev := Kind(l.kind.Load()), deviceOf(l.source)
	if dev != nil && kind == Auto {
		kind = Goroutines
		l.setKind(kind)
	}
	switch {
	case l.opts.Workers > 0 && kind == Processes && dev != nil:
		return nil, deviceError(dev)
	case l.opts.Workers > 0 && kind == Processes:
		return newProcessExecutor(c, l.opts.Process)
	case l.opts.Workers > 0 && kind == Auto:
		return newAutoExecutor(l, c), nil
	}
	return newGoroutineExecutor(c), nil
}

// setKind sets the kind of workers that the Loader uses.
func (l *Loader) setKind(k Kind) { l.kind.Store(uint32(k)) }

// endPrefetcher ends the loop of p: it discards the batches that the consumer has not received,
// cancels p's context with cancel, and closes the executor unless Options.Persistent is set.
// Only the consumer's goroutine may call it.
func (l *Loader) endPrefetcher(p *prefetcher, cancel context.CancelCauseFunc) {
	p.endConsumer()
	cancel(nil)
	if !l.opts.Persistent {
		p.executor.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.prefetcher == p {
		l.prefetcher = nil
	}
}
