//go:build cgo && linux

package main

// #include <string.h>
// #include "native.h"
// #include "shoal.h"
import "C"

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/shm"
)

// The functions named go… are the bodies of the functions of shoal.h. The file exports.c checks
// that the process was not forked, and then calls them.

func init() { C.shoal_native_restore_signals() }

//export goVersion
func goVersion(buffer *C.char, size C.size_t) {
	version := "(unknown)"
	if build, ok := debug.ReadBuildInfo(); ok {
		version = build.Main.Version
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(buffer)), size)
	b[copy(b[:size-1], version)] = 0
}

//export goClose
func goClose(h C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	return result(closeHandle(handle(h)))
}

//export goDup
func goDup(h C.shoal_handle, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(to, "copy"); err != nil {
		return result(err)
	}
	d, err := duplicate(handle(h))
	return storeHandle(to, d, err)
}

//export goKind
func goKind(h C.shoal_handle) C.int {
	if o, err := handles.find(handle(h)); err == nil {
		return C.int(o.kind)
	}
	return C.SHOAL_KIND_NONE
}

// storeHandle stores h if err is nil, and returns the code of err.
func storeHandle(to *C.shoal_handle, h handle, err error) C.int {
	if err != nil {
		return result(err)
	}
	*to = C.shoal_handle(h)
	return C.SHOAL_OK
}

// storeNew stores a handle of a new object for v, which owns v, if err is nil. It returns the
// code of err, or of the error of making the handle.
func storeNew(to *C.shoal_handle, v any, err error) C.int {
	if err != nil {
		return result(err)
	}
	h, err := addObject(v)
	return storeHandle(to, h, err)
}

// requireMaking returns an error if this process cannot make an object and store its handle: it
// has left its domain, or to, called name in shoal.h, is NULL. It makes a domain if there is
// none.
func requireMaking(to *C.shoal_handle, name string) error {
	if err := requirePointer(to, name); err != nil {
		return err
	}
	return requireDomain()
}

// stringOf returns a copy of a string of the caller, called name in shoal.h. The error wraps
// errArgument if it is NULL or longer than 4096 bytes.
func stringOf(s *C.char, name string) (string, error) {
	const most = 4096
	if s == nil {
		return "", fmt.Errorf("%w: %s is NULL", errArgument, name)
	}
	if n := C.strnlen(s, most+1); n > most {
		return "", fmt.Errorf("%w: %s has more than %d bytes", errArgument, name, most)
	}
	return C.GoString(s), nil
}

// mostBytes limits the bytes of a message: the Go types that carry them have smaller limits.
const mostBytes = 1 << 40

// bytesOf returns the n bytes at p of the caller, without a copy: they are valid during the call
// from C. The error wraps errArgument if there are more than mostBytes or p is NULL.
func bytesOf(p unsafe.Pointer, n C.size_t, name string) ([]byte, error) {
	if p == nil && n > 0 || n > mostBytes {
		return nil, fmt.Errorf("%w: %s has %d bytes (NULL: %t)", errArgument, name, n, p == nil)
	}
	return unsafe.Slice((*byte)(p), n), nil
}

//export goCreate
func goCreate(options *C.shoal_options) (code C.int) {
	defer recoverTo(&code)
	var o shm.Options
	if options != nil {
		if options.size != C.size_t(unsafe.Sizeof(*options)) {
			return result(fmt.Errorf("create domain: %w: options.size is %d, want %d", errArgument, options.size,
				unsafe.Sizeof(*options)))
		}
		o.Budget, o.Reserve = int64(options.budget), int64(options.reserve)
		if o.Budget < 0 || o.Reserve < 0 {
			return result(fmt.Errorf("create domain: %w: budget %d and reserve %d, want 0 or more",
				errArgument, o.Budget,
				o.Reserve))
		}
	}
	return result(createDomain(o))
}

//export goListen
func goListen(address *C.char, key unsafe.Pointer, keyLength C.size_t, listener *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requireMaking(listener, "listener"); err != nil {
		return result(err)
	}
	addr, err := stringOf(address, "address")
	if err != nil {
		return result(err)
	}
	k, err := keyOfCaller(key, keyLength)
	if err != nil {
		return result(err)
	}
	l, err := listen(addr, k)
	return storeNew(listener, l, err)
}

// keyOfCaller returns a copy of the caller's key. The error wraps errArgument unless it has 1 to
// 65536 bytes.
func keyOfCaller(key unsafe.Pointer, length C.size_t) ([]byte, error) {
	if key == nil || length == 0 || length > 1<<16 {
		return nil, fmt.Errorf("%w: the key has %d bytes (NULL: %t), want 1 to 65536", errArgument, length, key == nil)
	}
	return C.GoBytes(key, C.int(length)), nil
}

//export goJoin
func goJoin(address *C.char, key unsafe.Pointer, keyLength C.size_t, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	addr, err := stringOf(address, "address")
	if err != nil {
		return result(err)
	}
	k, err := keyOfCaller(key, keyLength)
	if err != nil {
		return result(err)
	}
	return result(runBounded(timeout, func(ctx context.Context) error { return join(ctx, addr, k) }))
}

