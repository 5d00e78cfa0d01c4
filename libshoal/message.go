//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// pinned is memory of Go that C has pointers to.
type pinned struct{ pinner runtime.Pinner }

func (p *pinned) unpin() {
	if p != nil {
		p.pinner.Unpin()
	}
}

// messageOf reads a message of the caller. The message uses the caller's memory, so it is valid
// until the call from C returns. The caller must close b after the put; after an error b is
// closed already.
func messageOf(b *borrowing, bytes unsafe.Pointer, length C.size_t, views *C.shoal_view,
	count C.size_t) (v value, err error) {
	text, err := bytesOf(bytes, length, "bytes")
	if err != nil {
		return v, err
	}
	if count > 0 {
		if err := requireDomain(); err != nil {
			return v, err
		}
		if err := b.borrow(views, count); err != nil {
			return v, err
		}
		v.Tensors = b.all
	}
	if err := v.SetPickle(text); err != nil {
		b.close()
		return v, err
	}
	if v.Long != nil {
		b.made = append(b.made, v.Long)
	}
	return v, nil
}

//export goPut
func goPut(to C.shoal_handle, bytes unsafe.Pointer, length C.size_t, views *C.shoal_view, count C.size_t,
	timeout C.double) (code C.int) {
	defer recoverTo(&code)
	o, err := findSender(handle(to))
	if err != nil {
		return result(err)
	}
	var b borrowing
	v, err := messageOf(&b, bytes, length, views, count)
	if err == nil {
		err = putValue(o.out, v, float64(timeout))
		b.close()
	}
	if err != nil {
		return result(err)
	}
	return C.SHOAL_OK
}

// putValue puts v, which the caller still owns, and waits for up to timeout seconds while there
// is no free slot. If there is none by then, the error is [ipc.ErrFull] for a timeout of 0, and
// otherwise wraps errTimeout or errInterrupted.
func putValue(to sink, v value, timeout float64) error {
	err := to.TryPut(v)
	if err != ipc.ErrFull || timeout == 0 {
		return err
	}
	return awaitPut(to, v, timeout)
}

// awaitPut is putValue for a timeout that is not 0. It is apart from putValue because its
// closure allocates.
func awaitPut(to sink, v value, timeout float64) error {
	t, err := timeoutOf(timeout)
	if err != nil {
		return err
	}
	return wait(func(ctx context.Context) error { return to.Put(ctx, v) }).run(t)
}

// getValue takes a message, and waits for it for up to timeout seconds. The caller must close
// it. If there is none by then, the error is [ipc.ErrEmpty] for a timeout of 0, and otherwise
// wraps errTimeout or errInterrupted.
func getValue(from source, timeout float64) (value, error) {
	v, err := from.TryGet()
	if err != ipc.ErrEmpty || timeout == 0 {
		return v, err
	}
	return awaitValue(from, timeout)
}

// awaitValue is getValue for a timeout that is not 0. It is apart from getValue because its
// closure allocates.
func awaitValue(from source, timeout float64) (v value, err error) {
	t, err := timeoutOf(timeout)
	if err != nil {
		return v, err
	}
	err = wait(func(ctx context.Context) (err error) {
		v, err = from.Get(ctx)
		return err
	}).run(t)
	return v, err
}

//export goGet
func goGet(from C.shoal_handle, timeout C.double, message *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(message, "message"); err != nil {
		return result(err)
	}
	o, err := findReceiver(handle(from))
	if err != nil {
		return result(err)
	}
	if err := handles.requireFree(); err != nil {
		return result(fmt.Errorf("get: %w", err))
	}
	v, err := getValue(o.in, float64(timeout))
	return storeNew(message, v, err)
}

//export goGetInto
func goGetInto(from C.shoal_handle, timeout C.double, to *C.shoal_buffer) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(to, "buffer"); err != nil {
		return result(err)
	}
	if to.bytes == nil && to.capacity > 0 || to.tensors == nil && to.tensor_capacity > 0 {
		return result(fmt.Errorf("get: %w: a pointer of the buffer is NULL and its capacity is not 0", errArgument))
	}
	o, err := findReceiver(handle(from))
	if err != nil {
		return result(err)
	}
	if err := handles.requireFree(); err != nil {
		return result(fmt.Errorf("get: %w", err))
	}
	v, err := getValue(o.in, float64(timeout))
	if err != nil {
		return result(err)
	}
	return result(fillBuffer(to, v))
}

// fillBuffer copies a message to the caller's buffer, or stores a handle of it if it does not
// fit. It takes ownership of v, also if it returns an error: new handles own its tensors.
func fillBuffer(to *C.shoal_buffer, v value) error {
	text, err := v.Bytes()
	if err != nil {
		return errors.Join(err, v.Close())
	}
	to.length, to.tensor_count, to.message = C.size_t(len(text)), C.size_t(len(v.Tensors)), 0
	if to.length > to.capacity || to.tensor_count > to.tensor_capacity {
		h, err := addObject(v)
		to.message = C.shoal_handle(h)
		return err
	}
	copy(unsafe.Slice((*byte)(to.bytes), to.capacity), text)
	if err := (value{Long: v.Long}).Close(); err != nil {
		return errors.Join(err, value{Tensors: v.Tensors}.Close())
	}
	for i, t := range v.Tensors {
		info := (*C.shoal_tensor_info)(unsafe.Add(unsafe.Pointer(to.tensors), i*C.sizeof_shoal_tensor_info))
		if err := giveTensor(info, t); err != nil {
			return errors.Join(err, takeBack(to.tensors, i), value{Tensors: v.Tensors[i+1:]}.Close())
		}
	}
	return nil
}

