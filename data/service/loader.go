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

// A Loader has the batches of data hosts. It is used as a data.Loader is. Several goroutines may
// use it, each with its own loop over Batches. The caller closes it.
type Loader struct {
	client *client
	stream *data.Loader // nil unless the data hosts serve a Stream, whose batches it plans
	opts   Options
	total  int // batches of an epoch
	seed   uint64
	epochs atomic.Int64 // that Batches has begun
	usual  atomic.Int64 // bytes of the last batch, of any loop; 0 before the first
	meter  meter

	mu     sync.Mutex
	state  *data.State // of the loop that was last given a batch
	resume *data.State // where the next loop begins
}

// Dial connects to data hosts at TCP addresses such as "host:7070". One that can be reached is
// enough; the Loader goes on trying the others. The error is a *HostError, and wraps ipc.ErrKey,
// ipc.ErrPeer, ErrMismatch or ErrNoHost; it wraps ErrOptions if opts are wrong.
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

// Len returns how many batches of an epoch this trainer gets, or all Dynamic trainers together. It
// is -1 if the data hosts serve a Stream.
func (l *Loader) Len() int {
	if l.stream != nil {
		return -1
	}
	return l.steps(0)
}

// steps returns how many of the batches from one on this trainer gets.
func (l *Loader) steps(from int) int {
	left := l.total - from
	if l.opts.Coordinated {
		return max(0, left/l.opts.World)
	}
	return max(0, (left-l.opts.Rank+l.opts.World-1)/l.opts.World)
}

// Batches yields the batches of the next epoch, as [Loader.Epoch] does. The first call loads epoch
// 0, or the epoch of Resume.
func (l *Loader) Batches(ctx context.Context) iter.Seq2[data.Batch, error] {
	return l.Epoch(ctx, int(l.epochs.Add(1)-1))
}

// Epoch yields the batches of an epoch, in the order of their numbers. They are those of a
// data.Loader with the options of the data hosts. The consumer closes each batch by Batch.Close.
//
// The first error ends the sequence, and comes without a batch: the error of ctx, data.ErrClosed,
// or a *HostError. It wraps a *data.SampleError if no data host could load a sample, ErrNoHost, or
// shm.ErrNoSpace if batches that are not closed fill the trainer's shared memory.
func (l *Loader) Epoch(ctx context.Context, epoch int) iter.Seq2[data.Batch, error] {
	return func(yield func(data.Batch, error) bool) {
		l.each(ctx, epoch, func(b maker.Batch, err error) bool { return yield(data.Batch(b.Tensors), err) })
	}
}

// BatchesOf yields the batches of the next epoch of l, each as a B, as data.BatchesOf does.
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
				yield(none, fmt.Errorf("service: a batch as a %T: %w", &v, err))
				return false
			}
			return yield(v, nil)
		})
	}
}

// A window is the batches that are asked for and not yielded, in their order. It is the ledger: a
// number leaves it once, with its batch.
type window struct {
	l     *Loader
	ctx   context.Context
	epoch int
	start int // of the epoch's batches that all trainers had before
	steps int // of this trainer, from there on
	begun int
	asked []chan fetched
}

type fetched struct {
	maker.Batch
	err error
}

// each yields what there is of an epoch.
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
	defer l.meter.loop()()
	start := l.start(epoch)
	w := &window{l: l, ctx: ctx, epoch: epoch, start: start, steps: l.steps(start)}
	defer w.drain()
	defer cancel(nil)
	for step := 0; ; step++ {
		begin := time.Now()
		b, ok, err := w.next()
		l.meter.waited(time.Since(begin))
		if err != nil {
			yield(maker.Batch{}, err)
			return
		}
		if !ok {
			l.note(data.State{Seed: l.seed, Epoch: epoch + 1})
			return
		}
		l.note(data.State{Seed: l.seed, Epoch: epoch, Batches: min(start+(step+1)*l.opts.World, l.total)})
		if b.Samples == 0 { // the hosts have skipped them all
			continue
		}
		l.meter.delivered(b)
		if !yield(b, nil) {
			return
		}
	}
}

// next asks for what there is room for, and waits for the next batch.
func (w *window) next() (b maker.Batch, ok bool, err error) {
	if w.l.client.ctx.Err() != nil {
		return b, false, data.ErrClosed
	}
	if err := context.Cause(w.ctx); err != nil {
		return b, false, err
	}
	for w.begun < w.steps && len(w.asked) < w.l.room() {
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

// room is how many batches of the usual number of bytes may be asked for.
func (l *Loader) room() int {
	usual := int(l.usual.Load())
	if usual == 0 {
		return min(l.opts.Prefetch, len(l.client.peers))
	}
	return max(1, min(l.opts.Prefetch, l.opts.PrefetchBytes/usual))
}

// drain closes what nobody gets.
func (w *window) drain() {
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

// start returns where an epoch begins.
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

func (l *Loader) note(s data.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = &s
}

// State returns the position of l, after the last batch that a loop has got. Its Batches are those
// that all trainers together have had once each of them is as far as this one; of a Dynamic
// trainer the ledger of the first data host has them, and Batches is 0. Take the State after
// the step that used the batch, so that the State and the model agree. For a Stream it is that of a
// data.Loader with the same options.
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

// Resume makes the next call of Batches go on where a Loader was when it returned a State. If all
// trainers resume from equal States, World may be another one. For a Stream it may be if each gets
// the States of all. The error wraps data.ErrState, and then l is unchanged.
func (l *Loader) Resume(states ...data.State) error {
	if l.stream != nil {
		err := l.stream.Resume(states...)
		if err == nil {
			l.epochs.Store(int64(states[0].Epoch))
		}
		return err
	}
	if len(states) != 1 {
		return fmt.Errorf("%w: there are %d, and only for a Stream each trainer has one of its own", data.ErrState, len(states))
	}
	s := states[0]
	var why string
	switch {
	case s.Seed != l.seed:
		why = fmt.Sprintf("its seed is %d, and that of the data hosts %d", s.Seed, l.seed)
	case s.Samples > 0 || len(s.Ahead) > 0 || len(s.Parts) > 0:
		why = "it is of a data.Loader"
	case s.Epoch < 0 || s.Batches < 0 || s.Batches > l.total:
		why = fmt.Sprintf("epoch %d, %d batches: an epoch has %d", s.Epoch, s.Batches, l.total)
	case l.opts.Dynamic && s.Batches > 0:
		why = fmt.Sprintf("it has %d batches of epoch %d, and with Dynamic the first data host knows what is left", s.Batches,
			s.Epoch)
	case l.opts.Coordinated && s.Batches%l.opts.World != 0:
		why = fmt.Sprintf("%d batches are no steps of %d trainers", s.Batches, l.opts.World)
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

// Close ends all loops over l with data.ErrClosed, and the connections. Any goroutine may call it.
// It is idempotent.
func (l *Loader) Close() error {
	if l.stream != nil {
		l.stream.Close()
	}
	return l.client.close()
}

// Stats returns counts and times so far.
func (l *Loader) Stats() Stats {
	s := l.meter.read()
	s.Hosts = l.client.status()
	return s
}
