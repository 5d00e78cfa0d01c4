package manager

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// Sentinels of this package; the errors that it returns wrap them. An error that package ipc has
// under the same name is the same error.
var (
	// ErrClosed is returned by the methods of a manager or a proxy that this process has closed.
	// It wraps os.ErrClosed.
	ErrClosed = fmt.Errorf("manager: closed%.0w", os.ErrClosed)
	// ErrServerDied is returned by every call after the server's death, in a *shm.PeerError.
	ErrServerDied = errors.New("manager: the server is gone")
	// ErrNoObject is returned for an object that the server does not have.
	ErrNoObject = errors.New("manager: no such object")
	// ErrNoMethod is returned for a method that an object does not have.
	ErrNoMethod = errors.New("manager: no such method")
	// ErrArgument is returned where the number or the types of a call's arguments do not fit the
	// method's parameters.
	ErrArgument = errors.New("manager: wrong argument")
	// ErrType is returned where a proxy of one type is received as a proxy of another.
	ErrType = errors.New("manager: proxy of another type")
	// ErrNotNumber is returned by an Add to a value that is not a number.
	ErrNotNumber = errors.New("manager: not a number")
	// ErrNotOrdered is returned by a Sort of elements that are neither numbers nor strings.
	ErrNotOrdered = errors.New("manager: not ordered")
	// ErrNoKey is returned for a key that a Dict, a Set or a Namespace does not have, and for a
	// value that a List does not have.
	ErrNoKey = errors.New("manager: no such key")
	// ErrIndex is returned for an index outside of a List or an Array.
	ErrIndex = ipc.ErrIndex
	// ErrFull and ErrEmpty are returned by TryPut and TryGet, and by Put and Get at a deadline.
	ErrFull  = ipc.ErrFull
	ErrEmpty = ipc.ErrEmpty
	// ErrLocked is returned by a TryLock or a TryAcquire that would have to wait.
	ErrLocked = ipc.ErrLocked
	// ErrNotOwner is returned by an Unlock of a lock that the caller does not hold.
	ErrNotOwner = ipc.ErrNotOwner
	// ErrOwnerDied is returned by a Lock after the owner died, in a *shm.PeerError. The caller has
	// the lock, and the data that the lock protects may be half changed. Repair the data and call
	// MarkConsistent. Unlock without MarkConsistent makes the lock unusable.
	ErrOwnerDied = ipc.ErrOwnerDied
	// ErrNotRecoverable is returned by a lock that was unlocked after ErrOwnerDied without
	// MarkConsistent.
	ErrNotRecoverable = ipc.ErrNotRecoverable
	// ErrBroken is returned by a Barrier after Abort, an Action that failed, or the death or the
	// deadline of a caller that waited.
	ErrBroken = ipc.ErrBroken
	// ErrReleased is returned by a Release of a bounded semaphore that has all its permits, and by
	// a TaskDone if no value is unfinished.
	ErrReleased = ipc.ErrReleased
	// ErrTasksLost is returned by Join when processes died with unfinished tasks; it comes in a
	// *shm.PeerError.
	ErrTasksLost = ipc.ErrTasksLost
	// ErrPanic is returned where a method panicked in the server, in a *PanicError.
	ErrPanic = errors.New("manager: a method panicked")
	// ErrTxn is returned within a Txn by a call that the server cannot undo, and by a call that
	// would wait for another process, since a Txn keeps the others out.
	ErrTxn = errors.New("manager: not possible in a transaction")
	// ErrShared is returned where a call would carry to another machine what cannot be copied: a
	// queue, a lock or a file. Tensors are copied.
	ErrShared = ipc.ErrShared
	// ErrForeign is returned where a call gives a server a proxy of another server.
	ErrForeign = errors.New("manager: proxy of another server")
)

func init() {
	codec.RegisterError("manager.ErrClosed", ErrClosed)
	codec.RegisterError("manager.ErrServerDied", ErrServerDied)
	codec.RegisterError("manager.ErrNoObject", ErrNoObject)
	codec.RegisterError("manager.ErrNoMethod", ErrNoMethod)
	codec.RegisterError("manager.ErrArgument", ErrArgument)
	codec.RegisterError("manager.ErrType", ErrType)
	codec.RegisterError("manager.ErrNotNumber", ErrNotNumber)
	codec.RegisterError("manager.ErrNotOrdered", ErrNotOrdered)
	codec.RegisterError("manager.ErrNoKey", ErrNoKey)
	codec.RegisterError("manager.ErrPanic", ErrPanic)
	codec.RegisterError("manager.ErrTxn", ErrTxn)
	codec.RegisterError("manager.ErrForeign", ErrForeign)
	codec.RegisterType[*PanicError]("manager.PanicError")
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
	Object, Method string // the kind of object, and its method
	Text           string // the value of the panic, printed
	Stack          string // the stack of the server's goroutine
}

// Error returns one line.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: %s.%s: %s", ErrPanic, e.Object, e.Method, e.Text)
}

// Unwrap returns ErrPanic.
func (e *PanicError) Unwrap() error { return ErrPanic }

// Format prints the line of Error for %v and %s. For %+v the stack follows.
func (e *PanicError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb == 'v' && s.Flag('+') {
		fmt.Fprintf(s, "\n\t%s", strings.ReplaceAll(strings.TrimSpace(e.Stack), "\n", "\n\t"))
	}
}
