package data

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/trace"
)

// A Loader loads batches of a [Dataset] or a [Stream], as torch's DataLoader does. Its methods may
// be called from several goroutines; each loop over [Loader.Batches] is independent. The caller
// must close the Loader.
type Loader struct {
	source  any // a Dataset or a Stream; nil if elsewhere is set
	opts    Options
	sampler Sampler // nil for a Stream, and with Options.Batches
	meter   meter

	elsewhere func() executor // executor of a Stream that a data host reads; nil for users' Loaders

	epochs atomic.Int64 // number of calls of Batches; the next one loads this epoch
	kind   atomic.Uint32

	closed context.Context // done after Close, with the cause ErrClosed
	close  context.CancelCauseFunc

	mu         sync.Mutex
	idle       []*batchBuffer // buffers available for reuse
	kept       executor       // the executor kept between epochs, with Options.Persistent
	prefetcher *prefetcher    // of the loop that received the latest batch
	state      State          // position of the same loop
	tracks     []*trace.Track // free list: tracks of finished loops
	timeline   *timeline
	shown      bool   // a loop is using timeline
	ending     int    // executors that are closing and may still use timeline
	resume     *State // start of the next loop; nil for the beginning of its epoch
}

// NewLoader returns a Loader of ds. The Loader does not close ds. NewLoader panics if an option is
// out of range or if options exclude each other.
func NewLoader(ds Dataset, opts Options) *Loader {
	l := newLoader(ds, opts.withDefaults(false))
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

// NewStreamLoader returns a Loader of a [Stream]. It panics if an option is out of range, if
// options exclude each other, or if they set an order of samples (Shuffle, Sampler or Batches).
func NewStreamLoader(s Stream, opts Options) *Loader { return newLoader(s, opts.withDefaults(true)) }

func newLoader(source any, opts Options) *Loader {
	l := &Loader{source: source, opts: opts}
	l.setKind(opts.Kind)
	l.closed, l.close = context.WithCancelCause(context.Background())
	return l
}

// Len returns the number of batches in an epoch, or -1 for a [Stream].
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

// isStream reports whether the Loader reads a [Stream].
func (l *Loader) isStream() bool { return l.sampler == nil && l.opts.Batches == nil }

// Batches yields the batches of the next epoch, as [Loader.Epoch] does. The first call loads epoch
// 0, or the epoch passed to [Loader.Resume].
func (l *Loader) Batches(ctx context.Context) iter.Seq2[Batch, error] {
	return l.Epoch(ctx, int(l.epochs.Add(1)-1))
}

// Epoch yields the batches of the given epoch. They depend only on the seed, the epoch and the
// sampler, not on Workers or Kind. The consumer should close each batch with [Batch.Close]: the
// memory of a closed batch is reused at once, but a batch that is dropped waits for the garbage
// collector. With Options.Reuse the Loader closes each batch when the consumer asks for the next
// one and overwrites its memory, and calling Batch.Close is optional.
//
// The sequence ends with the first error, which comes with a nil batch: a [*SampleError], the error
// of a failed worker or buffer, the cause of ctx, [ErrTimeout] or [ErrClosed]. The consumer may
// break out of the loop at any time. When the loop returns, its goroutines have ended, and so have
// its worker processes unless Options.Persistent is set.
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

// each calls yield with each batch of an epoch, in the caller's goroutine, until yield returns
// false. An error is passed to the last call, with a nil batch. Except with Options.Reuse, yield
// owns the batch.
func (l *Loader) each(ctx context.Context, epoch int, yield func(b *batchState, err error) bool) {
	if err := l.endError(ctx); err != nil {
		yield(nil, err)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closed, func() { cancel(ErrClosed) })()
	l.meter.countLoop(1)
	defer l.meter.countLoop(-1)
	shown := l.borrowTimeline()
	defer l.returnTimeline(shown)
	p := &prefetcher{l: l, ctx: ctx, deadline: sys.DeadlineOf(ctx), epoch: epoch, wake: make(chan struct{}, 1),
		prints: new(prints), timeline: shown}
	if err := l.startExecutor(p); err != nil {
		yield(nil, err)
		return
	}
	defer l.endPrefetcher(p, cancel)
	p.plan, p.mark = l.epochPlan(epoch) // overlaps with the start of the workers
	l.run(p, yield)
}

// endError returns the error that ends a loop: [ErrClosed], the cause of ctx, or nil if the loop
// may go on. If the deadline of ctx has passed, endError waits until ctx is done: a worker process
// may have noticed the deadline first, and its error must not become the error of a sample.
func (l *Loader) endError(ctx context.Context) error {
	if l.closed.Err() != nil { // ctx may not have been canceled yet
		return ErrClosed
	}
	if at, ok := ctx.Deadline(); ok && !time.Now().Before(at) {
		<-ctx.Done()
	}
	return context.Cause(ctx)
}

// run calls yield with the batches of p, in the consumer's goroutine, until the epoch ends or
// yield returns false. An error is passed to the last call, with a nil batch.
func (l *Loader) run(p *prefetcher, yield func(b *batchState, err error) bool) {
	track := l.borrowTrack()
	defer l.returnTrack(track)
	shown, key := p.timeline.beginTrack(0), uint64(0)
	defer func() { shown.Turn(arena.Finished, key, time.Now()) }()
	for {
		begin := time.Now()
		shown.Turn(arena.Idle, key, begin)
		b, err := p.takeBatch()
		stall := time.Since(begin)
		l.meter.addStall(stall)
		track.Span("wait", begin, track.Now())
		if err != nil {
			yield(nil, err)
			return
		}
		if b == nil {
			l.recordState(p, State{Seed: l.opts.Seed, Epoch: p.epoch + 1})
			return
		}
		n, err := l.skipFailed(b)
		if err != nil {
			l.recycleBatch(b)
			yield(nil, err)
			return
		}
		l.recordState(p, p.mark.recordDelivery(b))
		if n == 0 {
			l.recycleBatch(b)
			continue
		}
		if err := l.pinBatch(b.batch); err != nil {
			l.recycleBatch(b)
			yield(nil, err)
			return
		}
		if !l.opts.Reuse {
			lending.countShared(b.batch)
		}
		key = batchKey(p.epoch, b.number)
		p.recordTimes(b, begin, begin.Add(stall))
		shown.Turn(arena.Working, key, begin.Add(stall))
		begin = track.Now()
		more := yield(b, nil)
		track.Span("use", begin, track.Now())
		runtime.KeepAlive(b) // the consumer may use slices of its memory until here
		if l.overwritesBatches() && (more || b.buffer != nil && b.buffer.shared) {
			l.recycleBatch(b)
		}
		if !more { // a batch on the heap stays valid: callers often keep the last one
			return
		}
	}
}

// skipFailed passes the errors of failed samples to Options.Skip and compacts the batch if some
// are skipped. It returns the number of remaining samples, which may be 0, or the error that
// must end the epoch: the batch's own, or the one of the first sample that Skip does not accept.
// It must be called once for each batch, by the consumer.
func (l *Loader) skipFailed(b *batchState) (n int, err error) {
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
	case b.buffer != nil && len(gaps) == len(b.indices): // all samples were skipped
	case b.buffer != nil && len(gaps) > 0:
		b.batch = b.batch.removeRows(gaps)
		fallthrough
	default:
		n = b.sampleCount(l.opts.BatchSize)
	}
	l.meter.countDelivered(n, len(gaps))
	return n, nil
}

