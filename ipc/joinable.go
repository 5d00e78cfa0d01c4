package ipc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A JoinableQueue is a queue of tasks that tracks their completion: Join blocks until each task
// that was put has been received and marked done. It can be sent to other processes like a [Queue].
// A process with a JoinableQueue has both ends. The zero JoinableQueue is closed.
//
// A process that received a task holds a permit of a semaphore until TaskDone. The permits of a
// dead process are returned, so Join does not block because of a dead process: it waits for the
// other processes and then reports the lost tasks.
type JoinableQueue[T any] struct {
	out   Sender[T]
	in    Receiver[T]
	taken *object // semaphore
	mu    Mutex   // held while a permit and then the task are taken
}

const joinableName = "JoinableQueue"

// ErrTasksLost is returned by Join, in a *shm.PeerError that identifies the process, if a process
// died before marking its tasks done.
var ErrTasksLost = errors.New("ipc: a process died before it completed its tasks")

func init() { codec.RegisterError("ipc.ErrTasksLost", ErrTasksLost) }

// NewJoinableQueue returns a queue with the given capacity, which may be [Unbounded]. The caller
// must close it. It returns [ErrSize] if capacity is 0 or out of range. The error wraps
// wire.ErrType if values of type T cannot be sent to other processes.
func NewJoinableQueue[T any](capacity int) (*JoinableQueue[T], error) {
	q, err := newEnds[T](QueueOptions{Capacity: capacity})
	if err != nil {
		return nil, fmt.Errorf("joinable queue: %w", err)
	}
	mu, err := NewMutex()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("joinable queue: %w", err), q.Close())
	}
	taken, err := newObject(joinableName, arena.SyncOptions{Form: arena.FormSemaphore, Limit: maxCount, Bounded: true})
	if err != nil {
		return nil, errors.Join(err, q.Close(), mu.Close())
	}
	return &JoinableQueue[T]{q.sender, q.receiver, taken, *mu}, nil
}

// Put puts a task, and blocks while the queue is full. For details see [Sender.Put].
func (j *JoinableQueue[T]) Put(ctx context.Context, v T) error { return j.out.Put(ctx, v) }

// TryPut puts a task, or returns [ErrFull] immediately. For details see [Sender.TryPut].
func (j *JoinableQueue[T]) TryPut(v T) error { return j.out.TryPut(v) }

// PutN puts the tasks in order and returns the number of tasks put. For details see [Sender.PutN].
func (j *JoinableQueue[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	return j.out.PutN(ctx, vs)
}

// Finish closes the queue for all senders: from then on Put returns [ErrClosed] in every
// process, and Get returns it once the queue is empty.
func (j *JoinableQueue[T]) Finish() error { return j.out.Finish() }

// Len returns the number of queued tasks, or 0 if the queue is closed.
func (j *JoinableQueue[T]) Len() int { return j.out.Len() }

// Cap returns the queue's capacity in tasks.
func (j *JoinableQueue[T]) Cap() int { return j.out.Cap() }

// Get takes the oldest task, and blocks while the queue is empty. The caller must call
// [JoinableQueue.TaskDone] for each task, and must close the task's shared memory. Get returns
// [ErrClosed] once the queue is empty and no put can follow. It returns [ErrEmpty] with
// [context.DeadlineExceeded] if the deadline of ctx expires.
func (j *JoinableQueue[T]) Get(ctx context.Context) (T, error) {
	for {
		v, err := j.takeTask(ctx)
		if err != ErrEmpty {
			return v, err
		}
		if err := j.in.Poll(ctx); err != nil {
			return v, err
		}
	}
}

// TryGet takes the oldest task, or returns [ErrEmpty] immediately. If another process is stopped in
// the middle of a get, TryGet waits for it and returns [context.DeadlineExceeded] after a second.
func (j *JoinableQueue[T]) TryGet() (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return j.takeTask(ctx)
}

// takeTask takes a permit of the semaphore, which counts the task as received, and then takes
// the task without blocking for one. The order matters: between the two steps the task is still
// in the queue, so Join does not miss it. It returns the bare [ErrEmpty], and no permit is
// taken, if the queue is empty.
func (j *JoinableQueue[T]) takeTask(ctx context.Context) (v T, err error) {
	if err := j.lockMutex(ctx); err != nil {
		return v, err
	}
	defer j.mu.Unlock()
	err = j.withPermits(ctx, "get", func(s arena.Semaphore) error { return s.Take(ctx) })
	if err != nil {
		return v, err
	}
	if v, err = j.in.TryGet(); err != nil {
		err = errors.Join(err, j.withPermits(ctx, "get", arena.Semaphore.Release))
		if errors.Is(err, ErrEmpty) {
			err = ErrEmpty
		}
	}
	return v, err
}

// lockMutex locks j.mu; the caller must unlock it if the error is nil. If the previous holder
// died, lockMutex marks the mutex consistent, because the guarded state is consistent after each
// step.
func (j *JoinableQueue[T]) lockMutex(ctx context.Context) error {
	err := j.mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) {
		return j.mu.MarkConsistent()
	}
	return err
}

