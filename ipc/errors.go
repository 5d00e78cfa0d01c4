package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
)

// Errors of this package. Returned errors are or wrap one of them; test for them with [errors.Is].
var (
	// ErrClosed is returned by every method after Close. A get returns it once the queue is empty
	// and no put can follow: the queue was finished, or the last sending end was closed or its
	// process died. A put returns it after Finish and after the last receiving end was closed. If a
	// process died, the error is a *shm.PeerError that identifies it. ErrClosed wraps
	// [os.ErrClosed].
	ErrClosed = sentinel.New("ipc: closed", os.ErrClosed)
	// ErrFull is returned by a put if the queue has no free slot, immediately or until the
	// deadline.
	ErrFull = errors.New("ipc: queue is full")
	// ErrEmpty is returned by a get if the queue has no message, immediately or until the deadline.
	ErrEmpty = errors.New("ipc: queue is empty")
	// ErrType is returned if a value is received as another type than it was sent as, for example a
	// Queue[int] as a Queue[string] or a Mutex as an Event. Lookup returns it if the name is bound
	// to a value of another type, and NewRecord if the type has no fixed layout.
	ErrType = errors.New("ipc: type mismatch")
	// ErrNotEnd is returned if a received value is not a valid end of a queue.
	ErrNotEnd = errors.New("ipc: not a queue end")
	// ErrLocked is returned if a lock or a permit is not available, immediately or until the
	// deadline.
	ErrLocked = errors.New("ipc: locked")
	// ErrNotObject is returned if a received value is not a valid synchronization object.
	ErrNotObject = errors.New("ipc: not a valid synchronization object")
	// ErrIndex is returned if an index into an Array, Records or a ShareableList is out of range.
	ErrIndex = errors.New("ipc: index out of range")
	// ErrSize is returned if a value does not fit into its memory, and if a size, capacity or count
	// is out of range.
	ErrSize = errors.New("ipc: size out of range")
	// ErrNotList is returned if a received value is not a valid ShareableList, or if one of its
	// elements is corrupt.
	ErrNotList = errors.New("ipc: not a shareable list")
	// ErrNil is returned by Bind for a nil pointer.
	ErrNil = errors.New("ipc: nil pointer")
)

// Errors of package shm for locks, semaphores and barriers. If the cause is a death, the error is a
// *shm.PeerError that identifies the process.
var (
	// ErrNotOwner is returned by an unlock if the caller does not hold the lock.
	ErrNotOwner = arena.ErrNotOwner
	// ErrOwnerDied is returned by a lock operation if the previous holder died. The caller holds
	// the lock, but the data that it guards may be inconsistent.
	ErrOwnerDied = arena.ErrOwnerDied
	// ErrNotRecoverable is returned by a lock operation if an earlier holder died and the lock was
	// unlocked without MarkConsistent.
	ErrNotRecoverable = arena.ErrNotRecoverable
	// ErrBroken is returned by a Barrier that is broken.
	ErrBroken = arena.ErrBroken
	// ErrReleased is returned by Release if a bounded semaphore already has all its permits.
	ErrReleased = arena.ErrReleased
)

// The errors are registered so that errors.Is works for them in the process that receives them.
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

// shmError translates an error of package arena to the errors of this package, and returns nil
// if err is nil. op names the operation for the text. state is the sentinel that describes the
// blocked operation, such as [ErrLocked], or nil; it is part of the error if ctx exceeded its
// deadline.
func shmError(ctx context.Context, op string, err, state error) error {
	switch err { // no errors.Is: a wrapped arena.ErrClosed is about a closed block
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
	case errors.Is(err, cause) && !errors.Is(err, ctx.Err()): // err names the process in the way
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// contextError returns the error of an operation op that ended because ctx is done. It wraps the
// error and the cause of ctx, and also state, if not nil, if the deadline was exceeded. ctx must
// be done.
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
