package manager

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// Sentinels of this package; the errors that it returns wrap them. What package ipc has too is the
// same error here.
var (
	// ErrClosed is returned by the methods of a manager or a proxy that this process has closed.
	// It wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("manager: closed%.0w", os.ErrClosed)
	// ErrServerDied is returned once the server is gone; it comes in a *shm.PeerError.
	ErrServerDied = errors.New("manager: the server is gone")
	// ErrNoObject is returned for an object that the server does not have.
	ErrNoObject = errors.New("manager: no such object")
	// ErrNoMethod is returned for a method that an object does not have.
	ErrNoMethod = errors.New("manager: no such method")
	// ErrArgument is returned where the arguments of a call, or their number, are not what the
	// method takes.
	ErrArgument = errors.New("manager: wrong argument")
	// ErrType is returned where a proxy is received as one of another type.
	ErrType = errors.New("manager: proxy of another type")
	// ErrNotNumber is returned by an Add to what is no number.
	ErrNotNumber = errors.New("manager: not a number")
	// ErrNotOrdered is returned by a Sort of what is neither number nor string.
	ErrNotOrdered = errors.New("manager: not ordered")
	// ErrNoKey is returned for a key that a Dict, a Set or a Namespace, or a value that a List does
	// not have.
	ErrNoKey = errors.New("manager: no such key")
	// ErrIndex is returned for an index outside of a List or an Array.
	ErrIndex = ipc.ErrIndex
	// ErrFull and ErrEmpty are what a queue was, at once or until the deadline.
	ErrFull  = ipc.ErrFull
	ErrEmpty = ipc.ErrEmpty
	// ErrLocked is returned by a TryLock or a TryAcquire that would have to wait.
	ErrLocked = ipc.ErrLocked
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = ipc.ErrNotOwner
	// ErrOwnerDied is returned by a Lock after the owner died, in a *shm.PeerError: the caller has
	// the lock, and what it protects may be half changed. Repair that and call MarkConsistent, or
	// Unlock makes the lock unusable for all.
	ErrOwnerDied = ipc.ErrOwnerDied
	// ErrNotRecoverable is returned by a lock that was unlocked after ErrOwnerDied without
	// MarkConsistent.
	ErrNotRecoverable = ipc.ErrNotRecoverable
	// ErrBroken is returned by a Barrier that a waiter has left, by its death or its deadline, or
	// that was aborted.
	ErrBroken = ipc.ErrBroken
	// ErrTooOften is returned by a Release of a bounded semaphore, or a TaskDone, that nothing
	// stands against.
	ErrTooOften = ipc.ErrReleased
	// ErrTasksLost is returned by Join when processes died with unfinished tasks; it comes in a
	// *shm.PeerError.
	ErrTasksLost = ipc.ErrTasksLost
	// ErrPanic is returned where a method panicked in the server, which goes on; it comes as
	// *PanicError.
	ErrPanic = errors.New("manager: a method panicked")
	// ErrTxn is returned within a Txn by what cannot be undone, or would wait for others, whom the
	// Txn keeps out.
	ErrTxn = errors.New("manager: not possible in a transaction")
	// ErrShared is returned where shared memory, such as a tensor's, would have to leave the
	// machine: send its values.
	ErrShared = ipc.ErrShared
	// ErrForeign is returned where a proxy is given to a server that it does not belong to.
	ErrForeign = errors.New("manager: proxy of another server")
)

func init() {
	wire.RegisterError("manager.ErrClosed", ErrClosed)
	wire.RegisterError("manager.ErrServerDied", ErrServerDied)
	wire.RegisterError("manager.ErrNoObject", ErrNoObject)
	wire.RegisterError("manager.ErrNoMethod", ErrNoMethod)
	wire.RegisterError("manager.ErrArgument", ErrArgument)
	wire.RegisterError("manager.ErrType", ErrType)
	wire.RegisterError("manager.ErrNotNumber", ErrNotNumber)
	wire.RegisterError("manager.ErrNotOrdered", ErrNotOrdered)
	wire.RegisterError("manager.ErrNoKey", ErrNoKey)
	wire.RegisterError("manager.ErrPanic", ErrPanic)
	wire.RegisterError("manager.ErrTxn", ErrTxn)
	wire.RegisterError("manager.ErrForeign", ErrForeign)
	wire.RegisterType[*PanicError]("manager.PanicError")
}

// serverDied is the error of a server that is gone, 0 if that was on another machine. cause is why,
// or nil.
func serverDied(pid int, cause error) error {
	if cause == nil {
		return died(pid, ErrServerDied)
	}
	return died(pid, fmt.Errorf("%w: %w", ErrServerDied, cause))
}

// died is the error of the death of a process, 0 if that was on another machine, by what it means.
func died(pid int, cause error) error { return &shm.PeerError{PID: pid, Seat: -1, Cause: cause} }

// A PanicError is a panic of a method in the server. %+v prints the stack.
type PanicError struct {
	Object, Method string
	Text           string
	Stack          string // of the server's goroutine
}

// Error returns one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: %s.%s: %s", ErrPanic, e.Object, e.Method, e.Text)
}

// Unwrap returns ErrPanic.
func (e *PanicError) Unwrap() error { return ErrPanic }

// Format prints the line for %v and %s, and the stack as well for %+v.
func (e *PanicError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb == 'v' && s.Flag('+') {
		fmt.Fprintf(s, "\n\t%s", strings.ReplaceAll(strings.TrimSpace(e.Stack), "\n", "\n\t"))
	}
}
