package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/ipc"
)

// A Queue is a first-in-first-out queue in the server. Other machines can access it through the
// server. Within one machine, an ipc.Queue needs no server.
type Queue[T any] struct{ fifo[T] }

// NewQueue creates a queue with the given capacity, which may be ipc.Unbounded. The caller must
// close it. It returns [ErrArgument] if capacity is 0 or another negative number.
func NewQueue[T any](ctx context.Context, m *Manager, capacity int) (*Queue[T], error) {
	if err := checkType[T](); err != nil {
		return nil, fmt.Errorf("manager: new Queue: %w", err)
	}
	switch capacity {
	case 0:
		return nil, fmt.Errorf("manager: new Queue: %w: capacity 0: want at least 1, or ipc.Unbounded", ErrArgument)
	case ipc.Unbounded:
		capacity = 0
	}
	p, err := createTyped[Queue[T]](ctx, m, queueKind, encodeArg(capacity))
	return &Queue[T]{fifo[T]{counted[Queue[T]]{p}}}, err
}

// A fifo is the common part of a Queue and a JoinableQueue, which have the same encoding, so
// that either may be received as the other.
type fifo[T any] struct{ counted[Queue[T]] }

// Put puts v, and blocks while the queue is full. The caller must still close v. If the deadline of
// ctx expires, the error wraps [ErrFull] and [context.DeadlineExceeded].
func (q *fifo[T]) Put(ctx context.Context, v T) error {
	return joinState(q.call(ctx, queuePut, encodeArg(v)).noResult(), ErrFull)
}

// TryPut puts v, or returns [ErrFull] immediately. The caller must still close v.
func (q *fifo[T]) TryPut(ctx context.Context, v T) error {
	return q.call(ctx, queueTryPut, encodeArg(v)).noResult()
}

// Get takes the oldest value, and blocks while the queue is empty. The caller must close the
// value's shared memory. If the deadline of ctx expires, the error wraps [ErrEmpty] and
// [context.DeadlineExceeded]; an available value is returned even after the deadline, as by
// [ipc.Receiver.Get]. A value that is delivered after ctx is done returns to the front of the
// queue.
func (q *fifo[T]) Get(ctx context.Context) (T, error) {
	v, err := oneResult[T](q.callUndo(ctx, queueUnget.newRequest, queueGet))
	return v, joinState(err, ErrEmpty)
}

// TryGet takes the oldest value, or returns [ErrEmpty] immediately. The caller must close the
// value's shared memory.
func (q *fifo[T]) TryGet(ctx context.Context) (T, error) {
	return oneResult[T](q.callUndo(ctx, queueUnget.newRequest, queueTryGet))
}

// Cap returns the queue's capacity, or ipc.Unbounded.
func (q *fifo[T]) Cap(ctx context.Context) (int, error) {
	n, err := oneResult[int](q.call(ctx, queueCap))
	if err == nil && n == 0 {
		n = ipc.Unbounded
	}
	return n, err
}

// joinState returns err, and wraps it together with state if err is the error of an exceeded
// deadline. state is [ErrFull] or [ErrEmpty].
func joinState(err, state error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", state, err)
	}
	return err
}

// A JoinableQueue is a Queue that counts unfinished values: values that were put, but not marked
// done with TaskDone. All methods may be called from several goroutines.
type JoinableQueue[T any] struct{ fifo[T] }

// NewJoinableQueue creates a queue with the given capacity, which may be ipc.Unbounded. The caller
// must close it. It returns [ErrArgument] if capacity is 0 or another negative number.
func NewJoinableQueue[T any](ctx context.Context, m *Manager, capacity int) (*JoinableQueue[T], error) {
	q, err := NewQueue[T](ctx, m, capacity)
	if err != nil {
		return nil, err
	}
	return &JoinableQueue[T]{q.fifo}, nil
}

// TaskDone marks one value that the caller has received as done. It returns [ErrReleased] if no
// received value is unfinished.
func (q *JoinableQueue[T]) TaskDone(ctx context.Context) error {
	return q.call(ctx, queueDone).noResult()
}

