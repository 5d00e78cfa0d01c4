//go:build cgo && linux

package main

// #include "shoal.h"
import "C"

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// A layout is a dtype, a shape and strides in elements. strides is nil for row-major order.
type layout struct {
	dtype          tensor.DType
	shape, strides []int
}

// dtypes maps the dtypes to the numbers of DLPack, which
// https://github.com/dmlc/dlpack/blob/v1.1/include/dlpack/dlpack.h defines.
var dtypes = [...]C.shoal_dtype{
	tensor.Bool:         {6, 8, 1},
	tensor.Uint8:        {1, 8, 1},
	tensor.Int8:         {0, 8, 1},
	tensor.Int16:        {0, 16, 1},
	tensor.Int32:        {0, 32, 1},
	tensor.Int64:        {0, 64, 1},
	tensor.Float16:      {2, 16, 1},
	tensor.BFloat16:     {4, 16, 1},
	tensor.Float32:      {2, 32, 1},
	tensor.Float64:      {2, 64, 1},
	tensor.Complex64:    {5, 64, 1},
	tensor.Complex128:   {5, 128, 1},
	tensor.Uint16:       {1, 16, 1},
	tensor.Uint32:       {1, 32, 1},
	tensor.Uint64:       {1, 64, 1},
	tensor.Float8E4M3FN: {10, 8, 1},
	tensor.Float8E5M2:   {12, 8, 1},
}

// dtypeOf returns the dtype with the numbers of DLPack in c. The error wraps errArgument if
// there is none.
func dtypeOf(c C.shoal_dtype) (tensor.DType, error) {
	for d, numbers := range dtypes {
		if numbers == c {
			return tensor.DType(d), nil
		}
	}
	return 0, fmt.Errorf("%w: no dtype has code %d, %d bits and %d lanes: see shoal_dtype in shoal.h", errArgument,
		c.code, c.bits, c.lanes)
}

// layoutOf reads and checks a layout of the caller; strides may be NULL. The sizes are not
// negative, and their product, in bytes, is less than 2^47. The error wraps errArgument.
func layoutOf(dtype C.shoal_dtype, ndim C.int, shape, strides *C.int64_t) (l layout, err error) {
	if l.dtype, err = dtypeOf(dtype); err != nil {
		return l, err
	}
	if ndim < 0 || ndim > C.SHOAL_MAX_DIMS || ndim > 0 && shape == nil {
		return l, fmt.Errorf("%w: %d dimensions (shape is NULL: %t), want 0 to %d", errArgument, ndim, shape == nil,
			C.SHOAL_MAX_DIMS)
	}
	n := uint64(l.dtype.Size())
	l.shape = make([]int, ndim, 2*ndim)
	for i, size := range unsafe.Slice(shape, ndim) {
		hi, lo := bits.Mul64(n, uint64(max(size, 1)))
		if size < 0 || hi != 0 || lo >= 1<<47 {
			return l, fmt.Errorf("%w: dimension %d has size %d: want 0 or more, and less than 2^47 bytes in all",
				errArgument,
				i, size)
		}
		n = lo
		l.shape[i] = int(size)
	}
	if strides == nil || ndim == 0 {
		return l, nil
	}
	l.strides = l.shape[ndim : 2*ndim]
	for i, step := range unsafe.Slice(strides, ndim) {
		if step < 0 || step >= 1<<47 {
			return l, fmt.Errorf("%w: dimension %d has stride %d: want 0 to 2^47: copy the tensor first",
				errArgument, i, step)
		}
		l.strides[i] = int(step)
	}
	return l, nil
}

// extent returns the number of bytes from the first element to the end of the last one, or 0 if
// there are no elements. The error wraps errArgument if it is too large.
func (l layout) extent() (uintptr, error) {
	last := uint64(0)
	count := 1
	for i, n := range l.shape {
		count *= n
		if n > 1 && l.strides != nil {
			hi, lo := bits.Mul64(uint64(n-1), uint64(l.strides[i]))
			if last += lo; hi != 0 || lo >= 1<<47 || last >= 1<<47 {
				return 0,
					fmt.Errorf("%w: shape %v with strides %v exceeds 2^47 elements", errArgument, l.shape, l.strides)
			}
		}
	}
	switch {
	case count == 0:
		return 0, nil
	case l.strides == nil:
		last = uint64(count) - 1
	}
	return uintptr(last+1) * uintptr(l.dtype.Size()), nil
}

// isRowMajor reports whether the elements are adjacent in memory, in row-major order.
func (l layout) isRowMajor() bool {
	if l.strides == nil {
		return true
	}
	next := 1
	for i := len(l.shape) - 1; i >= 0; i-- {
		if l.shape[i] != 1 && l.strides[i] != next {
			return false
		}
		next *= l.shape[i]
	}
	return true
}

// newShared returns an uninitialized tensor in shared memory, in row-major order. The caller
// must close it. Its memory is not moved, so C may have its address.
func (l layout) newShared() (*tensor.Tensor, error) {
	if err := requireDomain(); err != nil {
		return nil, err
	}
	return tensor.EmptyShared(l.dtype, l.shape...)
}

