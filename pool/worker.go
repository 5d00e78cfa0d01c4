package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

// A station is the argument of a worker.
type station struct {
	Calls   *ipc.Receiver[call]
	Replies *ipc.Sender[reply]
	Stops   *ipc.Receiver[uint64]
	Init    call // its name is empty if there is none
}

// employ is the function of all workers.
var employ = shoal.Register("pool", work)

// work does one call after the other, until there are no more or the pool ends. A panic of a task
// is one of the worker: nobody knows in what state it has left what the next one would find.
func work(ctx context.Context, rank int, s station) error {
	defer s.Calls.Close()
	defer s.Replies.Close()
	defer s.Init.args.release()
	defer s.Stops.Close()
	ctx, end := context.WithCancel(context.WithValue(ctx, rankKey{}, rank))
	defer end()
	if s.Init.fn != "" {
		if r := perform(ctx, s.Init); r.err != nil {
			return r.err
		}
	}
	if err := s.Replies.Put(ctx, reply{}); err != nil {
		return err
	}
	b := &bench{ctx: ctx}
	go b.listen(s.Stops)
	for {
		c, err := s.Calls.Get(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err == nil && ctx.Err() != nil {
			c.args.release() // who has been left alone on a goroutine must not begin what others may have been given
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.answer(ctx, b, c); err != nil {
			return err
		}
	}
}

// answer does one call.
func (s *station) answer(ctx context.Context, b *bench, c call) error {
	defer c.args.release()
	begin := time.Now()
	r := s.perform(b.begin(c.id), c)
	r.id, r.took = c.id, time.Since(begin)
	defer r.results.release()
	err := s.Replies.Put(ctx, r)
	if err == nil || ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	// No room for the results, say. The error has some.
	return s.Replies.Put(ctx, reply{id: c.id, err: err, took: r.took})
}

// perform does a call with the deadline of its caller, if there is one.
func (s *station) perform(ctx context.Context, c call) reply {
	if c.deadline == 0 {
		return perform(ctx, c)
	}
	ctx, cancel := c.deadline.Context(ctx)
	defer cancel()
	return perform(ctx, c)
}

// A bench is where a worker is at a call that can be stopped. Calls have the same context until one
// of them is.
type bench struct {
	ctx context.Context // of the worker

	mu      sync.Mutex
	at      uint64          // the call
	stopped uint64          // the last one that was to be stopped: it may be still to come, or over
	task    context.Context // nil if the next call needs another one
	cancel  context.CancelCauseFunc
}

// begin returns the context of a call.
func (b *bench) begin(id uint64) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.task == nil {
		b.task, b.cancel = context.WithCancelCause(b.ctx)
	}
	task := b.task
	if b.at = id; id == b.stopped {
		b.stop()
	}
	return task
}

func (b *bench) stop() {
	b.cancel(errDropped)
	b.task = nil
}

// listen stops calls until the worker ends.
func (b *bench) listen(stops *ipc.Receiver[uint64]) {
	for id, err := range stops.All(b.ctx) {
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.stopped = id; id == b.at && b.task != nil {
			b.stop()
		}
		b.mu.Unlock()
	}
}

type rankKey struct{}

// Rank returns the number of the worker that runs the task of ctx, from 0, or -1 outside of a task.
// A worker that replaces another one gets its number.
func Rank(ctx context.Context) int {
	if rank, ok := ctx.Value(rankKey{}).(int); ok {
		return rank
	}
	return -1
}