// Join blocks until no value is unfinished. If a process died with unfinished values, Join waits
// for the values of other processes and then returns [ErrTasksLost], with the process id and the
// number of values for each dead process. Each death is reported by one Join only. Lost values do
// not count as unfinished.
func (q *JoinableQueue[T]) Join(ctx context.Context) error { return q.call(ctx, queueJoin).noResult() }

// A queue is the server's state of a Queue or a JoinableQueue.
type queue struct {
	capacity   int // 0 means unbounded
	items      []item
	unfinished int
	taken      map[*session]int // received and unfinished values by client
	lost       []error
}

// Methods of a Queue.
var (
	queueKind = newKind("Queue", newQueue)

	queuePut    = defineMethod(queueKind, "put", (*queue).put)
	queueTryPut = defineMethod(queueKind, "tryput", (*queue).tryPut)
	queueGet    = defineMethod(queueKind, "get", (*queue).get)
	queueTryGet = defineMethod(queueKind, "tryget", (*queue).tryGet)
	queueUnget  = defineMethod(queueKind, "unget", (*queue).ungetItem)
	_           = defineMethod(queueKind, countedLen.name, (*queue).len)
	queueCap    = defineMethod(queueKind, "cap", (*queue).cap)
	queueDone   = defineMethod(queueKind, "done", (*queue).done)
	queueJoin   = defineMethod(queueKind, "join", (*queue).join)
)

func newQueue(c *call) (any, error) {
	n, err := decodeArg[int](c, 0)
	if err == nil && n < 0 {
		err = fmt.Errorf("%w: capacity %d, want at least 1, or ipc.Unbounded", ErrArgument, n)
	}
	return &queue{capacity: n, taken: make(map[*session]int)}, err
}

func (q *queue) tryPut(c *call) error {
	if q.capacity > 0 && len(q.items) >= q.capacity {
		return ErrFull
	}
	it, err := c.takeArg(0)
	if err == nil {
		q.items = append(q.items, it)
		q.unfinished++
	}
	return err
}

func (q *queue) put(c *call) error { return stateToWait(q.tryPut(c), ErrFull) }

func (q *queue) tryGet(c *call) error {
	if len(q.items) == 0 {
		return ErrEmpty
	}
	c.results = append(c.results, q.items[0])
	q.items = q.items[1:]
	q.taken[c.session()]++
	return nil
}

func (q *queue) get(c *call) error { return stateToWait(q.tryGet(c), ErrEmpty) }

// stateToWait returns errWait if err is state, the error of a non-blocking operation that would
// have to wait, such as [ErrFull]. Otherwise it returns err.
func stateToWait(err, state error) error {
	if err == state {
		return errWait
	}
	return err
}

// waitToState returns state if err is errWait. Otherwise it returns err. It is the inverse of
// [stateToWait].
func waitToState(err, state error) error {
	if err == errWait {
		return state
	}
	return err
}

// ungetItem returns the value in argument 0 to the front of the queue, because its receiver
// stopped waiting. It returns [ErrArgument] if the call has no argument. The value no longer
// counts as received by the calling process.
func (q *queue) ungetItem(c *call) error {
	it, err := c.takeArg(0)
	if err == nil {
		q.items = append([]item{it}, q.items...)
		q.taken[c.session()]--
	}
	return err
}

func (q *queue) len(c *call) error { return addResult(c, len(q.items)) }

func (q *queue) cap(c *call) error { return addResult(c, q.capacity) }

// done marks a received value as done. It counts for the calling process, which is usually the
// one that received the value. It returns [ErrReleased] if no received value is unfinished.
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

func (q *queue) endSession(s *session) {
	if n := q.taken[s]; n > 0 {
		q.unfinished = max(q.unfinished-n, len(q.items))
		q.lost = append(q.lost, newPeerError(s.pid, fmt.Errorf("%w: %d unfinished tasks", ErrTasksLost, n)))
	}
	delete(q.taken, s)
}

func (q *queue) close(k keeper) {
	releaseAll(k, q.items)
	q.items = nil
}

func (q *queue) saveState(k keeper) undo {
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
				if _, ok := here[s]; !ok { // it has left during the transaction
					q.endSession(s)
				}
			}
		},
		discard: func() { old.close(k) },
	}
}
