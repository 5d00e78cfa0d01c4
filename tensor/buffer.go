package tensor

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A Buffer is shared memory that a tensor can use, such as an *ipc.Memory. Its type must encode
// values as exactly one block of shared memory, which Bytes returns.
type Buffer interface {
	// Bytes returns the memory for the tensor.
	Bytes() []byte
}

// FromBuffer returns a tensor over the bytes of b, without a copy, like torch.frombuffer. The
// first element is offset bytes after the start. strides are in elements; nil means row-major.
// The tensor has its own reference to the block, so b may be closed before the tensor. The caller
// must close the tensor.
//
// FromBuffer checks its arguments, because they may come from a message. The error wraps
// [ErrDType], [ErrLayout] if the layout is malformed or exceeds the bytes, [ErrAlign] if offset
// is not a multiple of the element size, or [ErrClosed] if b is closed.
func FromBuffer(b Buffer, dt DType, shape, strides []int, offset int) (*Tensor, error) {
	var e codec.Encoder
	defer e.Done(false) // b must stay open until the tensor has its own reference
	if err := codec.EncodeValue(&e, b); err != nil || len(e.Message().Blocks) != 1 {
		return nil, errors.Join(fmt.Errorf("tensor from buffer: %w", ErrClosed), err)
	}
	d, err := arena.Default()
	if err != nil {
		return nil, fmt.Errorf("tensor from buffer: %w", err)
	}
	t, err := newAtByte(dt, shape, strides, offset, len(b.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("tensor from buffer: %w", err)
	}
	h := e.Message().Blocks[0]
	if err := d.Retain(h); err != nil {
		return nil, errors.Join(fmt.Errorf("tensor from buffer: %w", ErrClosed), err)
	}
	s, err := adoptBlock(d, h)
	if err != nil {
		return nil, fmt.Errorf("tensor from buffer: %w", err)
	}
	t.setStorage(s)
	return t, nil
}

// block returns the handle of the block of the default domain that contains t, and the offset of
// its first element in bytes. The handle is 0 if t is elsewhere.
func (t *Tensor) block() (handle uint64, offset int) {
	s := t.storage.Load()
	if s == nil {
		return 0, 0
	}
	l, ok := s.mem.Load().block()
	if !ok || l.domain != arena.Current() {
		return 0, 0
	}
	return uint64(l.block), t.offset * t.dtype.Size()
}

// vector returns a view of t, which must be contiguous, in one dimension, with its bytes
// interpreted as elements of dtype dt. dt must not be larger than t's dtype. The caller must
// close the view.
func (t *Tensor) vector(dt DType) *Tensor {
	v := t.view([]int{t.Nbytes() / dt.Size()}, []int{1}, t.offset*t.dtype.Size()/dt.Size())
	v.dtype = dt
	return v
}

// openBlock returns a tensor of n elements at offset bytes of a block in the default domain. The
// caller must close the tensor. Another process must hold a reference to the block until
// openBlock returns. The error wraps ErrAlign or ErrLayout if the elements are not within the
// block.
func openBlock(handle uint64, dt DType, offset, n int) (*Tensor, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	h := arena.Handle(handle)
	if err := d.Import(h); err != nil {
		return nil, err
	}
	s, err := adoptBlock(d, h)
	if err != nil {
		return nil, err
	}
	t, err := newAtByte(dt, []int{n}, []int{1}, offset, len(s.mem.Load().bytes))
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	t.setStorage(s)
	return t, nil
}

// newAtByte is like newUnbacked with offset in bytes. nil strides mean row-major. The error wraps
// ErrAlign if offset is not a multiple of the element size.
func newAtByte(dt DType, shape, strides []int, offset, size int) (*Tensor, error) {
	if dt.valid() {
		if offset%dt.Size() != 0 {
			return nil, fmt.Errorf("%v at byte %d: %w", dt, offset, ErrAlign)
		}
		offset /= dt.Size()
	}
	if strides == nil {
		strides = rowMajor(shape)
	}
	return newUnbacked(dt, shape, strides, offset, size)
}

// newUnbacked returns a tensor without storage, which the caller must set. offset is in elements.
// The error wraps ErrDType, or ErrLayout if an element is not within size bytes.
func newUnbacked(dt DType, shape, strides []int, offset, size int) (*Tensor, error) {
	if !dt.valid() {
		return nil, fmt.Errorf("%v: %w", dt, ErrDType)
	}
	bad := len(shape) != len(strides) || len(shape) > maxDims || offset < 0
	for _, numbers := range [][]int{shape, strides} {
		for _, n := range numbers {
			bad = bad || n < 0 || n >= 1<<48
		}
	}
	if bad {
		return nil, sizeMismatch(dt, shape, strides, offset, size)
	}
	t := &Tensor{dtype: dt, offset: offset}
	t.setLayout(shape, strides)
	return t, t.checkLayout(size)
}
