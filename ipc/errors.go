package ipc

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/wire"
)

// Sentinels of this package; the errors that it returns are or wrap them.
var (
	// ErrClosed is returned by a get once the queue is drained and nobody can put any more: it was finished, or the
	// last sending end was closed or died with its process. A put returns it after Finish, or when nobody can get
	// any more. So does every method after Close.
	ErrClosed = errors.New("ipc: closed")
	// ErrFull is returned by a put for which there is no room, at once or until its deadline.
	ErrFull = errors.New("ipc: queue is full")
	// ErrEmpty is returned by a get for which there is no message, at once or until its deadline.
	ErrEmpty = errors.New("ipc: queue is empty")
	// ErrType is returned when an end of a queue is received as one that carries values of another type.
	ErrType = errors.New("ipc: queue of another type")
	// ErrNotEnd is returned when what is received as an end of a queue is none.
	ErrNotEnd = errors.New("ipc: not an end of a queue")
)

// A worker's error is still ErrClosed where it is received.
func init() {
	wire.RegisterError("ipc.ErrClosed", ErrClosed)
	wire.RegisterError("ipc.ErrFull", ErrFull)
	wire.RegisterError("ipc.ErrEmpty", ErrEmpty)
	wire.RegisterError("ipc.ErrType", ErrType)
	wire.RegisterError("ipc.ErrNotEnd", ErrNotEnd)
}

// ringError returns what an error of a ring means here. state is why the operation waited.
func ringError(ctx context.Context, op string, err, state error) error {
	switch err { // the bare ones only: a block that was closed is another matter
	case nil:
		return nil
	case shm.ErrFinished, shm.ErrClosed:
		return ErrClosed
	case shm.ErrFull:
		return ErrFull
	case shm.ErrEmpty:
		return ErrEmpty
	}
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return contextError(ctx, op, state)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// contextError returns why ctx ended. If it was its deadline, the error is also the state that outlasted it.
func contextError(ctx context.Context, op string, state error) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		err = cause
	} else {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w: %w", op, state, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
