package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// mostOpen is how many parts one loop may have open, unless the Loader has more.
const mostOpen = 4096

// A byPart makes the batches of a Stream for a loop that is elsewhere, with workers of its own:
// they are where that loop is.
type byPart struct {
	m     *byNumber
	ctx   context.Context // of all that is read: workers keep a part open as long as it is the same
	end   context.CancelCauseFunc
	begun prints

	mu       sync.Mutex
	executor executor
	open     map[int]bool // parts that were asked for
	reading  sync.WaitGroup
}

// Reader begins a loop over an epoch. It has no workers before the first Read.
func (m *byNumber) Reader() maker.Reader {
	r := &byPart{m: m, open: make(map[int]bool)}
	r.ctx, r.end = context.WithCancelCause(m.l.closed)
	return r
}

var errNumbers = errors.New("data: the batches and samples of a Stream have no numbers")

// Read makes a batch of a portion.
func (r *byPart) Read(ctx context.Context, of maker.Portion) (none maker.Batch, err error) {
	x, err := r.staff(of)
	if err != nil {
		return none, err
	}
	defer r.reading.Done()
	defer context.AfterFunc(ctx, func() { r.end(context.Cause(ctx)) })()
	l := r.m.l
	if l.opts.Workers == 0 {
		r.m.alone.Lock()
		defer r.m.alone.Unlock()
	}
	part := &progress{index: of.Part, read: of.From}
	asked := &batchState{portion: portion{part: Part{of.Part, of.Count}, progress: part, size: of.N}}
	p := &prefetcher{l: l, ctx: r.ctx, epoch: of.Epoch, executor: x, wake: make(chan struct{}, 1), prints: &r.begun,
		plan: &planOne{asked}}
	defer p.leave()
	b, err := p.take()
	switch {
	case err != nil:
		return none, err
	case b == nil: // nothing was left
		return maker.Batch{End: true}, nil
	}
	return r.m.settled(b)
}

// staff returns the workers, who are hired for the first portion, and again if they have died.
func (r *byPart) staff(of maker.Portion) (x executor, err error) {
	l := r.m.l
	if !l.streams() {
		return nil, errors.New("data: a Dataset has no parts")
	}
	if of.Epoch < 0 || of.Count < 1 || of.Count > maxParts || of.Part < 0 || of.Part >= of.Count || of.From < 0 ||
		of.N < 1 || of.N > max(1, l.opts.BatchSize) || of.N > math.MaxInt-of.From {
		return nil, fmt.Errorf("data: there is no portion %+v", of)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if r.open[of.Part] = true; len(r.open) > max(mostOpen, l.opts.Parts) {
		return nil, fmt.Errorf("data: a loop has %d parts open", len(r.open))
	}
	if r.executor != nil && r.executor.broken() {
		r.reading.Go(r.executor.close)
		r.executor = nil
	}
	if r.executor == nil {
		if x, err = l.newExecutor(nil); err != nil {
			return nil, err
		}
		r.executor = x
	}
	r.reading.Add(1)
	return r.executor, nil
}

// Close ends the workers.
func (r *byPart) Close() error {
	r.end(ErrClosed)
	r.mu.Lock()
	x := r.executor
	r.executor = nil
	r.mu.Unlock()
	r.reading.Wait() // without workers the executor is the reader's
	if x != nil {
		x.close()
	}
	return nil
}
