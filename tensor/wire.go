package tensor

import (
	"fmt"
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// maxDims bounds the dimensions of a tensor, as PyTorch's does. Sets of dimensions are in 64 bits.
const maxDims = 64

// The tags say where a tensor's memory is. What is between dtype and offset describes the memory.
const (
	inBlock  = iota // [dtype, block, offset, sizes, strides]
	inFile          // [dtype, path, device, inode, bytes, offset, sizes, strides]
	atDevice        // [dtype, kind, bytes, what the device writes, offset, sizes, strides]
)

var wireTags = &codec.Tags{Type: "tensor", Fields: []int{inBlock: 5, inFile: 8, atDevice: 7}}

// marshal writes the tensor's dtype, shape, strides and place in its storage, which is shared first
// if it is not yet: the tensor's receiver has the same memory.
func (t *Tensor) marshal(e *codec.Encoder) error {
	if t.marshalGiven(e) {
		return nil
	}
	if t.given {
		e.OnDone((*parting)(t))
	}
	if e.ByValue {
		c, err := t.compact()
		if err != nil {
			return fmt.Errorf("send tensor: %w", err)
		}
		if c != t {
			e.OnDone(codec.WatcherFunc(func(bool) { c.Close() }))
			t = c
		}
	}
	s := t.storage.Load()
	if s == nil || !s.retain(t.life) {
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
		known.of(l.domain).put(l)
		t.describe()
		e.Tag(wireTags, inBlock)
		e.Uint(uint64(t.dtype))
		e.Block(l.block)
	}
	t.writeLayout(e)
	return nil
}

// writeLayout writes the offset, the sizes, and the strides or nil.
func (t *Tensor) writeLayout(e *codec.Encoder) {
	e.Uint(uint64(t.offset))
	writeNumbers(e, t.Shape())
	if t.IsContiguous() {
		e.Nil()
	} else {
		writeNumbers(e, t.Strides())
	}
}

// compact returns t, or a copy of it where a receiver that has none of our memory would be sent or
// would keep much more than the tensor: of a part of a storage that is larger, and of what is in a
// file or on a device. The caller closes a copy.
func (t *Tensor) compact() (*Tensor, error) {
	s := t.storage.Load()
	if s == nil || !s.retain(t.life) {
		return nil, ErrClosed
	}
	defer s.release()
	switch s.mem.Load().lease.(type) {
	case *onDevice:
		return t.CPU()
	case *file:
	default:
		if t.end() <= 2*t.Nbytes() {
			return t, nil
		}
	}
	c, err := NewShared(t.dtype, t.Shape()...)
	if err != nil {
		return nil, err
	}
	return c.CopyFrom(t), nil
}

// end returns how many bytes of its storage lie in front of the tensor's end.
func (t *Tensor) end() int {
	last := t.offset
	for i, n := range t.Shape() {
		if n == 0 {
			return 0
		}
		last += (n - 1) * t.Strides()[i]
	}
	return (last + 1) * t.dtype.Size()
}

// A sent is a storage of which a message that is written counts a view.
type sent Storage

// Done takes that view away: the message, if it was sent, has references of its own.
func (s *sent) Done(bool) { (*Storage)(s).release() }

// A received is a tensor that was read from a message.
type received Tensor

// Done closes a tensor that nobody gets, since the rest of its message could not be read.
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

// unmarshal reads what marshal wrote: a tensor on the sender's storage, to be closed by the caller.
// The error wraps ErrLayout or ErrDType where the message does not describe a tensor in its block.
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
	t.hold(s)
	d.OnDone((*received)(t))
	if err := t.readLayout(d); err != nil {
		return err
	}
	if err := t.checkLayout(s.mem.Load().size()); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	t.describe()
	return nil
}

// readMemory has by tag what returns the storage.
var readMemory = [...]func(*codec.Decoder) (*Storage, error){inBlock: readBlock, inFile: readFile, atDevice: readDevice}

// readBlock returns the storage of a block.
func readBlock(d *codec.Decoder) (*Storage, error) {
	domain, err := arena.Default()
	if err != nil {
		return nil, err
	}
	h, err := d.Block()
	if err != nil {
		return nil, err
	}
	return adopt(domain, h)
}

// readLayout reads the offset, the sizes, and the strides or nil.
func (t *Tensor) readLayout(d *codec.Decoder) (err error) {
	if t.offset, err = natural(d); err != nil {
		return err
	}
	n, err := d.ArrayLen()
	if err == nil && n > maxDims {
		err = fmt.Errorf("receive tensor of %d dimensions: %w", n, ErrLayout)
	}
	if err != nil {
		return err
	}
	t.room(n)
	if err := readNumbers(d, t.Shape()); err != nil {
		return err
	}
	if d.IsNil() {
		rowMajorInto(t.Strides(), t.Shape())
		return nil
	}
	if n, err = d.ArrayLen(); err == nil && n != len(t.Shape()) {
		err = fmt.Errorf("receive tensor of %d sizes and %d strides: %w", len(t.Shape()), n, ErrLayout)
	}
	if err != nil {
		return err
	}
	return readNumbers(d, t.Strides())
}

// readNumbers reads a number for each dimension.
func readNumbers(d *codec.Decoder, numbers []int) (err error) {
	for i := range numbers {
		if numbers[i], err = natural(d); err != nil {
			return err
		}
	}
	return nil
}

// natural reads a number that no address exceeds.
func natural(d *codec.Decoder) (int, error) {
	n, err := d.Uint()
	if err == nil && n >= 1<<48 {
		err = fmt.Errorf("receive tensor with a size of %d: %w", n, ErrLayout)
	}
	return int(n), err
}

// checkLayout returns an error unless all elements are within size bytes. A tensor without
// elements, which may begin anywhere, as a part of a larger one does that has none either, begins
// at 0 if it was behind them.
func (t *Tensor) checkLayout(size int) error {
	room := uint64(size / t.dtype.Size()) // elements
	count, last := uint64(1), uint64(t.offset)
	empty := false
	for i, n := range t.Shape() {
		empty = empty || n == 0
		hi, steps := bits.Mul64(uint64(max(n-1, 0)), uint64(t.Strides()[i]))
		over, next := bits.Mul64(count, uint64(max(n, 1)))
		last += steps
		count = next
		if hi|over != 0 || steps >= 1<<50 || last >= 1<<50 || count >= 1<<58 {
			return t.misfit(size)
		}
	}
	switch {
	case empty && uint64(t.offset) > room:
		t.offset = 0
	case !empty && last >= room:
		return t.misfit(size)
	}
	return nil
}

func (t *Tensor) misfit(size int) error {
	return misfit(t.dtype, t.Shape(), t.Strides(), t.offset, size)
}

func misfit(dt DType, shape, strides []int, offset, size int) error {
	return fmt.Errorf("tensor of %v %v, strides %v, from element %d on, in %d bytes: %w",
		dt, shape, strides, offset, size, ErrLayout)
}
