package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Sentinels of this package; the errors that it returns are or wrap them.
var (
	// ErrClosed is returned by a get once the queue is drained and no put can follow: the queue was
	// finished, or the last sending end was closed or died with its process. A put returns it after
	// Finish and after the end of the last receiving end, every method after Close. If a process
	// died, the error is a *shm.PeerError that names it. ErrClosed wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("ipc: closed%.0w", os.ErrClosed)
	// ErrFull is returned by a put for which there is no room, at once or until its deadline.
	ErrFull = errors.New("ipc: queue is full")
	// ErrEmpty is returned by a get for which there is no message, at once or until its deadline.
	ErrEmpty = errors.New("ipc: queue is empty")
	// ErrType is returned when an end of a queue is received as one that carries values of another
	// type, or a Mutex as an Event, for a name that stands for another type, and for a Record of a
	// type that has no fixed layout.
	ErrType = errors.New("ipc: another type")
	// ErrNotEnd is returned when what is received as an end of a queue is none.
	ErrNotEnd = errors.New("ipc: not an end of a queue")
	// ErrLocked is returned where a lock, or a permit, is not to be had at once or before the
	// deadline.
	ErrLocked = errors.New("ipc: locked")
	// ErrNotObject is returned when what is received as a Mutex or the like is none.
	ErrNotObject = errors.New("ipc: not what it is received as")
	// ErrIndex is returned for elements that an Array or a list does not have.
	ErrIndex = errors.New("ipc: index out of range")
	// ErrSize is returned for what has no room in its memory, and for sizes, capacities and counts
	// that there cannot be.
	ErrSize = errors.New("ipc: size does not fit")
	// ErrNotList is returned when what is received as a ShareableList, or as an element of one, is
	// none.
	ErrNotList = errors.New("ipc: not a shareable list")
	// ErrNil is returned by a Bind of a nil pointer.
	ErrNil = errors.New("ipc: nil pointer")
)

// What package shm says of locks, semaphores and barriers. Where it was a death, the error is a
// *[shm.PeerError] that names the process.
var (
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = arena.ErrNotOwner
	// ErrOwnerDied comes with a lock whose holder died: the caller holds the lock, and the data
	// that it guards may be half changed.
	ErrOwnerDied = arena.ErrOwnerDied
	// ErrNotRecoverable is returned for a lock whose holder died and that was unlocked without
	// MarkConsistent.
	ErrNotRecoverable = arena.ErrNotRecoverable
	// ErrBroken is returned by a Barrier that is broken.
	ErrBroken = arena.ErrBroken
	// ErrReleased is returned by a Release that would give a bounded semaphore too many permits.
	ErrReleased = arena.ErrReleased
)

// A worker's error is still ErrClosed where it is received.
func init() {
	codec.RegisterError("ipc.ErrClosed", ErrClosed)
	codec.RegisterError("ipc.ErrFull", ErrFull)
	codec.RegisterError("ipc.ErrEmpty", ErrEmpty)
	codec.RegisterError("ipc.ErrType", ErrType)
	codec.RegisterError("ipc.ErrNil", ErrNil)
	codec.RegisterError("ipc.ErrNotEnd", ErrNotEnd)
	codec.RegisterError("ipc.ErrLocked", ErrLocked)
	codec.RegisterError("ipc.ErrNotObject", ErrNotObject)
	codec.RegisterError("ipc.ErrIndex", ErrIndex)
	codec.RegisterError("ipc.ErrNotOwner", ErrNotOwner)
	codec.RegisterError("ipc.ErrOwnerDied", ErrOwnerDied)
	codec.RegisterError("ipc.ErrNotRecoverable", ErrNotRecoverable)
	codec.RegisterError("ipc.ErrBroken", ErrBroken)
	codec.RegisterError("ipc.ErrReleased", ErrReleased)
	codec.RegisterError("ipc.ErrSize", ErrSize)
	codec.RegisterError("ipc.ErrNotList", ErrNotList)
	codec.RegisterError("ipc.ErrKey", ErrKey)
	codec.RegisterError("ipc.ErrPeer", ErrPeer)
}

// shmError returns what an error of package shm means here. state is why the operation waited, or
// nil.
func shmError(ctx context.Context, op string, err, state error) error {
	switch err { // the bare ones only: a block that was closed is another matter
	case nil:
		return nil
	case arena.ErrFinished, arena.ErrClosed:
		return ErrClosed
	case arena.ErrFull:
		return ErrFull
	case arena.ErrEmpty:
		return ErrEmpty
	case arena.ErrLocked:
		return ErrLocked
	}
	if p := new(arena.PeerError); errors.As(err, &p) && p.Cause == arena.ErrFinished {
		return &arena.PeerError{PID: p.PID, Seat: p.Seat, Cause: ErrClosed}
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case err == cause:
		return contextError(ctx, op, state)
	case errors.Is(err, cause) && !errors.Is(err, ctx.Err()): // it says for what was waited
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// contextError returns why ctx ended. If it was its deadline, the error is also the state that
// outlasted it.
func contextError(ctx context.Context, op string, state error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		err = cause
	} else {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if state != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: %w", op, state, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