// sampleCount returns the number of samples in a batch after skipFailed; 0 means that there is
// no batch. size is Options.BatchSize.
func (b *batchState) sampleCount(size int) int {
	switch {
	case len(b.batch) == 0:
		return 0
	case size == Single:
		return 1
	case b.kept > 0:
		return b.kept
	case b.spec != "": // the first tensor may have another length, for example with Nested
		return max(len(b.indices), b.read) - len(b.bad)
	case b.batch[0].Dims() == 0:
		return 1
	}
	return b.batch[0].Dim(0)
}

// pinBatch locks the pages of a batch, if Options.PinMemory is set and there is a device.
func (l *Loader) pinBatch(b Batch) error {
	if !l.opts.PinMemory {
		return nil
	}
	for _, t := range b {
		if t.Device() != nil {
			continue
		}
		if err := t.PinMemory(); err != nil && !errors.Is(err, tensor.ErrDevice) {
			return fmt.Errorf("batch: %w", err)
		}
	}
	return nil
}

// Close ends all loops over l with [ErrClosed], stops its workers and frees its memory. Batches
// that the consumer owns stay valid. Close may be called from any goroutine, and more than once.
// The error is always nil.
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
		f.releaseMemory()
	}
	return nil
}

// Stats returns counts and times since l was made.
func (l *Loader) Stats() Stats {
	l.mu.Lock()
	w := l.prefetcher
	l.mu.Unlock()
	ready := 0
	if w != nil {
		ready = w.readyCount()
	}
	s := l.meter.readStats(l.opts.Workers, ready)
	s.Kind = Kind(l.kind.Load())
	return s
}

// maxAhead returns the maximum number of batches that are ready or being made.
func (l *Loader) maxAhead() int { return max(1, min(l.opts.Prefetch, l.opts.Prefetch*l.opts.Workers)) }
