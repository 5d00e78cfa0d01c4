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

// FromBuffer returns a tensor over the bytes of b, without a copy, like torch.frombuffer. The first
// element is offset bytes after the start. strides are in elements; nil means row-major. The tensor
// has its own reference to the block, so b may be closed before the tensor. The caller must close
// the tensor.
//
// FromBuffer checks its arguments, because they may come from a message. The error wraps
// [ErrDType], [ErrLayout] if the layout is malformed or exceeds the bytes, [ErrAlign] if offset is
// not a multiple of the element size, or [ErrClosed].
func FromBuffer(b Buffer, dt DType, shape, strides []int, offset int) (*Tensor, error) {
	var e codec.Encoder
	defer e.Done(false) // b must stay open until the tensor has its own reference
	if err := codec.EncodeValue(&e, b); err != nil || len(e.Message().Blocks) != 1 {
		return nil, errors.Join(fmt.Errorf("tensor from buffer: %w", ErrClosed), err)
	}
	if dt.valid() && offset%dt.Size() != 0 {
		return nil, fmt.Errorf("tensor from buffer: %v at byte %d: %w", dt, offset, ErrAlign)
	}
	if dt.valid() {
		offset /= dt.Size()
	}
	if strides == nil {
		strides = rowMajor(shape)
	}
	t, err := newUnbacked(dt, shape, strides, offset, len(b.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("tensor from buffer: %w", err)
	}
	d, err := arena.Default()
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

// newUnbacked returns a tensor without storage. It returns an error if an element is not within
// size bytes.
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