// takeBack closes the handles of the first n tensors after an error. It returns the errors of
// closing.
func takeBack(infos *C.shoal_tensor_info, n int) (err error) {
	for _, info := range unsafe.Slice(infos, n) {
		err = errors.Join(err, closeHandle(handle(info.handle)))
	}
	return err
}

// giveTensor fills info with t and a new handle of it, which owns t. On error it closes t.
func giveTensor(info *C.shoal_tensor_info, t *tensor.Tensor) error {
	if t == nil {
		return fmt.Errorf("%w: a tensor of the message is nil", errType)
	}
	h, err := addObject(t)
	if err != nil {
		return err
	}
	if err := describe(info, h, t); err != nil {
		return errors.Join(err, closeHandle(h))
	}
	return nil
}

//export goPutMany
func goPutMany(to C.shoal_handle, items *C.shoal_item, count C.size_t, timeout C.double, sent *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if items == nil && count > 0 || count > mostTensors {
		return result(fmt.Errorf("put: %w: %d items (NULL: %t), want at most %d", errArgument, count, items == nil,
			mostTensors))
	}
	if err := requirePointer(sent, "sent"); err != nil {
		return result(err)
	}
	*sent = 0
	o, err := findSender(handle(to))
	if err != nil {
		return result(err)
	}
	for _, item := range unsafe.Slice(items, count) {
		if err := putItem(o.out, item, float64(timeout)); err != nil {
			return result(fmt.Errorf("message %d of %d: %w", *sent, count, err))
		}
		*sent++
	}
	return C.SHOAL_OK
}

func putItem(to sink, item C.shoal_item, timeout float64) error {
	var b borrowing
	v, err := messageOf(&b, item.bytes, item.length, item.tensors, item.tensor_count)
	if err != nil {
		return err
	}
	defer b.close()
	return putValue(to, v, timeout)
}

//export goGetMany
func goGetMany(from C.shoal_handle, timeout C.double, messages *C.shoal_handle, count C.size_t,
	received *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if messages == nil && count > 0 || count > mostTensors {
		return result(fmt.Errorf("get: %w: %d messages (NULL: %t), want at most %d", errArgument, count,
			messages == nil,
			mostTensors))
	}
	if err := requirePointer(received, "received"); err != nil {
		return result(err)
	}
	*received = 0
	o, err := findReceiver(handle(from))
	if err != nil || count == 0 {
		return result(err)
	}
	for i := range unsafe.Slice(messages, count) {
		var h handle
		err := handles.requireFree()
		if err == nil {
			var v value
			if v, err = getValue(o.in, float64(timeout)); err == nil {
				h, err = addObject(v)
			}
		}
		if err != nil && i > 0 {
			return C.SHOAL_OK // the next call returns the error again, if it lasts
		}
		if err != nil {
			return result(err)
		}
		unsafe.Slice(messages, count)[i] = C.shoal_handle(h)
		*received++
		timeout = 0
	}
	return C.SHOAL_OK
}

//export goMessageBytes
func goMessageBytes(message C.shoal_handle, bytes *unsafe.Pointer, length *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if bytes == nil || length == nil {
		return result(fmt.Errorf("message bytes: %w: bytes or length is NULL", errArgument))
	}
	o, err := findMessage(handle(message))
	if err != nil {
		return result(err)
	}
	v := o.value.(value)
	b, err := v.Bytes()
	if err != nil {
		return result(err)
	}
	*bytes, *length = nil, C.size_t(len(b))
	if v.Long != nil {
		*bytes = unsafe.Pointer(unsafe.SliceData(b)) // shared memory does not move
	} else if len(b) > 0 {
		*bytes = o.pin(unsafe.SliceData(b))
	}
	return C.SHOAL_OK
}

// pin keeps memory of Go in place until o is released, and returns its address. Only the first call
// pins, so p must be the same in all calls for o.
func (o *object) pin(p *byte) unsafe.Pointer {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.pins == nil {
		o.pins = new(pinned)
		o.pins.pinner.Pin(p)
	}
	return unsafe.Pointer(p)
}

func findMessage(h handle) (*object, error) {
	o, err := handles.find(h)
	if err == nil && o.kind != kindMessage {
		err = wrongKind(o.kind, kindMessage)
	}
	return o, err
}

//export goMessageTensorCount
func goMessageTensorCount(message C.shoal_handle, count *C.size_t) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(count, "count"); err != nil {
		return result(err)
	}
	v, err := findAs[value](handle(message))
	if err != nil {
		return result(err)
	}
	*count = C.size_t(len(v.Tensors))
	return C.SHOAL_OK
}

//export goMessageTensor
func goMessageTensor(message C.shoal_handle, i C.size_t, info *C.shoal_tensor_info) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(info, "info"); err != nil {
		return result(err)
	}
	v, err := findAs[value](handle(message))
	if err != nil {
		return result(err)
	}
	if uint64(i) >= uint64(len(v.Tensors)) || v.Tensors[i] == nil {
		return result(fmt.Errorf("message tensor: %w: index %d, and the message has %d tensors", errArgument, i,
			len(v.Tensors)))
	}
	t := v.Tensors[i]
	t, err = t.Storage().View(t.DType(), t.Shape(), t.Strides(), t.Offset())
	if err == nil {
		err = giveTensor(info, t)
	}
	return result(err)
}
