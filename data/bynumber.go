package data

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/data/internal/maker"
)

// ordersKept is the number of epochs with a cached order. Trainers may be in different epochs.
const ordersKept = 4

// A byNumber implements [maker.Maker]. It makes single batches of a Loader in any order and
// concurrently, with workers that persist. A batch does not depend on the batches made before it.
// Batches of a Stream have no numbers; they are made by byPart.
type byNumber struct {
	l     *Loader    // copy of the user's Loader, with batches in shared memory
	alone sync.Mutex // serializes callers if there are no workers
	skips sync.Mutex // serializes calls of Skip, which need not be safe for concurrent use

	mu       sync.Mutex
	executor executor
	closed   bool
	orders   []*epochOrder // cache; most recently used last
	known    lastLayout
}

// A lastLayout is the layout learned from the previous batch.
type lastLayout struct {
	layout     layout
	spec, like string
	loose      bool
}

// An epochOrder lists the samples of each batch of an epoch.
type epochOrder struct {
	epoch   int
	once    sync.Once
	all     []int // order of a Sampler
	size    int
	batches [][]int // batches of a BatchSampler
}

func newByNumber(of *Loader) (*byNumber, error) {
	if of.opts.World > 1 {
		return nil, fmt.Errorf("got a Loader with World %d, want 0 or 1: set World in the trainers instead",
			of.opts.World)
	}
	opts := of.opts
	opts.Shared, opts.Reuse, opts.PinMemory, opts.AsReady = true, false, false, false
	m := &byNumber{l: newLoader(of.source, opts)}
	m.l.sampler = of.sampler
	return m, nil
}

// Workers returns the number of workers.
func (m *byNumber) Workers() int { return m.l.opts.Workers }

// Identity returns the parameters that determine the batches.
func (m *byNumber) Identity() maker.Identity {
	id := maker.Identity{Seed: m.l.opts.Seed}
	if m.l.opts.Batches == nil {
		id.BatchSize = m.l.opts.BatchSize
	}
	set, ok := m.l.source.(Dataset)
	if !ok {
		id.Parts, id.DropLast = m.l.opts.Parts, m.l.opts.DropLast
		return id
	}
	id.Batches, id.Samples = m.l.Len(), set.Len()
	h := fnv.New64a()
	var b []byte
	o := m.epochOrder(0)
	for n := range id.Batches {
		b = b[:0]
		for _, i := range o.batchIndices(n) {
			b = binary.LittleEndian.AppendUint64(b, uint64(i))
		}
		h.Write(append(b, '\n'))
	}
	id.Order = h.Sum64()
	return id
}

// epochOrder returns the order of an epoch, from the cache if possible.
func (m *byNumber) epochOrder(epoch int) *epochOrder {
	m.mu.Lock()
	at := slices.IndexFunc(m.orders, func(o *epochOrder) bool { return o.epoch == epoch })
	o := &epochOrder{epoch: epoch, size: max(1, m.l.opts.BatchSize)}
	if at >= 0 {
		o = m.orders[at]
		m.orders = slices.Delete(m.orders, at, at+1)
	}
	if m.orders = append(m.orders, o); len(m.orders) > ordersKept {
		m.orders = slices.Delete(m.orders, 0, 1)
	}
	m.mu.Unlock()
	o.once.Do(func() {
		if m.l.opts.Batches != nil {
			o.batches = m.l.opts.Batches.Batches(epoch)
		} else {
			o.all = m.l.sampler.Order(epoch)
		}
	})
	return o
}

// batchIndices returns the indices of the samples of batch n, which must be in range. The caller
// must not modify them. epochOrder must have filled o.
func (o *epochOrder) batchIndices(n int) []int {
	if o.batches != nil {
		return o.batches[n]
	}
	return o.all[n*o.size : min((n+1)*o.size, len(o.all))]
}

