package pool

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A workerArgs is the argument of [runWorker] in a worker: its ends of the queues, and the
// initializer.
type workerArgs struct {
	Calls   *ipc.Receiver[call] // nil on a goroutine
	Replies *ipc.Sender[reply]  // nil on a goroutine
	Stops   *ipc.Receiver[uint64]
	Init    call   // the function name is empty if there is no initializer
	Link    uint64 // number of the [localLink] on a goroutine, otherwise 0
}

// A worker is the state of a running worker.
type worker struct {
	calls interface {
		Get(ctx context.Context) (call, error)
	}
	replies interface {
		Put(ctx context.Context, r reply) error
	}
	current *cancelableCall
}

// poolWorker is the registered entry point of every worker.
var poolWorker = shoal.Register("pool", runWorker)

// runWorker is the function of a worker: it runs the initializer, sends a reply with id 0, and
// runs calls until there are no more, and then returns nil, or until the pool ends. It returns
// the error of the initializer, if it fails. A panic of a task ends the worker, because the task
// may have left shared state inconsistent for the next one.
func runWorker(ctx context.Context, rank int, s workerArgs) error {
	defer s.closeQueues()
	w := worker{calls: s.Calls, replies: s.Replies}
	if s.Link != 0 {
		l, err := findLocalLink(s.Link)
		if err != nil {
			return err
		}
		w.calls, w.replies = l.calls, l.replies
	}
	ctx, end := context.WithCancel(context.WithValue(ctx, rankKey{}, rank))
	defer end()
	if s.Init.fn != "" {
		if r := performCall(ctx, s.Init); r.err != nil {
			return r.err
		}
	}
	if err := w.replies.Put(ctx, reply{}); err != nil {
		return err
	}
	w.current = &cancelableCall{ctx: ctx}
	defer w.current.releaseContexts()
	go w.current.watchStops(s.Stops)
	return w.runCalls(ctx)
}

func (s *workerArgs) closeQueues() {
	s.Init.args.releaseBlocks()
	s.Stops.Close()
	if s.Link == 0 {
		s.Replies.Close()
		s.Calls.Close()
	}
}

// runCalls runs calls one after another. It returns nil when the queue of calls is finished,
// the cause of ctx when ctx is done, and any other error of receiving a call or sending a
// reply. The error of a call is sent in its reply.
func (w *worker) runCalls(ctx context.Context) error {
	for {
		c, err := w.calls.Get(ctx)
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
		if err := w.answerCall(ctx, c); err != nil {
			return err
		}
	}
}

// answerCall runs the call c, sends the reply, and releases the arguments. It returns an error
// only if the reply cannot be sent.
func (w *worker) answerCall(ctx context.Context, c call) error {
	defer c.args.releaseBlocks()
	begin := time.Now()
	r := performCall(w.current.beginCall(c.id, c.deadline), c)
	r.id, r.took = c.id, time.Since(begin)
	defer r.results.releaseBlocks()
	err := w.replies.Put(ctx, r)
	if err == nil || ctx.Err() != nil || errors.Is(err, ipc.ErrClosed) {
		return err
	}
	// For example, there is no memory for the results. A reply with only the error is small.
	return w.replies.Put(ctx, reply{id: c.id, err: err, took: r.took})
}

// A cancelableCall holds the contexts of the calls of one worker, which runs one call at a time,
// so that the running call can be canceled. Consecutive calls with the same deadline share a
// context until one of them is canceled.
type cancelableCall struct {
	ctx context.Context // context of the worker

	mu       sync.Mutex
	at       uint64          // id of the running call
	stopped  uint64          // id of the last canceled call, which may be over or not started yet
	task     context.Context // nil if the next call needs a new context
	cancel   context.CancelCauseFunc
	timed    context.Context // task with the deadline; nil if the next call needs a new one
	deadline sys.Deadline    // deadline of timed
	free     context.CancelFunc
}

// beginCall returns the context for the call id, with a deadline or, if that is 0, without one. The
// context is canceled when the pool asks to stop this id. The caller must not end it, because later
// calls share it.
func (b *cancelableCall) beginCall(id uint64, deadline sys.Deadline) context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.task == nil {
		b.task, b.cancel = context.WithCancelCause(b.ctx)
	}
	task := b.task
	if deadline != 0 {
		task = b.timedContext(deadline)
	}
	if b.at = id; id == b.stopped {
		b.cancelCall()
	}
	return task
}

// timedContext returns b.task with the given deadline. b.mu must be held.
func (b *cancelableCall) timedContext(deadline sys.Deadline) context.Context {
	if b.timed == nil || b.deadline != deadline {
		b.freeTimedContext()
		b.deadline = deadline
		b.timed, b.free = deadline.Context(b.task)
	}
	return b.timed
}

func (b *cancelableCall) freeTimedContext() {
	if b.timed != nil {
		b.free()
		b.timed, b.free = nil, nil
	}
}

func (b *cancelableCall) cancelCall() {
	b.cancel(errDropped)
	b.task = nil
	b.freeTimedContext()
}

// releaseContexts releases the contexts. It must be called when the worker ends.
func (b *cancelableCall) releaseContexts() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeTimedContext()
	if b.task != nil {
		b.cancelCall()
	}
}

// watchStops cancels the calls with the ids that it receives from stops, until b.ctx is done. It
// should run on its own goroutine.
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
