package data

import (
	"context"
	"sync"
)

// ahead yields the batches of chunks while goroutines make the next ones. Slots go round: free → jobs, where a worker fills
// them, and in the same order → line, where the consumer waits for each to be ready → free.
func (l *Loader) ahead(ctx context.Context, chunks [][]int, yield func(Batch, error) bool) {
	ctx, cancel := context.WithCancel(ctx)
	slots := l.take(l.opts.Prefetch + 1) // one is with the consumer
	free, line := make(chan *slot, len(slots)), make(chan *slot, len(slots))
	for _, s := range slots {
		free <- s
	}
	jobs := make(chan *slot)
	var loading sync.WaitGroup
	defer func() {
		cancel()
		loading.Wait()
		l.forget(slots)
		l.give(slots)
	}()
	loading.Go(func() { assign(ctx, chunks, free, jobs, line) })
	for range min(l.opts.Workers, len(chunks)) {
		loading.Go(func() {
			for s := range jobs {
				s.batch, s.err = l.load(ctx, s, s.indices)
				s.ready <- struct{}{}
			}
		})
	}
	delivered := 0
	for s := range line {
		<-s.ready // comes: what stands in line has been given to a worker
		if !yield(s.batch, s.err) || s.err != nil {
			return
		}
		delivered++
		free <- s
	}
	if delivered < len(chunks) {
		yield(nil, context.Cause(ctx))
	}
}

// assign gives every chunk a slot, the slot to a worker, and then a place in line.
func assign(ctx context.Context, chunks [][]int, free <-chan *slot, jobs, line chan<- *slot) {
	defer close(line)
	defer close(jobs)
	for _, indices := range chunks {
		var s *slot
		select {
		case s = <-free:
		case <-ctx.Done():
			return
		}
		s.indices = indices
		select {
		case jobs <- s:
		case <-ctx.Done():
			return
		}
		line <- s // never full: it has room for all slots
	}
}

// forget takes back what was made for a consumer who has left.
func (l *Loader) forget(slots []*slot) {
	for _, s := range slots {
		select {
		case <-s.ready:
			if l.opts.Shared {
				closeAll(s.batch)
			}
		default:
		}
		s.batch, s.err, s.indices = nil, nil, nil
	}
}
