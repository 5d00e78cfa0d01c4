package data

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/trace"
)

// A Loader makes batches of a Dataset or a Stream: torch's DataLoader. Several goroutines may use
// it, each with its own loop over Batches. The caller closes it.
type Loader struct {
	source  any // a Dataset or a Stream, nil if it is elsewhere
	opts    Options
	sampler Sampler // nil for a Stream, and where there are Batches
	meter   meter

	elsewhere func() executor // instead of workers, for a Stream; nil for all that users make

	epochs atomic.Int64 // that Batches has begun
	kind   atomic.Uint32

	closed context.Context // is done after Close, because of ErrClosed
	close  context.CancelCauseFunc

	mu         sync.Mutex
	idle       []*batchBuffer // to be used again
	kept       executor       // if it is Persistent
	prefetcher *prefetcher    // of the loop that was last given a batch
	state      State          // of that loop
	tracks     []*trace.Track // of loops that have ended
	timeline   *timeline
	shown      bool   // a loop has the timeline
	ending     int    // workers that may have it are being ended
	resume     *State // where the next loop begins, nil at the beginning of its epoch
}

// NewLoader makes a Loader of ds, and does not close ds. It panics if opts contradict each other.
func NewLoader(ds Dataset, opts Options) *Loader {
	l := newLoader(ds, opts.complete(false))
	opts = l.opts
	switch {
	case opts.Batches != nil:
		return l
	case opts.Sampler != nil:
		l.sampler = opts.Sampler
	case opts.Shuffle:
		l.sampler = Random(ds.Len(), opts.Seed)
	default:
		l.sampler = Sequential(ds.Len())
	}
	if opts.World > 1 {
		l.sampler = Distributed(l.sampler, opts.Rank, opts.World, opts.DropLast)
	}
	return l
}

// NewStreamLoader makes a Loader of a Stream. It panics if opts contradict each other, or ask for
// an order of samples.
func NewStreamLoader(s Stream, opts Options) *Loader { return newLoader(s, opts.complete(true)) }

func newLoader(source any, opts Options) *Loader {
	l := &Loader{source: source, opts: opts}
	l.choose(opts.Kind)
	l.closed, l.close = context.WithCancelCause(context.Background())
	return l
}

// Len returns the number of batches of an epoch, or -1 for a Stream.
func (l *Loader) Len() int {
	if l.opts.Batches != nil {
		return l.opts.Batches.Len()
	}
	if l.sampler == nil {
		return -1
	}
	n, size := l.sampler.Len(), max(1, l.opts.BatchSize)
	if !l.opts.DropLast {
		n += size - 1
	}
	return n / size
}

// streams reports whether the Loader reads a Stream.
func (l *Loader) streams() bool { return l.sampler == nil && l.opts.Batches == nil }

// Batches yields the batches of the next epoch, as [Loader.Epoch] does. The first call loads epoch
// 0, or the epoch of Resume.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return l.Epoch(ctx, int(l.epochs.Add(1)-1))
}

// Epoch yields the batches of an epoch. They depend on the seed, the epoch and the sampler alone,
// not on Workers and Kind. The consumer closes each batch by Batch.Close. The memory of a closed
// batch is used for the next one at once; that of a dropped batch waits for the garbage collector.
// With the option Reuse, the Loader closes a batch when the consumer asks for the next one, and
// overwrites its memory. Batch.Close is harmless then.
//
// The first error ends the sequence, and comes without a batch. It is a [*SampleError], the error
// of ctx, ErrTimeout or ErrClosed. If the loop breaks off, loading ends. When the loop ends, its
// goroutines have ended, and so have its processes unless they are Persistent.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		l.each(ctx, epoch, func(s *batchState, err error) bool {
			if err != nil {
				return yield(nil, err)
			}
			return yield(s.batch, nil)
		})
	}
}

