package manager

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/sentinel"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
)

// Errors of this package. Returned errors wrap one of them; test for them with [errors.Is]. Errors
// with the same name in package ipc are identical to those.
var (
	// ErrClosed is returned by methods of a manager or a proxy that this process has closed. It
	// wraps [os.ErrClosed].
	ErrClosed = sentinel.New("manager: closed", os.ErrClosed)
	// ErrServerDied is returned by every call after the death of the server, in a *[shm.PeerError].
	ErrServerDied = errors.New("manager: the server died")
	// ErrNoObject is returned if the server has no such object.
	ErrNoObject = errors.New("manager: no such object")
	// ErrNoMethod is returned if the object has no such method.
	ErrNoMethod = errors.New("manager: no such method")
	// ErrArgument is returned if the number, the types or the values of a call's arguments do not
	// match the method's parameters.
	ErrArgument = errors.New("manager: wrong argument")
	// ErrType is returned if a proxy is received as a proxy of another type.
	ErrType = errors.New("manager: proxy has another type")
	// ErrNotNumber is returned by Add if the value is not a number.
	ErrNotNumber = errors.New("manager: not a number")
	// ErrNotOrdered is returned by Sort if the elements are neither numbers nor strings.
	ErrNotOrdered = errors.New("manager: elements cannot be ordered")
	// ErrNoKey is returned if a Dict, a Set or a Namespace does not have a key, if a List does not
	// have a value, and if a name is not published.
	ErrNoKey = errors.New("manager: no such key")
	// ErrIndex is returned if an index into a List or an Array is out of range.
	ErrIndex = ipc.ErrIndex
	// ErrFull and ErrEmpty are returned by TryPut and TryGet, and by Put and Get if their deadline
	// expires.
	ErrFull  = ipc.ErrFull
	ErrEmpty = ipc.ErrEmpty
	// ErrLocked is returned by TryLock and TryAcquire if they would block.
	ErrLocked = ipc.ErrLocked
	// ErrNotOwner is returned by Unlock if the caller does not hold the lock.
	ErrNotOwner = ipc.ErrNotOwner
	// ErrOwnerDied is returned by Lock after the owner died, in a *[shm.PeerError]. The caller
	// holds the lock, but the data that it guards may be inconsistent. The caller must repair the
	// data and call MarkConsistent. An Unlock without MarkConsistent makes the lock unusable.
	ErrOwnerDied = ipc.ErrOwnerDied
	// ErrNotRecoverable is returned by Lock if the lock was released after ErrOwnerDied without
	// MarkConsistent.
	ErrNotRecoverable = ipc.ErrNotRecoverable
	// ErrBroken is returned by a Barrier after Abort, after a failed Action, and after a waiting
	// caller died or exceeded its deadline.
	ErrBroken = ipc.ErrBroken
	// ErrReleased is returned by Release if a bounded semaphore already has all its permits, and by
	// TaskDone if no value is unfinished.
	ErrReleased = ipc.ErrReleased
	// ErrTasksLost is returned by Join, in a *[shm.PeerError], if a process died with unfinished
	// tasks.
	ErrTasksLost = ipc.ErrTasksLost
	// ErrPanic is wrapped by a *[PanicError], which is returned if a method panicked in the server.
	ErrPanic = errors.New("manager: a method panicked")
	// ErrTxn is returned within a Txn by a call that the server cannot undo, and by a call that
	// would block, because the transaction excludes all other processes.
	ErrTxn = errors.New("manager: not allowed in a transaction")
	// ErrShared is returned by a call to another machine if an argument or a result cannot be
	// copied: a queue, a lock or a file. Tensors are copied.
	ErrShared = ipc.ErrShared
	// ErrForeign is returned if a proxy of another server is passed to a server.
	ErrForeign = errors.New("manager: proxy belongs to another server")
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

// serverDied returns the error for the death of the server. pid is 0 if it is on another machine.
// cause may be nil.
func serverDied(pid int, cause error) error {
	if cause == nil {
		return newPeerError(pid, ErrServerDied)
	}
	return newPeerError(pid, fmt.Errorf("%w: %w", ErrServerDied, cause))
}

// newPeerError returns the error for the death of a process, which wraps cause. pid is 0 if the
// process is on another machine.
func newPeerError(pid int, cause error) error {
	return &shm.PeerError{PID: pid, Seat: -1, Cause: cause}
}

// A PanicError reports a panic of a method in the server. Formatted with %+v, it includes the
// stack.
type PanicError struct {
	Object, Method string // kind of the object, and name of the method
	Text           string // printed value of the panic
	Stack          string // stack of the server's goroutine
}

// Error returns a one-line description.
func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: %s.%s: %s", ErrPanic, e.Object, e.Method, e.Text)
}

// Unwrap returns [ErrPanic].
func (e *PanicError) Unwrap() error { return ErrPanic }

// Format implements [fmt.Formatter]. %v and %s print the same as Error; %+v adds the stack.
func (e *PanicError) Format(s fmt.State, verb rune) {
	io.WriteString(s, e.Error())
	if verb == 'v' && s.Flag('+') {
		fmt.Fprintf(s, "\n\t%s", strings.ReplaceAll(strings.TrimSpace(e.Stack), "\n", "\n\t"))
	}
}
