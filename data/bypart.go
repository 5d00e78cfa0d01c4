package data

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// mostOpen is the maximum number of open parts of one loop, unless Options.Parts is larger.
const mostOpen = 4096

// A byPart makes the batches of a Stream for a loop in another process. It has its own workers,
// because the position in each part belongs to the loop.
type byPart struct {
	m     *byNumber
	ctx   context.Context // of all reads; workers keep a part open while the context is the same
	end   context.CancelCauseFunc
	begun prints

	mu       sync.Mutex
	executor executor
	open     map[int]bool // parts that were requested
	reading  sync.WaitGroup
}

// Reader begins a loop over a Stream. Workers start with the first Read, which fails if the
// Loader is one of a Dataset. The caller must close the Reader.
func (m *byNumber) Reader() maker.Reader {
	r := &byPart{m: m, open: make(map[int]bool)}
	r.ctx, r.end = context.WithCancelCause(m.l.closed)
	return r
}

var errNumbers = errors.New("data: batches and samples of a Stream have no indices")

// Read makes the batch of a portion, as [maker.Reader] describes. If the part had ended before,
// the batch is empty and has End set. If ctx ends during a call, the whole loop ends with its
// cause. Read returns [ErrClosed] after Close.
func (r *byPart) Read(ctx context.Context, of maker.Portion) (none maker.Batch, err error) {
	x, err := r.ensureExecutor(of)
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
	defer p.endConsumer()
	b, err := p.takeBatch()
	switch {
	case err != nil:
		return none, err
	case b == nil: // the part had ended before
		return maker.Batch{End: true}, nil
	}
	return r.m.convertBatch(b)
}

// ensureExecutor checks a portion and returns the executor. It starts workers for the first
// portion, and again if they are broken. It returns an error if the portion is invalid, if too
// many parts are open, or, with its cause, if the loop has ended. If err is nil, the caller must
// call r.reading.Done.
func (r *byPart) ensureExecutor(of maker.Portion) (x executor, err error) {
	l := r.m.l
	if !l.isStream() {
		return nil, errors.New("data: a Dataset has no parts, only a Stream")
	}
	if of.Epoch < 0 || of.Count < 1 || of.Count > maxParts || of.Part < 0 || of.Part >= of.Count || of.From < 0 ||
		of.N < 1 || of.N > max(1, l.opts.BatchSize) || of.N > math.MaxInt-of.From {
		return nil, fmt.Errorf("data: invalid portion %+v", of)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	if r.open[of.Part] = true; len(r.open) > max(mostOpen, l.opts.Parts) {
		return nil, fmt.Errorf("data: too many open parts: %d", len(r.open))
	}
	if r.executor != nil && r.executor.isBroken() {
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

// Close makes running and later reads fail with [ErrClosed], waits for running ones, and stops
// the workers.
func (r *byPart) Close() error {
	r.end(ErrClosed)
	r.mu.Lock()
	x := r.executor
	r.executor = nil
	r.mu.Unlock()
	r.reading.Wait() // without workers, Read runs the executor in its own goroutine
	if x != nil {
		x.close()
	}
	return nil
}