// Batch makes the batch with the given number in an epoch, as [maker.Maker] describes. The error
// is a [*SampleError] for a sample that failed and was not skipped. It wraps [ErrClosed] after
// Close, and [ErrEmptyBatch] if a BatchSampler lists no samples.
func (m *byNumber) Batch(ctx context.Context, epoch, number int) (b maker.Batch, err error) {
	var indices []int
	err = recoverPanic(func() error { // samplers are user code, which may panic
		n := m.l.Len()
		if n < 0 {
			return errNumbers
		}
		if epoch < 0 || number < 0 || number >= n {
			return fmt.Errorf("data: batch %d of epoch %d is out of range [0, %d)", number, epoch, n)
		}
		indices = m.epochOrder(epoch).batchIndices(number)
		return nil
	})
	if err != nil {
		return maker.Batch{}, err
	}
	return m.makeBatch(ctx, epoch, number, indices)
}

// Gather makes a batch of the samples with the given indices, as [maker.Maker] describes. Errors
// are as with Batch.
func (m *byNumber) Gather(ctx context.Context, epoch int, indices []int) (maker.Batch, error) {
	set, ok := m.l.source.(Dataset)
	if !ok {
		return maker.Batch{}, errNumbers
	}
	n := set.Len()
	if slices.ContainsFunc(indices, func(i int) bool { return i < 0 || i >= n }) {
		return maker.Batch{}, fmt.Errorf("data: samples %v are out of range [0, %d)", indices, n)
	}
	return m.makeBatch(ctx, epoch, 0, indices)
}

func (m *byNumber) makeBatch(ctx context.Context, epoch, number int, indices []int) (none maker.Batch, err error) {
	if m.l.opts.Workers == 0 {
		m.alone.Lock()
		defer m.alone.Unlock()
	}
	x, known, err := m.ensureExecutor()
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.l.closed, func() { cancel(ErrClosed) })()
	p := &prefetcher{l: m.l, ctx: ctx, epoch: epoch, executor: x, wake: make(chan struct{}, 1),
		layout: known.layout, spec: known.spec, like: known.like, loose: known.loose,
		plan: &planOne{&batchState{indices: indices, number: number}}}
	defer p.endConsumer()
	b, err := p.takeBatch()
	if err != nil {
		return none, err
	}
	if b == nil {
		return none, fmt.Errorf("%w: batch %d of epoch %d", ErrEmptyBatch, number, epoch)
	}
	m.recordLayout(p)
	return m.convertBatch(b)
}

// convertBatch calls Skip for failed samples and returns the batch, without tensors if all
// samples were skipped. The caller must close it. If the batch has failed, or if Skip does not
// accept a sample, it recycles b and returns the error.
func (m *byNumber) convertBatch(b *batchState) (maker.Batch, error) {
	m.skips.Lock()
	defer m.skips.Unlock()
	var n int
	err := recoverPanic(func() (err error) {
		n, err = m.l.skipFailed(b)
		return err
	})
	if err != nil {
		m.l.recycleBatch(b)
		return maker.Batch{}, err
	}
	made := maker.Batch{Samples: n, Read: b.read, End: b.end}
	if n == 0 {
		m.l.recycleBatch(b)
		return made, nil
	}
	made.Value = b.structuredBatch()
	return made, nil
}

// ensureExecutor returns the executor, which m owns, and the layout of the latest batch. It
// starts workers for the first batch, and again if they are broken. It returns [ErrClosed] after
// Close.
func (m *byNumber) ensureExecutor() (x executor, known lastLayout, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, known, ErrClosed
	}
	if m.executor != nil && m.executor.isBroken() {
		go m.executor.close()
		m.executor = nil
	}
	if m.executor == nil {
		if m.executor, err = m.l.newExecutor(nil); err != nil {
			m.executor = nil
			return nil, known, err
		}
	}
	return m.executor, m.known, nil
}

// recordLayout remembers the layout of the batch that p has made, for the next batch.
func (m *byNumber) recordLayout(p *prefetcher) {
	p.mu.Lock()
	known := lastLayout{p.layout, p.spec, p.like, p.loose}
	p.mu.Unlock()
	m.mu.Lock()
	m.known = known
	m.mu.Unlock()
}

// Close stops the workers. Batches in progress fail with [ErrClosed].
func (m *byNumber) Close() error {
	m.mu.Lock()
	x := m.executor
	m.executor, m.closed = nil, true
	m.mu.Unlock()
	err := m.l.Close()
	if x != nil {
		x.close()
	}
	return err
}