// copyShared returns a tensor in shared memory with copies of the elements at data, in row-major
// order. The caller must close it. The error wraps errArgument if data is NULL and there are
// elements.
func (l layout) copyShared(data unsafe.Pointer) (*tensor.Tensor, error) {
	n, err := l.extent()
	if err != nil {
		return nil, err
	}
	if data == nil && n > 0 {
		return nil, fmt.Errorf("copy tensor: %w: data is NULL", errArgument)
	}
	t, err := l.newShared()
	if err != nil || n == 0 {
		return t, err
	}
	src := unsafe.Slice((*byte)(data), n)
	switch size := uintptr(l.dtype.Size()); {
	case l.isRowMajor():
		copy(t.Storage().Bytes(), src)
	case uintptr(data)%min(size, 8) == 0:
		err = l.copyView(t, data, n)
	default: // elements that are not aligned
		l.copyElements(t.Storage().Bytes(), src, 0, 0)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// borrowed is a foreign.Loan of memory that its owner keeps for the time of a call.
type borrowed struct{}

// End implements foreign.Loan.
func (borrowed) End() error { return nil }

// copyView copies the n bytes at data, which are aligned to their elements, to t by the kernels
// of package tensor. The storage begins at an address that the package accepts.
func (l layout) copyView(t *tensor.Tensor, data unsafe.Pointer, n uintptr) error {
	const align = 16
	before := uintptr(data) % align
	if before%uintptr(l.dtype.Size()) != 0 {
		l.copyElements(t.Storage().Bytes(), unsafe.Slice((*byte)(data), n), 0, 0)
		return nil
	}
	s := foreignTensors.Adopt(unsafe.Slice((*byte)(unsafe.Add(data, -int(before))), n+before), borrowed{})
	v, err := s.View(l.dtype, l.shape, l.strides, int(before)/l.dtype.Size())
	if err != nil {
		return err
	}
	defer v.Close()
	t.CopyFrom(v)
	return nil
}

// copyElements copies the elements from dimension d on to dst, without gaps. at is the position of
// the first one in src, in elements. dst must have room for all of them; copyElements returns the
// rest of it.
func (l layout) copyElements(dst, src []byte, d, at int) []byte {
	size := l.dtype.Size()
	if d == len(l.shape) {
		copy(dst[:size], src[at*size:])
		return dst[size:]
	}
	for i := range l.shape[d] {
		dst = l.copyElements(dst, src, d+1, at+i*l.strides[d])
	}
	return dst
}

// A borrowing holds the tensors of a put. Some of them belong to handles; the put made the
// others, and close must close them after it.
type borrowing struct {
	all  []*tensor.Tensor
	made []*tensor.Tensor
	few  [4]*tensor.Tensor
}

// borrow reads the tensors of the caller into b.all: those with handles, views of memory in the
// domain, and copies of other memory. The caller must call b.close after the put. If borrow
// returns an error, it has done so.
func (b *borrowing) borrow(views *C.shoal_view, count C.size_t) error {
	if count > 0 && views == nil || count > mostTensors {
		return fmt.Errorf("%w: %d tensors (NULL: %t), want at most %d", errArgument, count, views == nil, mostTensors)
	}
	b.all = b.few[:0]
	for i := range unsafe.Slice(views, count) {
		v := (*C.shoal_view)(unsafe.Add(unsafe.Pointer(views), i*int(unsafe.Sizeof(*views))))
		t, made, err := tensorOf(v)
		if err != nil {
			b.close()
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		b.all = append(b.all, t)
		if made {
			b.made = append(b.made, t)
		}
	}
	return nil
}

func (b *borrowing) close() {
	for _, t := range b.made {
		t.Close()
	}
	b.made = nil
}

// mostTensors limits the tensors of a message.
const mostTensors = 1 << 20

// tensorOf returns the tensor that v names. If made is true, the caller must close it; otherwise
// it belongs to its handle.
func tensorOf(v *C.shoal_view) (t *tensor.Tensor, made bool, err error) {
	if v.handle != 0 {
		t, err = findAs[*tensor.Tensor](handle(v.handle))
		return t, false, err
	}
	if t, err = wrapView(v); t != nil || err != nil {
		return t, true, err
	}
	l, err := layoutOf(v.dtype, C.int(v.ndim), v.shape, v.strides)
	if err != nil {
		return nil, false, err
	}
	t, err = l.copyShared(v.data)
	return t, true, err
}

// wrapView returns a tensor over the memory of v. The tensor keeps the memory alive, and the
// caller must close it. wrapView returns nil without an error if v is empty or its memory is not
// in the domain, and an error if the layout of v is invalid.
func wrapView(v *C.shoal_view) (*tensor.Tensor, error) {
	l, err := layoutOf(v.dtype, C.int(v.ndim), v.shape, v.strides)
	if err != nil {
		return nil, err
	}
	n, err := l.extent()
	if err != nil || n == 0 {
		return nil, err
	}
	t, ok, err := spans.view(uintptr(v.data), n, l)
	if !ok || err != nil {
		return nil, err
	}
	return t, nil
}

// describe fills info with t and its handle. The error wraps errTooLarge if t has more than
// SHOAL_MAX_DIMS dimensions.
func describe(info *C.shoal_tensor_info, h handle, t *tensor.Tensor) error {
	shape, strides := t.Shape(), t.Strides()
	if len(shape) > C.SHOAL_MAX_DIMS {
		return fmt.Errorf("%w: a tensor has %d dimensions, and C programs can use %d", errTooLarge, len(shape),
			C.SHOAL_MAX_DIMS)
	}
	b := t.Storage().Bytes()
	offset := t.Offset()
	info.handle = C.shoal_handle(h)
	info.data = nil
	if len(b) > 0 {
		info.data = unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), min(offset*t.DType().Size(), len(b)))
	}
	info.offset, info.storage_size = C.int64_t(offset), C.int64_t(len(b))
	info.dtype = dtypes[t.DType()]
	info.ndim, info.shared, info.reserved = C.int32_t(len(shape)), 0, 0
	if t.IsShared() {
		info.shared = 1
	}
	for i, n := range shape {
		info.shape[i], info.strides[i] = C.int64_t(n), C.int64_t(strides[i])
	}
	return nil
}
