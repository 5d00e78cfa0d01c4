package ipc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A JoinableQueue is a queue of tasks: Join waits until each value that was put was got and is
// done. It travels like a Queue. A process that has a JoinableQueue has both ends. The zero
// JoinableQueue is closed.
//
// A process that has got a task has a permit of a semaphore until TaskDone, and the permits of a
// dead process are returned. So Join does not wait for the dead: it waits for all other processes,
// and then says that tasks are lost.
type JoinableQueue[T any] struct {
	out   Sender[T]
	in    Receiver[T]
	taken *object // the semaphore
	mu    Mutex   // held from taking a permit to taking the task
}

const joinableName = "JoinableQueue"

// ErrTasksLost is returned by Join in a *shm.PeerError that names a process which died with tasks
// in its hands.
var ErrTasksLost = errors.New("ipc: tasks of a dead process are not done")

func init() { codec.RegisterError("ipc.ErrTasksLost", ErrTasksLost) }

// NewJoinableQueue makes a queue in which capacity values may wait, 0 for as many as there is
// memory. The caller closes it.
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

// Put puts a task and waits while the queue is full. Everything else is as with [Sender.Put].
func (j *JoinableQueue[T]) Put(ctx context.Context, v T) error { return j.out.Put(ctx, v) }

// TryPut puts a task, or returns ErrFull at once. Everything else is as with [Sender.TryPut].
func (j *JoinableQueue[T]) TryPut(v T) error { return j.out.TryPut(v) }

// PutN puts the tasks one after the other and returns how many it has put. Everything else is as
// with [Sender.PutN].
func (j *JoinableQueue[T]) PutN(ctx context.Context, vs []T) (n int, err error) {
	return j.out.PutN(ctx, vs)
}

// Finish ends the queue for every sender: puts return ErrClosed, and so do gets once the queue is
// empty.
func (j *JoinableQueue[T]) Finish() error { return j.out.Finish() }

// Len returns the number of tasks that wait in the queue, 0 if it is closed.
func (j *JoinableQueue[T]) Len() int { return j.out.Len() }

// Cap returns the number of tasks for which the queue has room.
func (j *JoinableQueue[T]) Cap() int { return j.out.Cap() }

// Get takes the oldest task and waits while there is none. Each Get that returns no error needs a
// TaskDone. The caller closes what the task holds of shared memory. The error is ErrClosed once the
// queue is empty and no put can follow; ErrEmpty and context.DeadlineExceeded if ctx had a
// deadline.
func (j *JoinableQueue[T]) Get(ctx context.Context) (T, error) {
	for {
		v, err := j.take(ctx)
		if err != ErrEmpty {
			return v, err
		}
		if err := j.in.Poll(ctx); err != nil {
			return v, err
		}
	}
}

// TryGet takes the oldest task, or returns ErrEmpty at once. The error is context.DeadlineExceeded
// where a process is stopped in the middle of a get, and does not go on within a second.
func (j *JoinableQueue[T]) TryGet() (T, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	return j.take(ctx)
}

// take takes a permit before the task: between the two the task is in the queue, and Join waits for
// it there.
func (j *JoinableQueue[T]) take(ctx context.Context) (v T, err error) {
	if err := j.lock(ctx); err != nil {
		return v, err
	}
	defer j.mu.Unlock()
	err = j.permits(ctx, "get", func(s arena.Semaphore) error { return s.Take(ctx) })
	if err != nil {
		return v, err
	}
	if v, err = j.in.TryGet(); err != nil {
		err = errors.Join(err, j.permits(ctx, "get", arena.Semaphore.Release))
		if errors.Is(err, ErrEmpty) {
			err = ErrEmpty
		}
	}
	return v, err
}

// lock does not mind a death: what the lock guards is in order at each step.
func (j *JoinableQueue[T]) lock(ctx context.Context) error {
	err := j.mu.Lock(ctx)
	if errors.Is(err, ErrOwnerDied) {
		return j.mu.MarkConsistent()
	}
	return err
}

func (j *JoinableQueue[T]) permits(ctx context.Context, op string, f func(arena.Semaphore) error) error {
	return j.taken.do(ctx, op, nil, func() error { return f(arena.Semaphore{Sync: j.taken.sync}) })
}

// TaskDone says that a task is done: one that this process has got, or else one that another
// process has. It returns ErrReleased if no process has a task.
func (j *JoinableQueue[T]) TaskDone() error {
	err := j.permits(context.Background(), "task done", arena.Semaphore.Release)
	if errors.Is(err, ErrReleased) {
		return fmt.Errorf("%w: more tasks are done than were got", err)
	}
	return err
}

// Join waits until the queue is empty and every task that was got is done. If a process has died
// with tasks in its hands, Join waits for the others and then returns ErrTasksLost in a
// *shm.PeerError with the process's id, of several such processes that of one. The next Join does
// not report it again. A process that died just as it took a task counts, even if the task is still
// in the queue and another process does it.
func (j *JoinableQueue[T]) Join(ctx context.Context) error {
	for {
		err := j.permits(ctx, "join", func(s arena.Semaphore) error { return s.Watch(ctx, j.idle) })
		if err != nil {
			return err
		}
		done, err := j.done(ctx)
		if done || err != nil {
			return err
		}
	}
}

func (j *JoinableQueue[T]) idle(permits int) bool {
	return permits == maxCount && j.in.end.empty()
}

// done looks again while nobody can take a task. The permits come first: a sender puts a task and
// gives its permit back in this order.
func (j *JoinableQueue[T]) done(ctx context.Context) (done bool, err error) {
	if err := j.lock(ctx); err != nil {
		return false, err
	}
	defer j.mu.Unlock()
	err = j.permits(ctx, "join", func(s arena.Semaphore) error {
		n, err := s.Permits()
		if done = err == nil && j.idle(n); done {
			err = s.TakeDeath()
		}
		return err
	})
	if p := new(arena.PeerError); errors.As(err, &p) {
		err = &arena.PeerError{PID: p.PID, Seat: p.Seat, Cause: ErrTasksLost}
	}
	return done, err
}

// Poll waits until a Get would not wait: a task is there, or there will never be one. The error is
// ErrEmpty and context.DeadlineExceeded if ctx had a deadline.
func (j *JoinableQueue[T]) Poll(ctx context.Context) error { return j.in.Poll(ctx) }

// Close closes the queue in this process. It is idempotent.
func (j *JoinableQueue[T]) Close() error {
	return errors.Join(j.out.Close(), j.in.Close(), j.taken.close(), j.mu.Close())
}

// joinableTags are those of [Queue, semaphore, Mutex].
var joinableTags = &codec.Tags{Type: joinableName, Fields: []int{3}}

// marshalWire lets a queue be part of a value that is sent.
func (j *JoinableQueue[T]) marshalWire(e *codec.Encoder) error {
	e.Tag(joinableTags, 0)
	return errors.Join(marshalPair(e, &j.out, &j.in), j.taken.marshal(e), j.mu.marshalWire(e))
}

// unmarshalWire is the counterpart of marshalWire. The error is ErrType if the queue carries
// another type.
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
