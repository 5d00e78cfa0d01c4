//go:build cgo && linux

package main

// #include <errno.h>
// #include "native.h"
// #include "shoal.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// Errors of this library, each for one code of shoal.h.
var (
	errHandle      = errors.New("shoal: invalid handle")
	errTimeout     = errors.New("shoal: timeout")
	errInterrupted = errors.New("shoal: interrupted")
	errArgument    = errors.New("shoal: invalid argument")
	errTooLarge    = errors.New("shoal: too large")
	errNotFound    = errors.New("shoal: not found")
	errDomain      = errors.New("shoal: another domain")
	errType        = errors.New("shoal: type mismatch")
	errUnsupported = errors.New("shoal: not supported")
	errSystem      = errors.New("shoal: system error")
	errInternal    = errors.New("shoal: internal error")
	errToken       = errors.New("shoal: wrong token")
)

// codes has the code for each kind of error. The first match counts, so errors that others wrap
// follow them.
var codes = []struct {
	err  error
	code C.int
}{
	{errHandle, C.SHOAL_HANDLE},
	{errInterrupted, C.SHOAL_INTERRUPTED},
	{errTimeout, C.SHOAL_TIMEOUT},
	{errArgument, C.SHOAL_ARGUMENT},
	{errInternal, C.SHOAL_INTERNAL},
	{errDomain, C.SHOAL_DOMAIN},
	{errUnsupported, C.SHOAL_UNSUPPORTED},
	{errToken, C.SHOAL_KEY},
	{ipc.ErrOwnerDied, C.SHOAL_OWNER_DIED},
	{ipc.ErrNotOwner, C.SHOAL_NOT_OWNER},
	{ipc.ErrBroken, C.SHOAL_BROKEN},
	{ipc.ErrNotRecoverable, C.SHOAL_BROKEN},
	{ipc.ErrTasksLost, C.SHOAL_PEER_DIED},
	{ipc.ErrReleased, C.SHOAL_RELEASED},
	{shm.ErrNoSpace, C.SHOAL_NO_MEMORY},
	{shm.ErrAddressSpace, C.SHOAL_NO_MEMORY},
	{tensor.ErrMemory, C.SHOAL_NO_MEMORY},
	{shm.ErrVersion, C.SHOAL_VERSION},
	{ipc.ErrPeer, C.SHOAL_VERSION},
	{ipc.ErrKey, C.SHOAL_KEY},
	{shm.ErrToken, C.SHOAL_KEY},
	{shm.ErrUser, C.SHOAL_PERMISSION},
	{shm.ErrNamespace, C.SHOAL_PERMISSION},
	{fs.ErrPermission, C.SHOAL_PERMISSION},
	{shm.ErrExist, C.SHOAL_NAME_TAKEN},
	{errNotFound, C.SHOAL_NOT_FOUND},
	{fs.ErrNotExist, C.SHOAL_NOT_FOUND},
	{shm.ErrName, C.SHOAL_ARGUMENT},
	{ipc.ErrType, C.SHOAL_TYPE},
	{errType, C.SHOAL_TYPE},
	{ipc.ErrNotEnd, C.SHOAL_TYPE},
	{ipc.ErrNotObject, C.SHOAL_TYPE},
	{errTooLarge, C.SHOAL_TOO_LARGE},
	{ipc.ErrSize, C.SHOAL_TOO_LARGE},
	{wire.ErrTooLong, C.SHOAL_TOO_LARGE},
	{shm.ErrTooLarge, C.SHOAL_TOO_LARGE},
	{shm.ErrTooManyNames, C.SHOAL_TOO_LARGE},
	{shm.ErrTooManyInTransit, C.SHOAL_TOO_LARGE},
	{shm.ErrTooManyParticipants, C.SHOAL_TOO_LARGE},
	{tensor.ErrMisuse, C.SHOAL_ARGUMENT},
	{tensor.ErrLayout, C.SHOAL_ARGUMENT},
	{tensor.ErrDType, C.SHOAL_ARGUMENT},
	{tensor.ErrAlign, C.SHOAL_ARGUMENT},
	{ipc.ErrIndex, C.SHOAL_ARGUMENT},
	{ipc.ErrEmpty, C.SHOAL_EMPTY},
	{ipc.ErrFull, C.SHOAL_FULL},
	{ipc.ErrLocked, C.SHOAL_LOCKED},
	{context.DeadlineExceeded, C.SHOAL_TIMEOUT},
	{os.ErrDeadlineExceeded, C.SHOAL_TIMEOUT},
	{ipc.ErrClosed, C.SHOAL_CLOSED},
	{os.ErrClosed, C.SHOAL_CLOSED},
	{errors.ErrUnsupported, C.SHOAL_UNSUPPORTED},
}

// codeOf returns the code of shoal.h for err: SHOAL_OK for nil, and for an unknown error
// SHOAL_SYSTEM if it wraps an errno, otherwise SHOAL_INTERNAL. It does not store err; see result.
func codeOf(err error) C.int {
	switch err { // the frequent ones first, by identity
	case nil:
		return C.SHOAL_OK
	case ipc.ErrEmpty:
		return C.SHOAL_EMPTY
	case ipc.ErrFull:
		return C.SHOAL_FULL
	}
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	switch sys.ErrorNumber(err) {
	case 0:
		return C.SHOAL_INTERNAL
	case C.EADDRINUSE:
		return C.SHOAL_NAME_TAKEN
	case C.ECONNREFUSED:
		return C.SHOAL_NOT_FOUND
	}
	return C.SHOAL_SYSTEM
}

// result stores err as the error of the calling thread of C and returns its code; see codeOf.
// For nil it only returns SHOAL_OK.
func result(err error) C.int {
	if err == nil {
		return C.SHOAL_OK
	}
	process := 0
	if p := new(arena.PeerError); errors.As(err, &p) {
		process = p.PID
	}
	storeError(err.Error(), process)
	return codeOf(err)
}

func storeError(text string, process int) {
	C.shoal_native_fail((*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)), C.int(process))
}

// recoverTo turns a panic of a call from C into an error, and sets *code to its code. It must be
// deferred directly. A panic of package tensor is the error of a wrong argument; any other one
// is a fault of the library.
func recoverTo(code *C.int) {
	p := recover()
	if p == nil {
		return
	}
	*code = result(panicError(p))
}

func panicError(p any) error {
	if err, ok := p.(error); ok && errors.Is(err, tensor.ErrMisuse) {
		return err
	}
	return fmt.Errorf("%w: %v; please report it with this stack: %s", errInternal, p, debug.Stack())
}

// requirePointer returns an error that wraps errArgument if the out parameter p, called name in
// shoal.h, is NULL.
func requirePointer[T any](p *T, name string) error {
	if p == nil {
		return fmt.Errorf("%w: %s is NULL", errArgument, name)
	}
	return nil
}

// isContextError reports whether err is the end of a context.
func isContextError(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}
