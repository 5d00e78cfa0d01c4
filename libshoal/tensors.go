//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
)

//export goTensorEmpty
func goTensorEmpty(dtype C.shoal_dtype, ndim C.int, shape *C.int64_t, zero C.int, to *C.shoal_handle,
	data *unsafe.Pointer) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(to, "tensor"); err != nil {
		return result(err)
	}
	l, err := layoutOf(dtype, ndim, shape, nil)
	if err != nil {
		return result(err)
	}
	t, err := l.newShared()
	if err != nil {
		return result(err)
	}
	if zero != 0 {
		clear(t.Storage().Bytes())
	}
	return storeTensor(to, data, t)
}

// storeTensor stores a handle of t, which owns t, and, unless data is NULL, the address of the
// first byte of t's storage. It returns the code of the error.
func storeTensor(to *C.shoal_handle, data *unsafe.Pointer, t *tensor.Tensor) C.int {
	h, err := addObject(t)
	if err == nil && data != nil {
		*data = unsafe.Pointer(unsafe.SliceData(t.Storage().Bytes()))
	}
	return storeHandle(to, h, err)
}

//export goTensorCopy
func goTensorCopy(view *C.shoal_view, to *C.shoal_handle, data *unsafe.Pointer) (code C.int) {
	defer recoverTo(&code)
	if view == nil || to == nil {
		return result(fmt.Errorf("copy tensor: %w: view or tensor is NULL", errArgument))
	}
	if err := requireDomain(); err != nil {
		return result(err)
	}
	t, err := copyView(view)
	if err != nil {
		return result(err)
	}
	return storeTensor(to, data, t)
}

// copyView returns a copy in shared memory of the tensor that v names. The caller must close it.
func copyView(v *C.shoal_view) (*tensor.Tensor, error) {
	if v.handle == 0 {
		l, err := layoutOf(v.dtype, C.int(v.ndim), v.shape, v.strides)
		if err != nil {
			return nil, err
		}
		return l.copyShared(v.data)
	}
	src, err := findAs[*tensor.Tensor](handle(v.handle))
	if err != nil {
		return nil, err
	}
	t, err := tensor.EmptyShared(src.DType(), src.Shape()...)
	if err != nil {
		return nil, err
	}
	return t.CopyFrom(src), nil
}

//export goTensorWrap
func goTensorWrap(view *C.shoal_view, to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if view == nil || to == nil {
		return result(fmt.Errorf("wrap tensor: %w: view or tensor is NULL", errArgument))
	}
	if view.handle != 0 {
		h, err := duplicate(handle(view.handle))
		return storeHandle(to, h, err)
	}
	t, err := wrapView(view)
	if err == nil && t == nil {
		err = fmt.Errorf("wrap tensor: %w: the memory at %p is not within a tensor of this process in the domain",
			errNotFound,
			view.data)
	}
	return storeNew(to, t, err)
}

//export goTensorView
func goTensorView(of C.shoal_handle, dtype C.shoal_dtype, ndim C.int, shape, strides *C.int64_t, offset C.int64_t,
	to *C.shoal_handle) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(to, "view"); err != nil {
		return result(err)
	}
	t, err := findAs[*tensor.Tensor](handle(of))
	if err != nil {
		return result(err)
	}
	l, err := layoutOf(dtype, ndim, shape, strides)
	if err == nil && (offset < 0 || offset >= 1<<47) {
		err = fmt.Errorf("view tensor: %w: offset %d, want 0 to 2^47", errArgument, offset)
	}
	if err != nil {
		return result(err)
	}
	v, err := t.Storage().View(l.dtype, l.shape, l.strides, int(offset))
	return storeNew(to, v, err)
}

//export goTensorDescribe
func goTensorDescribe(h C.shoal_handle, info *C.shoal_tensor_info) (code C.int) {
	defer recoverTo(&code)
	if err := requirePointer(info, "info"); err != nil {
		return result(err)
	}
	t, err := findAs[*tensor.Tensor](handle(h))
	if err == nil {
		err = describe(info, handle(h), t)
	}
	return result(err)
}

//export goContains
func goContains(data unsafe.Pointer) C.int {
	if d := arena.Current(); d != nil && d.Contains(uintptr(data)) {
		return 1
	}
	return 0
}
