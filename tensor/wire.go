package tensor

import (
	"fmt"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// maxDims is the maximum number of dimensions, as in PyTorch. Sets of dimensions are 64-bit masks.
const maxDims = 64

// The tags specify where a tensor's memory is. The fields between dtype and offset describe the
// memory.
const (
	inBlock  = iota // [dtype, block, offset, sizes, strides]
	inFile          // [dtype, path, device, inode, bytes, offset, sizes, strides]
	atDevice        // [dtype, kind, bytes, data of the device, offset, sizes, strides]
)

var wireTags = &codec.Tags{Type: "tensor", Fields: []int{inBlock: 5, inFile: 8, atDevice: 7}}

// marshal encodes the tensor's dtype, shape, strides and memory. It shares the storage first if
// necessary, so that the receiver has the same memory. The error wraps ErrClosed if t is closed,
// ErrDomain if its block is in another domain, or an error of share.
func (t *Tensor) marshal(e *codec.Encoder) error {
	if t.marshalGiven(e) {
		return nil
	}
	if t.given {
		e.OnDone((*sharedTransfer)(t))
	}
	if e.ByValue {
		c, err := t.compactForSend()
		if err != nil {
			return fmt.Errorf("send tensor: %w", err)
		}
		if c != t {
			e.OnDone(codec.WatcherFunc(func(bool) { c.Close() }))
			t = c
		}
	}
	s := t.storage.Load()
	if s == nil || !s.retain(t.generation) {
		return fmt.Errorf("send tensor: %w", ErrClosed)
	}
	e.OnDone((*sent)(s))
	if err := s.share(); err != nil {
		return fmt.Errorf("send tensor: %w", err)
	}
	switch l := s.mem.Load().lease.(type) {
	case *file:
		e.StaysHere()
		e.Tag(wireTags, inFile)
		e.Uint(uint64(t.dtype))
		l.marshal(e)
	case *onDevice:
		e.Tag(wireTags, atDevice)
		e.Uint(uint64(t.dtype))
		if err := l.marshal(e); err != nil {
			return fmt.Errorf("send tensor: %w", err)
		}
	case *lease:
		if err := l.check(); err != nil {
			return err
		}
		known.tableOf(l.domain).setLease(l)
		t.describeBlock()
		e.Tag(wireTags, inBlock)
		e.Uint(uint64(t.dtype))
		e.Block(l.block)
	}
	t.writeLayout(e)
	return nil
}

// writeLayout encodes the offset, the sizes, and the strides, or nil instead of the strides if t
// is contiguous.
func (t *Tensor) writeLayout(e *codec.Encoder) {
	e.Uint(uint64(t.offset))
	writeNumbers(e, t.Shape())
	if t.IsContiguous() {
		e.Nil()
	} else {
		writeNumbers(e, t.Strides())
	}
}

// compactForSend returns t, or a copy if a receiver that cannot access the blocks of this process
// would receive or keep much more than the tensor: for small parts of a storage, and for tensors
// in files or on devices. The caller must close a copy. The error is ErrClosed if t is closed.
func (t *Tensor) compactForSend() (*Tensor, error) {
	s := t.storage.Load()
	if s == nil || !s.retain(t.generation) {
		return nil, ErrClosed
	}
	defer s.release()
	switch s.mem.Load().lease.(type) {
	case *onDevice:
		return t.CPU()
	case *file:
	default:
		if t.endOffset() <= 2*t.Nbytes() {
			return t, nil
		}
	}
	c, err := NewShared(t.dtype, t.Shape()...)
	if err != nil {
		return nil, err
	}
	return c.CopyFrom(t), nil
}

// endOffset returns the offset of the tensor's end in its storage, in bytes, or 0 if t is empty.
func (t *Tensor) endOffset() int {
	last := t.offset
	for i, n := range t.Shape() {
		if n == 0 {
			return 0
		}
		last += (n - 1) * t.Strides()[i]
	}
	return (last + 1) * t.dtype.Size()
}

// A sent is a storage with a reference held for a message that is being encoded. The encoder
// calls Done.
type sent Storage

// Done drops this reference. A message that was sent has references of its own.
func (s *sent) Done(bool) { (*Storage)(s).release() }

// A received is a tensor decoded from a message. The decoder calls Done.
type received Tensor

// Done closes the tensor if the rest of the message could not be decoded.
func (t *received) Done(kept bool) {
	if !kept {
		(*Tensor)(t).Close()
	}
}

func writeNumbers(e *codec.Encoder, numbers []int) {
	e.ArrayLen(len(numbers))
	for _, n := range numbers {
		e.Uint(uint64(n))
	}
}

// unmarshal decodes a tensor over the sender's storage. The caller must close it. The error wraps
// ErrLayout or ErrDType if the message does not describe a tensor within its memory.
func (t *Tensor) unmarshal(d *codec.Decoder) error {
	tag, err := d.Tag(wireTags)
	if err != nil {
		return fmt.Errorf("receive tensor: %w", err)
	}
	dt, err := d.Uint()
	if err == nil && dt >= dtypes {
		err = fmt.Errorf("receive tensor of dtype %d: %w", dt, ErrDType)
	}
	if err != nil {
		return err
	}
	s, err := readMemory[tag](d)
	if err != nil {
		return fmt.Errorf("receive tensor: %w", err)
	}
	t.dtype = DType(dt)
	t.setStorage(s)
	d.OnDone((*received)(t))
	if err := t.readLayout(d); err != nil {
		return err
	}
	if err := t.checkLayout(s.mem.Load().size()); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	t.describeBlock()
	return nil
}

// readMemory maps a wire tag to the function that decodes the storage.
var readMemory = [...]func(*codec.Decoder) (*Storage, error){inBlock: readBlock, inFile: readFile, atDevice: readDevice}

// readBlock decodes the storage of a block, with one more reference, which the caller must
// release.
func readBlock(d *codec.Decoder) (*Storage, error) {
	domain, err := arena.Default()
	if err != nil {
		return nil, err
	}
	h, err := d.Block()
	if err != nil {
		return nil, err
	}
	return adoptBlock(domain, h)
}

// readLayout decodes the offset, the sizes, and the strides or nil. The error wraps ErrLayout if
// they are out of range.
func (t *Tensor) readLayout(d *codec.Decoder) (err error) {
	if t.offset, err = decodeSize(d); err != nil {
		return err
	}
	n, err := d.ArrayLen()
	if err == nil && n > maxDims {
		err = fmt.Errorf("receive tensor: %d dimensions are too many: %w", n, ErrLayout)
	}
	if err != nil {
		return err
	}
	t.reserveDims(n)
	if err := readNumbers(d, t.Shape()); err != nil {
		return err
	}
	if d.IsNil() {
		rowMajorInto(t.Strides(), t.Shape())
		return nil
	}
	if n, err = d.ArrayLen(); err == nil && n != len(t.Shape()) {
		err = fmt.Errorf("receive tensor: got %d sizes and %d strides, want equal numbers: %w",
			len(t.Shape()), n, ErrLayout)
	}
	if err != nil {
		return err
	}
	return readNumbers(d, t.Strides())
}

// readNumbers decodes a number for each dimension.
func readNumbers(d *codec.Decoder, numbers []int) (err error) {
	for i := range numbers {
		if numbers[i], err = decodeSize(d); err != nil {
			return err
		}
	}
	return nil
}

// decodeSize decodes a number that is less than 2^48. The error wraps ErrLayout for larger
// numbers.
func decodeSize(d *codec.Decoder) (int, error) {
	n, err := d.Uint()
	if err == nil && n >= 1<<48 {
		err = fmt.Errorf("receive tensor: size %d is too large: %w", n, ErrLayout)
	}
	return int(n), err
}

// checkLayout returns an error that wraps ErrLayout unless all elements are within size bytes. An
// empty tensor may have any offset, like an empty part of a larger tensor; an offset beyond the
// storage is set to 0.
func (t *Tensor) checkLayout(size int) error {
	room := uint64(size / t.dtype.Size()) // in elements
	count, last := uint64(1), uint64(t.offset)
	empty := false
	for i, n := range t.Shape() {
		empty = empty || n == 0
		hi, steps := bits.Mul64(uint64(max(n-1, 0)), uint64(t.Strides()[i]))
		over, next := bits.Mul64(count, uint64(max(n, 1)))
		last += steps
		count = next
		if hi|over != 0 || steps >= 1<<50 || last >= 1<<50 || count >= 1<<58 {
			return t.sizeMismatch(size)
		}
	}
	switch {
	case empty && uint64(t.offset) > room:
		t.offset = 0
	case !empty && last >= room:
		return t.sizeMismatch(size)
	}
	return nil
}

func (t *Tensor) sizeMismatch(size int) error {
	return sizeMismatch(t.dtype, t.Shape(), t.Strides(), t.offset, size)
}

func sizeMismatch(dt DType, shape, strides []int, offset, size int) error {
	return fmt.Errorf("tensor of %v %v with strides %v at element %d exceeds %d bytes: %w",
		dt, shape, strides, offset, size, ErrLayout)
}
