package manager

import (
	"context"
	"errors"
	"fmt"
)

// A Queue is a first-in-first-out queue in the server. Other machines reach it through the server.
// Within one machine an ipc.Queue does the same without a server.
type Queue[T any] struct{ fifo[T] }

// NewQueue makes a queue in which capacity values may wait; 0 means any number. The caller closes
// it.
func NewQueue[T any](ctx context.Context, m *Manager, capacity int) (*Queue[T], error) {
	if err := check[T](); err != nil {
		return nil, fmt.Errorf("manager: new Queue: %w", err)
	}
	p, err := create[Queue[T]](ctx, m, queueKind, in(capacity))
	return &Queue[T]{fifo[T]{counted[Queue[T]]{p}}}, err
}

// A fifo is the proxy of a Queue or a JoinableQueue, which travel alike.
type fifo[T any] struct{ counted[Queue[T]] }

// Put puts v and waits while the queue is full. The caller still closes v. At the deadline of ctx
// the error wraps ErrFull and context.DeadlineExceeded.
func (q *fifo[T]) Put(ctx context.Context, v T) error {
	return outlasted(q.call(ctx, queuePut, in(v)).none(), ErrFull)
}

// TryPut puts v, or returns ErrFull at once.
func (q *fifo[T]) TryPut(ctx context.Context, v T) error {
	return q.call(ctx, queueTryPut, in(v)).none()
}

// Get takes the oldest value and waits while there is none. The caller closes what the value
// holds. At the deadline of ctx the error wraps ErrEmpty and context.DeadlineExceeded; a value
// that is there is taken also after the deadline, as with [ipc.Receiver.Get]. A value that
// arrives after ctx has ended goes back to its place in the queue.
func (q *fifo[T]) Get(ctx context.Context) (T, error) {
	v, err := one[T](q.callUndo(ctx, queueUnget.with, queueGet))
	return v, outlasted(err, ErrEmpty)
}

// TryGet takes the oldest value, or returns ErrEmpty at once. The caller closes what the value
// holds.
func (q *fifo[T]) TryGet(ctx context.Context) (T, error) {
	return one[T](q.callUndo(ctx, queueUnget.with, queueTryGet))
}

// Cap returns how many values may wait, 0 for any number.
func (q *fifo[T]) Cap(ctx context.Context) (int, error) { return one[int](q.call(ctx, queueCap)) }

// outlasted adds the state that a deadline did not see the end of.
func outlasted(err, state error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", state, err)
	}
	return err
}

// A JoinableQueue is a Queue that counts unfinished values: those that were put, and for which no
// TaskDone was called.
type JoinableQueue[T any] struct{ fifo[T] }

// NewJoinableQueue makes a queue in which capacity values may wait; 0 means any number. The caller
// closes it.
func NewJoinableQueue[T any](ctx context.Context, m *Manager, capacity int) (*JoinableQueue[T], error) {
	q, err := NewQueue[T](ctx, m, capacity)
	if err != nil {
		return nil, err
	}
	return &JoinableQueue[T]{q.fifo}, nil
}

// TaskDone says that the caller is done with one value that it got. The error is ErrReleased if no
// value is unfinished.
func (q *JoinableQueue[T]) TaskDone(ctx context.Context) error { return q.call(ctx, queueDone).none() }

// Join waits until no value is unfinished. If a process dies with unfinished values, Join waits for
// the values of the others and then returns ErrTasksLost, with the process id and the number of
// values of each dead process. Only one Join reports them, and then they no longer count as
// unfinished.
func (q *JoinableQueue[T]) Join(ctx context.Context) error { return q.call(ctx, queueJoin).none() }

// A queue is the state of Queue and JoinableQueue.
type queue struct {
	capacity   int
	items      []item
	unfinished int
	taken      map[*session]int // got and not done
	lost       []error
}

// What can be asked of a Queue.
var (
	queueKind = newKind("Queue", newQueue)

	queuePut    = define(queueKind, "put", (*queue).put)
	queueTryPut = define(queueKind, "tryput", (*queue).tryPut)
	queueGet    = define(queueKind, "get", (*queue).get)
	queueTryGet = define(queueKind, "tryget", (*queue).tryGet)
	queueUnget  = define(queueKind, "unget", (*queue).unget)
	_           = define(queueKind, countedLen.name, (*queue).len)
	queueCap    = define(queueKind, "cap", (*queue).cap)
	queueDone   = define(queueKind, "done", (*queue).done)
	queueJoin   = define(queueKind, "join", (*queue).join)
)

func newQueue(c *call) (any, error) {
	n, err := arg[int](c, 0)
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: capacity %d", ErrArgument, n)
	}
	return &queue{capacity: n, taken: make(map[*session]int)}, err
}

func (q *queue) tryPut(c *call) error {
	if q.capacity > 0 && len(q.items) >= q.capacity {
		return ErrFull
	}
	it, err := c.item(0)
	if err == nil {
		q.items = append(q.items, it)
		q.unfinished++
	}
	return err
}

func (q *queue) put(c *call) error { return orWait(q.tryPut(c), ErrFull) }

func (q *queue) tryGet(c *call) error {
	if len(q.items) == 0 {
		return ErrEmpty
	}
	c.results = append(c.results, q.items[0])
	q.items = q.items[1:]
	q.taken[c.session()]++
	return nil
}

func (q *queue) get(c *call) error { return orWait(q.tryGet(c), ErrEmpty) }

// orWait is the error of an operation that waits, by that of one that returns state instead.
func orWait(err, state error) error {
	if err == state {
		return errWait
	}
	return err
}

// orState is the error of an operation that returns state, by that of one that waits instead.
func orState(err, state error) error {
	if err == errWait {
		return state
	}
	return err
}

// unget puts a value back that nobody waited for any more.
func (q *queue) unget(c *call) error {
	it, err := c.item(0)
	if err == nil {
		q.items = append([]item{it}, q.items...)
		q.taken[c.session()]--
	}
	return err
}

func (q *queue) len(c *call) error { return give(c, len(q.items)) }

func (q *queue) cap(c *call) error { return give(c, q.capacity) }

// done counts against the process that says it, which has got the value as a rule.
func (q *queue) done(c *call) error {
	if q.unfinished <= len(q.items) {
		return ErrReleased
	}
	q.unfinished--
	if q.taken[c.session()] > 0 {
		q.taken[c.session()]--
	}
	return nil
}

func (q *queue) join(*call) error {
	if q.unfinished > 0 {
		return errWait
	}
	err := errors.Join(q.lost...)
	q.lost = nil
	return err
}

func (q *queue) leave(s *session) {
	if n := q.taken[s]; n > 0 {
		q.unfinished = max(q.unfinished-n, len(q.items))
		q.lost = append(q.lost, died(s.pid, fmt.Errorf("%w: %d of them", ErrTasksLost, n)))
	}
	delete(q.taken, s)
}

func (q *queue) close(k keeper) {
	releaseAll(k, q.items)
	q.items = nil
}

func (q *queue) save(k keeper) undo {
	old := *q
	old.items, old.taken = nil, make(map[*session]int)
	for _, it := range q.items {
		if kept, err := it.retain(k); err == nil {
			old.items = append(old.items, kept)
		}
	}
	for s, n := range q.taken {
		old.taken[s] = n
	}
	return undo{
		restore: func() {
			here := q.taken
			q.close(k)
			*q = old
			for s := range old.taken {
				if _, ok := here[s]; !ok { // it has left meanwhile, and does not come back
					q.leave(s)
				}
			}
		},
		discard: func() { old.close(k) },
	}
}