// each yields what is ready of an epoch, or its error.
func (l *Loader) each(ctx context.Context, epoch int, yield func(b *batchState, err error) bool) {
	if err := l.ended(ctx); err != nil {
		yield(nil, err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closed, func() { cancel(ErrClosed) })()
	l.meter.loop(1)
	defer l.meter.loop(-1)
	shown := l.borrowTimeline()
	defer l.returnTimeline(shown)
	p := &prefetcher{l: l, ctx: ctx, epoch: epoch, wake: make(chan struct{}, 1), prints: new(prints),
		timeline: shown}
	if err := l.employ(p); err != nil {
		yield(nil, err)
		return
	}
	defer l.dismiss(p, cancel)
	p.plan, p.mark = l.plan(epoch) // while the workers start
	l.run(p, yield)
}

// ended returns why there are no more batches.
func (l *Loader) ended(ctx context.Context) error {
	if l.closed.Err() != nil { // the cancelling of ctx may still be under way
		return ErrClosed
	}
	return context.Cause(ctx)
}

// run yields the batches of a prefetcher.
func (l *Loader) run(p *prefetcher, yield func(b *batchState, err error) bool) {
	track := l.borrowTrack()
	defer l.returnTrack(track)
	shown, key := p.timeline.show(0), uint64(0)
	defer func() { shown.Turn(arena.Finished, key, time.Now()) }()
	for {
		begin := time.Now()
		shown.Turn(arena.Idle, key, begin)
		b, err := p.take()
		stall := time.Since(begin)
		l.meter.waited(stall)
		track.Span("wait", begin, track.Now())
		if err != nil {
			yield(nil, err)
			return
		}
		if b == nil {
			l.note(p, State{Seed: l.opts.Seed, Epoch: p.epoch + 1})
			return
		}
		n, err := l.settle(b)
		if err != nil {
			l.forget(b)
			yield(nil, err)
			return
		}
		l.note(p, p.mark.passed(b))
		if n == 0 {
			l.forget(b)
			continue
		}
		if err := l.pin(b.batch); err != nil {
			l.forget(b)
			yield(nil, err)
			return
		}
		if !l.opts.Reuse {
			lending.watch(b.batch)
		}
		key = batchKey(p.epoch, b.number)
		p.passed(b, begin, begin.Add(stall))
		shown.Turn(arena.Working, key, begin.Add(stall))
		begin = track.Now()
		more := yield(b, nil)
		track.Span("use", begin, track.Now())
		runtime.KeepAlive(b) // slices of its memory are in use until here
		if l.overwrites() && (more || b.buffer != nil && b.buffer.shared) {
			l.forget(b)
		}
		if !more { // a batch on the heap may live on: whoever breaks out often wants it
			return
		}
	}
}

// settle decides about the samples of a batch that failed, and returns how many are left.
func (l *Loader) settle(b *batchState) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	slices.SortFunc(b.bad, func(a, b SampleError) int { return a.At - b.At })
	var gaps []int
	for i := range b.bad {
		if e := &b.bad[i]; l.opts.Skip == nil || !l.opts.Skip(e) {
			return 0, e
		}
		gaps = append(gaps, b.bad[i].At)
	}
	switch {
	case b.buffer != nil && len(gaps) == len(b.indices): // none is left
	case b.buffer != nil && len(gaps) > 0:
		b.batch = b.batch.without(gaps)
		fallthrough
	default:
		n = b.samples(l.opts.BatchSize)
	}
	l.meter.delivered(n, len(gaps))
	return n, nil
}

// samples returns how many samples a batch has; size is the option.
func (b *batchState) samples(size int) int {
	switch {
	case len(b.batch) == 0:
		return 0
	case size == Single:
		return 1
	case b.kept > 0:
		return b.kept
	case b.spec != "": // its first tensor may be of another length
		return max(len(b.indices), b.read) - len(b.bad)
	case b.batch[0].Dims() == 0:
		return 1
	}
	return b.batch[0].Dim(0)
}

// Close ends all loops over l with ErrClosed, ends its workers and frees its memory. Any goroutine
// may call it. It is idempotent.
func (l *Loader) Close() error {
	l.close(ErrClosed)
	l.mu.Lock()
	kept, idle := l.kept, l.idle
	l.kept, l.idle = nil, nil
	l.ending++
	l.mu.Unlock()
	if kept != nil {
		kept.close()
	}
	l.mu.Lock()
	l.ending--
	l.mu.Unlock()
	l.endTimeline()
	for _, f := range idle {
		f.end()
	}
	return nil
}

// Stats returns counts and times of the loading so far.
func (l *Loader) Stats() Stats {
	l.mu.Lock()
	w := l.prefetcher
	l.mu.Unlock()
	ready := 0
	if w != nil {
		ready = w.ready()
	}
	s := l.meter.read(l.opts.Workers, ready)
	s.Kind = Kind(l.kind.Load())
	return s
}

// ahead is how many batches are ready or being made.
func (l *Loader) ahead() int { return max(1, min(l.opts.Prefetch, l.opts.Prefetch*l.opts.Workers)) }
