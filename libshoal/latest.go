//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/shoal-mp/shoal/ipc"
)

//export goLatestNew
func goLatestNew(bytes unsafe.Pointer, length C.size_t, views *C.shoal_view, count C.size_t,
	to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(to, "latest"); err != nil {
		return result(err)
	}
	var b borrowing
	v, err := messageOf(&b, bytes, length, views, count)
	if err != nil {
		return result(err)
	}
	defer b.close()
	l, err := ipc.NewLatest(v)
	return storeNew(to, l, err)
}

//export goLatestStore
func goLatestStore(h C.shoal_handle, bytes unsafe.Pointer, length C.size_t, views *C.shoal_view, count C.size_t,
	timeout C.double, version *C.uint64_t) (code C.int) {
	defer recoverTo(&code)
	l, err := findAs[*latest](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	var b borrowing
	v, err := messageOf(&b, bytes, length, views, count)
	if err != nil {
		return result(err)
	}
	defer b.close()
	var n uint64
	err = wait(func(ctx context.Context) (err error) {
		n, err = l.Store(ctx, v)
		return err
	}).runOrTry(t)
	if err == nil && version != nil {
		*version = C.uint64_t(n)
	}
	return result(err)
}

//export goLatestLoad
func goLatestLoad(h C.shoal_handle, message *C.shoal_handle, version *C.uint64_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(message, "message"); err != nil {
		return result(err)
	}
	l, err := findAs[*latest](handle(h))
	if err != nil {
		return result(err)
	}
	v, n, err := l.Load()
	return storeVersion(message, version, v, n, err)
}

// storeVersion stores a handle of v, which owns v, and, unless version is NULL, its version n.
// If err is not nil, it stores neither. It returns the code of err, or of the error of making
// the handle.
func storeVersion(message *C.shoal_handle, version *C.uint64_t, v value, n uint64, err error) C.int {
	code := storeNew(message, v, err)
	if code == C.SHOAL_OK && version != nil {
		*version = C.uint64_t(n)
	}
	return code
}

//export goLatestVersion
func goLatestVersion(h C.shoal_handle, version *C.uint64_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(version, "version"); err != nil {
		return result(err)
	}
	l, err := findAs[*latest](handle(h))
	if err != nil {
		return result(err)
	}
	n := l.Version()
	if n == 0 {
		return result(fmt.Errorf("version: %w", ipc.ErrClosed))
	}
	*version = C.uint64_t(n)
	return C.SHOAL_OK
}

//export goLatestWait
func goLatestWait(h C.shoal_handle, after C.uint64_t, timeout C.double, message *C.shoal_handle,
	version *C.uint64_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(message, "message"); err != nil {
		return result(err)
	}
	l, err := findAs[*latest](handle(h))
	if err != nil {
		return result(err)
	}
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	var v value
	n := l.Version()
	switch {
	case n > uint64(after) || n == 0:
		v, n, err = l.Load()
	case t == 0:
		err = fmt.Errorf("wait for a version after %d: %w", after, ipc.ErrEmpty)
	default:
		err = wait(func(ctx context.Context) (err error) {
			v, n, err = l.Wait(ctx, uint64(after))
			return err
		}).run(t)
	}
	return storeVersion(message, version, v, n, err)
}
