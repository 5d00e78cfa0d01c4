//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A named is the functions that bind and look up a value of one Go type.
type named struct {
	bind   func(ctx context.Context, name string, v any) error
	lookup func(name string) (any, error)
}

func namedOf[T any]() named {
	return named{
		bind: func(ctx context.Context, name string, v any) error { return ipc.Bind(ctx, name, v.(T)) },
		lookup: func(name string) (any, error) {
			v, err := ipc.Lookup[T](name)
			if err != nil {
				return nil, err
			}
			return v, nil
		},
	}
}

// namedKinds has the functions for each kind that can have a name.
var namedKinds = map[kind]named{
	kindTensor:    namedOf[*tensor.Tensor](),
	kindMessage:   namedOf[value](),
	kindQueue:     namedOf[*queue](),
	kindJoinable:  namedOf[*joinable](),
	kindSender:    namedOf[*sender](),
	kindReceiver:  namedOf[*receiver](),
	kindPipe:      namedOf[*pipe](),
	kindLatest:    namedOf[*latest](),
	kindMutex:     namedOf[*ipc.Mutex](),
	kindRMutex:    namedOf[*ipc.RecursiveMutex](),
	kindSemaphore: namedOf[*ipc.Semaphore](),
	kindCond:      namedOf[*ipc.Cond](),
	kindEvent:     namedOf[*ipc.Event](),
	kindBarrier:   namedOf[*ipc.Barrier](),
	kindMemory:    namedOf[*ipc.Memory](),
}

//export goBind
func goBind(name *C.char, h C.shoal_handle, timeout C.double) (code C.int) {
	defer recoverTo(&code)
	s, err := stringOf(name, "name")
	if err != nil {
		return result(err)
	}
	o, err := handles.find(handle(h))
	if err != nil {
		return result(err)
	}
	n, ok := namedKinds[o.kind]
	if !ok {
		return result(fmt.Errorf("bind %q: %w: a %v cannot have a name", s, errHandle, o.kind))
	}
	return result(runBounded(timeout, func(ctx context.Context) error { return n.bind(ctx, s, o.value) }))
}

//export goLookup
func goLookup(name *C.char, k C.int, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	s, err := stringOf(name, "name")
	if err == nil {
		err = requireMaking(to, "h")
	}
	if err != nil {
		return result(err)
	}
	if k == C.SHOAL_KIND_NONE {
		v, err := lookupAny(s)
		return storeNew(to, v, err)
	}
	n, ok := namedKinds[kind(k)]
	if !ok || k < 0 || k > 255 {
		return result(fmt.Errorf("look up name %q: %w: kind %d cannot have a name", s, errArgument, k))
	}
	v, err := n.lookup(s)
	return storeNew(to, v, err)
}

// lookupAny returns the value of a name, whatever its kind. The caller must close it.
func lookupAny(name string) (v any, err error) {
	for k := kindTensor; k <= kindMemory; k++ {
		n, ok := namedKinds[k]
		if !ok {
			continue
		}
		if v, err = n.lookup(name); !errors.Is(err, ipc.ErrType) {
			return v, err
		}
	}
	return nil, err
}

//export goUnlink
func goUnlink(name *C.char) (code C.int) {
	defer recoverTo(&code)
	s, err := stringOf(name, "name")
	if err == nil {
		err = requireDomain()
	}
	if err == nil {
		err = ipc.Unlink(s)
	}
	return result(err)
}

//export goNames
func goNames(buffer *C.char, size C.size_t, needed, count *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if buffer == nil && size > 0 {
		return result(fmt.Errorf("names: %w: the buffer is NULL and its size is %d", errArgument, size))
	}
	if err := requireDomain(); err != nil {
		return result(err)
	}
	names, err := ipc.Names()
	if err != nil {
		return result(err)
	}
	to := unsafe.Slice((*byte)(unsafe.Pointer(buffer)), size)
	all := C.size_t(0)
	for _, name := range names {
		all += C.size_t(len(name)) + 1
		if all <= size {
			to[copy(to, name)] = 0
			to = to[len(name)+1:]
		}
	}
	if needed != nil {
		*needed = all
	}
	if count != nil {
		*count = C.size_t(len(names))
	}
	return C.SHOAL_OK
}

//export goMemoryNew
func goMemoryNew(name *C.char, size C.size_t, to *C.shoal_handle, data *unsafe.Pointer) (code C.int) {
	defer recoverTo(&code)
	err := requireMaking(to, "memory")
	s := ""
	if err == nil && name != nil {
		s, err = stringOf(name, "name")
	}
	if err == nil && name != nil && s == "" {
		err = fmt.Errorf("new memory: %w: the name is empty", errArgument)
	}
	if err == nil && size >= 1<<47 {
		err = fmt.Errorf("new memory: %w: %d bytes", errTooLarge, size)
	}
	if err != nil {
		return result(err)
	}
	m, err := ipc.NewMemory(s, int(size))
	if err == nil && data != nil {
		*data = unsafe.Pointer(unsafe.SliceData(m.Bytes()))
	}
	return storeNew(to, m, err)
}

//export goMemoryData
func goMemoryData(h C.shoal_handle, data *unsafe.Pointer, size *C.size_t) (code C.int) {
	defer recoverTo(&code)
	m, err := findAs[*ipc.Memory](handle(h))
	if err != nil {
		return result(err)
	}
	if data != nil {
		*data = unsafe.Pointer(unsafe.SliceData(m.Bytes()))
	}
	if size != nil {
		*size = C.size_t(m.Size())
	}
	return C.SHOAL_OK
}