// runBounded runs f, which does not depend on other processes for long, on a goroutine, for at
// most the given seconds; a negative number means forever. With a timeout of 0 it has a second.
func runBounded(seconds C.double, f wait) error {
	timeout, err := timeoutOf(float64(seconds))
	if err != nil {
		return err
	}
	if timeout == 0 {
		timeout = time.Second
	}
	return f.runOnce(timeout)
}

//export goJoined
func goJoined() C.int {
	if process.ready.Load() != nil {
		return 1
	}
	return 0
}

//export goLeave
func goLeave(timeout C.double) (code C.int) {
	defer recoverTo(&code)
	t, err := timeoutOf(float64(timeout))
	if err != nil {
		return result(err)
	}
	return result(leaveDomain(t))
}

//export goSetProcessName
func goSetProcessName(name *C.char) (code C.int) {
	defer recoverTo(&code)
	s, err := stringOf(name, "name")
	if err == nil {
		err = setProcessName(s)
	}
	return result(err)
}

//export goGetStats
func goGetStats(stats *C.shoal_stats) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(stats, "stats"); err != nil {
		return result(err)
	}
	if stats.size != C.size_t(unsafe.Sizeof(*stats)) {
		return result(fmt.Errorf("get stats: %w: stats.size is %d, want %d", errArgument, stats.size,
			unsafe.Sizeof(*stats)))
	}
	s := readStats()
	stats.processes, stats.reaped = C.int32_t(s.Participants), C.int32_t(s.Reaped)
	stats.limit, stats.committed = C.int64_t(s.Limit), C.int64_t(s.Committed)
	stats.blocks, stats.bytes = C.int64_t(s.Blocks), C.int64_t(s.Bytes)
	stats.idle_bytes, stats.in_transit = C.int64_t(s.IdleBytes), C.int64_t(s.InTransit)
	stats.copied, stats.dropped = C.int64_t(s.Copied), C.int64_t(s.Dropped)
	stats.handles = C.int64_t(handles.count())
	return C.SHOAL_OK
}

//export goExport
func goExport(h C.shoal_handle, uses C.int, lifetime C.double, buffer unsafe.Pointer, size C.size_t,
	length *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if buffer == nil || size < mostToken {
		return result(fmt.Errorf("export: %w: the buffer has %d bytes (NULL: %t), want SHOAL_MAX_TOKEN (%d)",
			errArgument, size,
			buffer == nil, mostToken))
	}
	if err := requirePointer(length, "length"); err != nil {
		return result(err)
	}
	b, err := exportHandle(handle(h), int(uses), float64(lifetime))
	if err != nil {
		return result(fmt.Errorf("export: %w", err))
	}
	*length = C.size_t(copy(unsafe.Slice((*byte)(buffer), size), b))
	return C.SHOAL_OK
}

// exportHandle exports the object of h for the given number of imports and returns the encoded
// token. It is valid for lifetime seconds, or for defaultExpiry if that is negative. The error
// wraps errArgument, errHandle, errTooLarge, or errUnsupported for a listener.
func exportHandle(h handle, uses int, lifetime float64) ([]byte, error) {
	if uses < 1 || uses > mostImportUses {
		return nil, fmt.Errorf("%w: %d uses, want 1 to %d", errArgument, uses, mostImportUses)
	}
	expiry, err := timeoutOf(lifetime)
	if err != nil {
		return nil, err
	}
	if expiry == forever {
		expiry = defaultExpiry
	}
	o, err := handles.find(h)
	if err != nil {
		return nil, err
	}
	if o.kind == kindListener {
		return nil, fmt.Errorf("%w: a listener belongs to its process", errUnsupported)
	}
	t, err := exports.add(o, uses, expiry)
	if err != nil {
		return nil, err
	}
	b, err := t.encode(make([]byte, 0, mostToken))
	if err != nil {
		exports.discardExport(t.id)
	}
	return b, err
}

//export goImport
func goImport(tok unsafe.Pointer, length C.size_t, timeout C.double, h *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(h, "h"); err != nil {
		return result(err)
	}
	if tok == nil || length > mostToken {
		return result(fmt.Errorf("import: %w: the token has %d bytes (NULL: %t), want at most %d", errArgument, length,
			tok == nil, mostToken))
	}
	t, err := decodeToken(C.GoBytes(tok, C.int(length)))
	if err != nil {
		return result(fmt.Errorf("import: %w", err))
	}
	return importTo(h, t, request{Export: t.id, Nonce: t.nonce[:]}, timeout)
}

// importTo imports the object that q names from the process of t, within timeout seconds, and
// stores its handle. It returns the code of the error.
func importTo(to *C.shoal_handle, t token, q request, timeout C.double) C.int {
	var h handle
	err := runBounded(timeout, func(ctx context.Context) (err error) {
		h, err = importObject(ctx, t, q)
		return err
	})
	return storeHandle(to, h, err)
}

//export goSetSpin
func goSetSpin(seconds C.double) (code C.int) {
	defer recoverTo(&code)
	return result(setSpin(float64(seconds)))
}