func (j *JoinableQueue[T]) withPermits(ctx context.Context, op string, f func(arena.Semaphore) error) error {
	return j.taken.runOp(ctx, op, nil, func() error { return f(arena.Semaphore{Sync: j.taken.sync}) })
}

// TaskDone marks one task as done: a task that this process has received, or else one of another
// process. It returns [ErrReleased] if no received task is outstanding.
func (j *JoinableQueue[T]) TaskDone() error {
	err := j.withPermits(context.Background(), "task done", arena.Semaphore.Release)
	if errors.Is(err, ErrReleased) {
		return fmt.Errorf("%w: more tasks marked done than received", err)
	}
	return err
}

// Join blocks until the queue is empty and every received task is done. If ctx is done first, it
// returns an error that wraps the error of ctx. If a process died with outstanding tasks, Join
// waits for the other processes and then returns [ErrTasksLost] in a *shm.PeerError that
// identifies it. If several processes died, the error identifies the last one. The next Join
// does not report them again. A process that died while taking a task is reported even if the
// task is still in the queue and another process completes it.
func (j *JoinableQueue[T]) Join(ctx context.Context) error {
	for {
		err := j.withPermits(ctx, "join", func(s arena.Semaphore) error { return s.Watch(ctx, j.isIdle) })
		if err != nil {
			return err
		}
		done, err := j.isDone(ctx)
		if done || err != nil {
			return err
		}
	}
}

func (j *JoinableQueue[T]) isIdle(permits int) bool {
	return permits == maxCount && j.in.end.isEmpty()
}

// isDone reports whether the queue is empty and every received task is done. If it is, and a
// process died with outstanding tasks since the last report, the error wraps [ErrTasksLost].
// isDone holds the mutex, so no task is taken meanwhile. It must read the permits before the
// queue: a worker may put a new task and then return its permit, in this order.
func (j *JoinableQueue[T]) isDone(ctx context.Context) (done bool, err error) {
	if err := j.lockMutex(ctx); err != nil {
		return false, err
	}
	defer j.mu.Unlock()
	err = j.withPermits(ctx, "join", func(s arena.Semaphore) error {
		n, err := s.Permits()
		if done = err == nil && j.isIdle(n); done {
			err = s.TakeDeath()
		}
		return err
	})
	if p := new(arena.PeerError); errors.As(err, &p) {
		err = &arena.PeerError{PID: p.PID, Seat: p.Seat, Cause: ErrTasksLost}
	}
	return done, err
}

// Poll blocks until Get would not block: a task is queued, or none can follow. It then returns nil.
// If ctx is done first, it returns the error of ctx, with [ErrEmpty] if the deadline has expired.
func (j *JoinableQueue[T]) Poll(ctx context.Context) error { return j.in.Poll(ctx) }

// Close closes the queue in this process. It is idempotent.
func (j *JoinableQueue[T]) Close() error {
	return errors.Join(j.out.Close(), j.in.Close(), j.taken.close(), j.mu.Close())
}

// joinableTags describes the encoding: [Queue, semaphore, Mutex].
var joinableTags = &codec.Tags{Type: joinableName, Fields: []int{3}}

// marshalWire encodes references to the queue's objects.
func (j *JoinableQueue[T]) marshalWire(e *codec.Encoder) error {
	e.Tag(joinableTags, 0)
	return errors.Join(marshalPair(e, &j.out, &j.in), j.taken.marshal(e), j.mu.marshalWire(e))
}

// unmarshalWire decodes a JoinableQueue. It returns [ErrType] if the element type differs.
func (j *JoinableQueue[T]) unmarshalWire(d *codec.Decoder) (err error) {
	if err := d.OnlyTag(joinableTags); err != nil {
		return err
	}
	if err := unmarshalPair(d, &j.out, &j.in); err != nil {
		return err
	}
	if j.taken, err = readObject(d, joinableName, arena.FormSemaphore); err != nil {
		return err
	}
	return j.mu.unmarshalWire(d)
}
