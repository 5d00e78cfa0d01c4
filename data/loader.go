package data

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Options say how a Loader makes batches. The zero value makes batches of one sample, in order, in the consumer's goroutine.
type Options struct {
	BatchSize int     // samples in a batch; 0 means 1
	Shuffle   bool    // in a new random order every epoch
	Seed      uint64  // of the orders; the same seed and epoch give the same batches
	Sampler   Sampler // the order, instead of Shuffle and Seed
	DropLast  bool    // without the last batch of an epoch if it is smaller than the others

	// Workers is how many goroutines load batches ahead; 0 means that the consumer loads each batch when it asks for it. They
	// run on the CPUs that the process may use, so that more of them than CPUs only help where Get waits for something.
	Workers  int
	Prefetch int // how many batches are ready or being made while the consumer works on one; 0 means two for each worker

	Transform Transform // of the first tensor of each batch, such as the images

	// Shared makes each batch anew, in shared memory. It is then the consumer's, to send to another process and to close.
	Shared bool
}

// A Loader makes batches of a Dataset. It may be used by several goroutines, each with its own Batches.
type Loader struct {
	ds      Dataset
	opts    Options
	sampler Sampler
	epochs  atomic.Int64 // that Batches has begun

	closed context.Context // is done after Close, because of ErrClosed
	close  context.CancelCauseFunc

	mu   sync.Mutex
	idle []*slot
}

// NewLoader makes a Loader of ds, which it does not close. It panics if a number in opts is negative.
func NewLoader(ds Dataset, opts Options) *Loader {
	if opts.BatchSize < 0 || opts.Workers < 0 || opts.Prefetch < 0 {
		panic(fmt.Sprintf("data: NewLoader with BatchSize %d, Workers %d, Prefetch %d: none can be negative", opts.BatchSize, opts.Workers, opts.Prefetch))
	}
	opts.BatchSize = max(1, opts.BatchSize)
	if opts.Prefetch == 0 {
		opts.Prefetch = 2 * opts.Workers
	}
	l := &Loader{ds: ds, opts: opts, sampler: opts.Sampler}
	switch {
	case l.sampler != nil:
	case opts.Shuffle:
		l.sampler = Random(ds.Len(), opts.Seed)
	default:
		l.sampler = Sequential(ds.Len())
	}
	l.closed, l.close = context.WithCancelCause(context.Background())
	return l
}

// Len returns the number of batches of an epoch.
func (l *Loader) Len() int {
	n := l.sampler.Len()
	if !l.opts.DropLast {
		n += l.opts.BatchSize - 1
	}
	return n / l.opts.BatchSize
}

// Batches returns the batches of the next epoch: the first call is epoch 0. See Epoch.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return l.Epoch(ctx, int(l.epochs.Add(1)-1))
}

// Epoch returns the batches of an epoch. Their order depends on the sampler alone, whatever Workers is. A batch is the consumer's
// until it asks for the next one: its tensors are then written again, unless the option Shared is set. What should live longer
// is to be cloned.
//
// The first error ends the sequence, with no batch: that of a sample, which it names by its index, that of ctx, or ErrClosed. Breaking
// out of the loop ends the loading; all of its goroutines have ended when the loop has.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(l.closed, func() { cancel(ErrClosed) })()
		order := l.sampler.Order(epoch)
		order = order[:min(len(order), l.Len()*l.opts.BatchSize)]
		l.run(ctx, slices.Collect(slices.Chunk(order, l.opts.BatchSize)), yield)
	}
}

func (l *Loader) run(ctx context.Context, chunks [][]int, yield func(Batch, error) bool) {
	if l.opts.Workers > 0 {
		l.ahead(ctx, chunks, yield)
		return
	}
	s := l.take(1)
	defer l.give(s)
	for _, indices := range chunks {
		batch, err := l.load(ctx, s[0], indices)
		if !yield(batch, err) || err != nil {
			return
		}
	}
}

// Close ends all iterations over l, with ErrClosed, and drops the buffers. It may be called again, and by any goroutine.
func (l *Loader) Close() error {
	l.close(ErrClosed)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = nil
	return nil
}

// take returns n slots, with the buffers of earlier epochs where there are any.
func (l *Loader) take(n int) []*slot {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := max(0, len(l.idle)-n)
	slots := slices.Clone(l.idle[k:])
	l.idle = l.idle[:k]
	for len(slots) < n {
		slots = append(slots, &slot{ready: make(chan struct{}, 1)})
	}
	return slots
}

// give keeps slots for later epochs.
func (l *Loader) give(slots []*slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Err() == nil {
		l.idle = append(l.idle, slots...)
	}
}
