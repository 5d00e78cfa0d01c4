package service

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/maker"
)

// A Loader yields the batches of data hosts and is used like a [data.Loader]. Several goroutines
// may use it, each with its own loop over [Loader.Batches]. The caller must close it.
type Loader struct {
	client *client
	stream *data.Loader // plans the batches of a Stream; nil for numbered batches
	opts   Options
	total  int // batches per epoch
	seed   uint64
	epochs atomic.Int64 // number of epochs that Batches has started
	usual  atomic.Int64 // bytes of the last batch of any loop; 0 before the first
	meter  meter

	mu     sync.Mutex
	state  *data.State // state after the last yielded batch
	resume *data.State // start of the next loop, set by Resume
}

// Dial connects to data hosts at TCP addresses such as "host:7070". One reachable host is
// sufficient; the Loader keeps trying the others. ctx bounds only the call of Dial, which returns
// its cause if it ends first. The caller must close the Loader. Dial returns [ErrOptions] for
// invalid options. Other errors are [*HostError] and wrap [ipc.ErrKey], [ipc.ErrPeer],
// [ErrMismatch] or [ErrNoHost].
func Dial(ctx context.Context, opts Options, addrs ...string) (*Loader, error) {
	c, err := dial(ctx, opts, addrs)
	if err != nil {
		return nil, err
	}
	l := &Loader{client: c, opts: c.opts, total: c.served.Batches, seed: c.served.Seed}
	if c.served.Parts > 0 {
		if l.stream, err = c.streamLoader(); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return l, nil
}

// Len returns the number of batches per epoch for this trainer, or for all Dynamic trainers
// together. It returns -1 if the data hosts serve a Stream.
func (l *Loader) Len() int {
	if l.stream != nil {
		return -1
	}
	return l.stepCount(0)
}

// stepCount returns this trainer's share of the batches that start at from, or all of them if the
// dealer assigns them.
func (l *Loader) stepCount(from int) int {
	left := l.total - from
	if l.opts.Coordinated {
		return max(0, left/l.opts.World)
	}
	return max(0, (left-l.opts.Rank+l.opts.World-1)/l.opts.World)
}

// Batches returns an iterator over the batches of the next epoch, as [Loader.Epoch] does. The first
// call starts with epoch 0, or with the epoch of [Loader.Resume].
func (l *Loader) Batches(ctx context.Context) iter.Seq2[data.Batch, error] {
	return l.Epoch(ctx, int(l.epochs.Add(1)-1))
}

// Epoch returns an iterator over the batches of an epoch, in order of their numbers, or in order of
// arrival with Options.Dynamic. They equal the batches of a [data.Loader] with the options of the
// data hosts. The consumer must close each batch with [data.Batch.Close].
//
// An error ends the sequence and is yielded without a batch. It is the cause of ctx,
// [data.ErrClosed], or a [*HostError]. It wraps a [*data.SampleError] if no data host could load a
// sample, [ErrNoHost] if none is reachable, or [shm.ErrNoSpace] if unclosed batches fill the
// trainer's shared memory.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		l.each(ctx, epoch, func(b maker.Batch, err error) bool { return yield(data.Batch(b.Tensors), err) })
	}
}

// BatchesOf returns an iterator over the batches of the next epoch of l, converted to B as
// [data.BatchesOf] does. The consumer must close the tensors of each batch. A batch that does
// not fit B ends the sequence with an error.
func BatchesOf[B any](ctx context.Context, l *Loader) iter.Seq2[B, error] {
	epoch := int(l.epochs.Add(1) - 1)
	return func(yield func(B, error) bool) {
		l.each(ctx, epoch, func(b maker.Batch, err error) bool {
			var v, none B
			if err != nil {
				return yield(none, err)
			}
			if err := b.Into(&v); err != nil {
				b.Close()
				yield(none, fmt.Errorf("service: convert batch to %T: %w", &v, err))
				return false
			}
			return yield(v, nil)
		})
	}
}

// A window holds the requested batches that have not been yielded, in order. It ensures that each
// batch is yielded once.
type window struct {
	l     *Loader
	ctx   context.Context
	epoch int
	start int // number of the epoch's first batch to yield, for all trainers
	steps int // number of this trainer's batches from start on
	begun int
	asked []chan fetched
}

type fetched struct {
	maker.Batch
	err error
}

