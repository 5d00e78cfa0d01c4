package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

// A workerArgs is the argument of a worker process.
type workerArgs struct {
	Calls   *ipc.Receiver[call]
	Replies *ipc.Sender[reply]
	Stops   *ipc.Receiver[uint64]
	Init    call // the function name is empty if there is no initializer
}

// poolWorker is the registered entry point of every worker.
var poolWorker = shoal.Register("pool", runWorker)

// runWorker runs calls until there are no more or the pool ends. A panic of a task ends the worker,
// because the task may have left shared state inconsistent for the next one.
func runWorker(ctx context.Context, rank int, s workerArgs) error {
	defer s.Calls.Close()
	defer s.Replies.Close()
	defer s.Init.args.releaseBlocks()
	defer s.Stops.Close()
	ctx, end := context.WithCancel(context.WithValue(ctx, rankKey{}, rank))
	defer end()
	if s.Init.fn != "" {
		if r := performCall(ctx, s.Init); r.err != nil {
			return r.err
		}
	}
	if err := s.Replies.Put(ctx, reply{}); err != nil {
		return err
	}
	b := &cancelableCall{ctx: ctx}
	go b.watchStops(s.Stops)
	for {
		c, err := s.Calls.Get(ctx)
		if errors.Is(err, ipc.ErrClosed) {
			return nil
		}
		if err == nil && ctx.Err() != nil {
			c.args.releaseBlocks() // the pool may have reassigned this call already
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		if err := s.answerCall(ctx, b, c); err != nil {
			return err
		}
	}
}

// answerCall runs one call and sends the reply.
func (s *workerArgs) answerCall(ctx context.Context, b *cancelableCall, c call) error {
	defer c.args.releaseBlocks()
	begin := time.Now()
	r := s.performCall(b.beginCall(c.id), c)
	r.id, r.took = c.id, time.Since(begin)
	defer r.results.releaseBlocks()
	err := s.Replies.Put(ctx, r)
	if err == nil || ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	// For example, there is no memory for the results. A reply with only the error is small.
	return s.Replies.Put(ctx, reply{id: c.id, err: err, took: r.took})
}

// performCall runs a call with the deadline of its caller, if there is one.
func (s *workerArgs) performCall(ctx context.Context, c call) reply {
	if c.deadline == 0 {
		return performCall(ctx, c)
	}
	ctx, cancel := c.deadline.Context(ctx)
	defer cancel()
	return performCall(ctx, c)
}

// A cancelableCall tracks the running call, so that it can be canceled. Consecutive calls share a
// context until one of them is canceled.
type cancelableCall struct {
	ctx context.Context // context of the worker

	mu      sync.Mutex
	at      uint64          // id of the running call
	stopped uint64          // id of the last canceled call, which may be over or not started yet
	task    context.Context // nil if the next call needs a new context
	cancel  context.CancelCauseFunc
}

// beginCall returns the context for a call.
func (b *cancelableCall) beginCall(id uint64) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.task == nil {
		b.task, b.cancel = context.WithCancelCause(b.ctx)
	}
	task := b.task
	if b.at = id; id == b.stopped {
		b.cancelCall()
	}
	return task
}

func (b *cancelableCall) cancelCall() {
	b.cancel(errDropped)
	b.task = nil
}

// watchStops cancels calls on request until the worker ends.
func (b *cancelableCall) watchStops(stops *ipc.Receiver[uint64]) {
	for id, err := range stops.All(b.ctx) {
		if err != nil {
			return
		}
		b.mu.Lock()
		if b.stopped = id; id == b.at && b.task != nil {
			b.cancelCall()
		}
		b.mu.Unlock()
	}
}

type rankKey struct{}

// Rank returns the rank of the worker that runs the task of ctx, starting at 0, or -1 outside of a
// task. A replacement worker has the rank of the worker that it replaces.
func Rank(ctx context.Context) int {
	if rank, ok := ctx.Value(rankKey{}).(int); ok {
		return rank
	}
	return -1
}