// each yields the batches of an epoch, which yield owns, until yield returns false. An error is
// passed to the last call, without a batch.
func (l *Loader) each(ctx context.Context, epoch int, yield func(b maker.Batch, err error) bool) {
	if l.stream != nil {
		l.eachRead(ctx, epoch, yield)
		return
	}
	if l.opts.Dynamic {
		l.start(epoch)
		l.eachDealt(ctx, epoch, yield)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer context.AfterFunc(l.client.ctx, func() { cancel(data.ErrClosed) })()
	defer l.meter.startLoop()()
	start := l.start(epoch)
	w := &window{l: l, ctx: ctx, epoch: epoch, start: start, steps: l.stepCount(start)}
	defer w.drainRequests()
	defer cancel(nil)
	for step := 0; ; step++ {
		begin := time.Now()
		b, ok, err := w.nextBatch()
		l.meter.addStall(time.Since(begin))
		if err != nil {
			yield(maker.Batch{}, err)
			return
		}
		if !ok {
			l.recordState(data.State{Seed: l.seed, Epoch: epoch + 1})
			return
		}
		l.recordState(data.State{Seed: l.seed, Epoch: epoch, Batches: min(start+(step+1)*l.opts.World, l.total)})
		if b.Samples == 0 { // all its samples were skipped
			continue
		}
		l.meter.countDelivered(b)
		if !yield(b, nil) {
			return
		}
	}
}

// nextBatch fills the window with requests and waits for the next batch, which the caller must
// close. ok is false at the end of the epoch. The error is the batch's, [data.ErrClosed], or the
// cause of w.ctx.
func (w *window) nextBatch() (b maker.Batch, ok bool, err error) {
	if w.l.client.ctx.Err() != nil {
		return b, false, data.ErrClosed
	}
	if err := context.Cause(w.ctx); err != nil {
		return b, false, err
	}
	for w.begun < w.steps && len(w.asked) < w.l.maxPending() {
		q := frame{Kind: frameAsk, Epoch: w.epoch, Number: w.start + w.begun*w.l.opts.World + w.l.opts.Rank}
		ch := make(chan fetched, 1)
		go func() {
			f, err := w.l.client.fetch(w.ctx, q)
			ch <- fetched{f.batch(), err}
		}()
		w.asked = append(w.asked, ch)
		w.begun++
	}
	if len(w.asked) == 0 {
		return b, false, nil
	}
	select {
	case f := <-w.asked[0]:
		w.asked = w.asked[1:]
		if n := nbytes(f.Batch); n > 0 {
			w.l.usual.Store(int64(n))
		}
		return f.Batch, true, f.err
	case <-w.ctx.Done():
		return b, false, context.Cause(w.ctx)
	}
}

// maxPending returns the maximum number of pending batches, given the size of the last batch.
func (l *Loader) maxPending() int {
	usual := int(l.usual.Load())
	if usual == 0 {
		return min(l.opts.Prefetch, len(l.client.peers))
	}
	return max(1, min(l.opts.Prefetch, l.opts.PrefetchBytes/usual))
}

// drainRequests waits for the pending requests and closes their batches. The caller must cancel
// w.ctx before, so that it does not wait for the hosts.
func (w *window) drainRequests() {
	for _, ch := range w.asked {
		f := <-ch
		f.Close()
	}
}

func nbytes(b maker.Batch) (n int) {
	for _, t := range b.Tensors {
		n += t.Nbytes()
	}
	return n
}

// start returns the number of the first batch of an epoch: the one set by Resume, which it
// clears, or 0.
func (l *Loader) start(epoch int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resume == nil || l.resume.Epoch != epoch {
		return 0
	}
	from := l.resume.Batches
	l.resume = nil
	return from
}

func (l *Loader) recordState(s data.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = &s
}

// State returns the position after the last yielded batch. Its Batches is the number of batches
// consumed by all trainers together once each has reached this step. For a Dynamic trainer it is 0,
// because the ledger of the first data host records the consumed batches. The caller should take
// the State after the training step that used the batch, so that it agrees with the model. For a
// Stream the State equals the one of a [data.Loader] with the same options.
func (l *Loader) State() data.State {
	if l.stream != nil {
		return l.stream.State()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.resume != nil:
		return *l.resume
	case l.state != nil:
		return *l.state
	}
	return data.State{Seed: l.seed, Epoch: int(l.epochs.Load())}
}

// Resume makes the next call of [Loader.Batches] continue at a State. If all trainers resume from
// equal States, World may differ from the earlier run. For a Stream, World may differ if each
// trainer gets the States of all. If Resume returns an error, which wraps [data.ErrState], l is
// unchanged.
func (l *Loader) Resume(states ...data.State) error {
	if l.stream != nil {
		err := l.stream.Resume(states...)
		if err == nil {
			l.epochs.Store(int64(states[0].Epoch))
		}
		return err
	}
	if len(states) != 1 {
		return fmt.Errorf("%w: got %d states, want 1: only for a Stream does each trainer have its own",
			data.ErrState, len(states))
	}
	s := states[0]
	var why string
	switch {
	case s.Seed != l.seed:
		why = fmt.Sprintf("got seed %d, want %d as on the data hosts", s.Seed, l.seed)
	case s.Samples > 0 || len(s.Ahead) > 0 || len(s.Parts) > 0:
		why = "got the state of a data.Loader"
	case s.Epoch < 0 || s.Batches < 0 || s.Batches > l.total:
		why = fmt.Sprintf("got epoch %d and %d batches, want at most %d batches", s.Epoch, s.Batches, l.total)
	case l.opts.Dynamic && s.Batches > 0:
		why = fmt.Sprintf("got %d batches of epoch %d, want 0: with Dynamic the first data host stores the progress",
			s.Batches,
			s.Epoch)
	case l.opts.Coordinated && s.Batches%l.opts.World != 0:
		why = fmt.Sprintf("got %d batches, want a multiple of %d trainers", s.Batches, l.opts.World)
	}
	if why != "" {
		return fmt.Errorf("%w: %s", data.ErrState, why)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resume = &s
	l.epochs.Store(int64(s.Epoch))
	return nil
}

// Close ends all loops with [data.ErrClosed] and closes the connections. It may be called from any
// goroutine and is idempotent.
func (l *Loader) Close() error {
	if l.stream != nil {
		l.stream.Close()
	}
	return l.client.close()
}

// Stats returns the counts and times since [Dial].
func (l *Loader) Stats() Stats {
	s := l.meter.read()
	s.Hosts = l.client.status()
	return s
}
