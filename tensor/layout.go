package tensor

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// rowMajor returns the strides of a contiguous tensor.
func rowMajor(shape []int) []int {
	strides := make([]int, len(shape))
	rowMajorInto(strides, shape)
	return strides
}

// rowMajorInto sets the strides of a contiguous tensor.
func rowMajorInto(strides, shape []int) {
	step := 1
	for i, n := range slices.Backward(shape) {
		strides[i] = step
		step *= max(n, 1)
	}
}

// SizeOf returns the bytes of a contiguous tensor of a shape. It checks a shape that comes from a
// file or a message: the error wraps ErrDType, or ErrLayout if a size is negative or the product
// overflows.
func (d DType) SizeOf(shape ...int) (size int, err error) {
	if !d.valid() {
		return 0, fmt.Errorf("%v: %w", d, ErrDType)
	}
	n, empty := uint64(d.Size()), false
	for _, k := range shape {
		empty = empty || k == 0
		hi, lo := bits.Mul64(n, uint64(max(k, 1)))
		if k < 0 || hi != 0 || lo>>62 != 0 || len(shape) > maxDims {
			return 0, fmt.Errorf("shape %v: %w", shape, ErrLayout)
		}
		n = lo
	}
	if empty {
		return 0, nil
	}
	return int(n), nil
}

// checkShape returns the bytes of a tensor of a shape.
func checkShape(dt DType, shape []int) (size int) {
	if !dt.valid() {
		misuse(ErrArgument, "%v is no dtype", dt)
	}
	n := uint64(dt.Size())
	for _, d := range shape {
		if d < 0 {
			misuse(ErrShape, "shape %v has a negative size", slices.Clone(shape)) // the copy lets shape stay off the heap
		}
		hi, lo := bits.Mul64(max(n, 1), uint64(d))
		if hi != 0 || lo>>62 != 0 {
			misuse(ErrShape, "shape %v has more elements than there are addresses", slices.Clone(shape))
		}
		n = lo
	}
	return product(shape) * dt.Size()
}

// wrap returns i counted from the start, where negative ones count from the end of n.
func wrap(i, n int, what string) int {
	if i < -n || i >= n {
		misuse(ErrIndex, "%s %d is out of range of %d", what, i, n)
	}
	if i < 0 {
		i += n
	}
	return i
}

func (t *Tensor) axis(i int) int { return wrap(i, len(t.Shape()), "dimension") }

// broadcastInto returns the common shape of operands, in room if it fits there: sizes are aligned
// at the last dimension, and those of 1 stretch.
func broadcastInto(room []int, shapes ...[]int) []int {
	out := room[:0]
	for _, s := range shapes {
		for len(out) < len(s) {
			out = append(out, 1)
		}
	}
	for _, s := range shapes {
		tail := out[len(out)-len(s):]
		for i, n := range s {
			switch {
			case tail[i] == 1:
				tail[i] = n
			case n != 1 && n != tail[i]:
				misuse(ErrShape, "shapes %v do not broadcast", copies(shapes)) // so that shapes stay off the heap
			}
		}
	}
	return out
}

func copies(shapes [][]int) [][]int {
	all := make([][]int, len(shapes))
	for i, s := range shapes {
		all[i] = slices.Clone(s)
	}
	return all
}

// stretched returns the strides of t seen in a shape that it broadcasts to.
func (t *Tensor) stretched(shape []int) []int { return t.stretch(nil, shape) }

// stretch is stretched with the strides in room, if they fit there.
func (t *Tensor) stretch(room, shape []int) []int {
	extra := len(shape) - len(t.Shape())
	if extra < 0 {
		misuse(ErrShape, "shape %v does not broadcast to %v", slices.Clone(t.Shape()), slices.Clone(shape))
	}
	strides := slices.Grow(room[:0], len(shape))[:len(shape)]
	clear(strides)
	for i, n := range t.Shape() {
		switch {
		case n == shape[extra+i]:
			strides[extra+i] = t.Strides()[i]
		case n != 1:
			misuse(ErrShape, "shape %v does not broadcast to %v", slices.Clone(t.Shape()), slices.Clone(shape))
		}
	}
	return strides
}

// follow gives t, which is new and row-major, strides in the order that the dimensions of in have
// in memory, so that rows of these are rows of t. Of two dimensions the first operand decides that
// steps along both. The rule is PyTorch's, in all that it leaves open too.
func (t *Tensor) follow(in []*Tensor) {
	if slices.Equal(in[0].Shape(), t.Shape()) && in[0].IsContiguous() {
		return // it decides
	}
	var room [2 * fewDims]int
	order := room[:0] // the dimensions, from that of neighbours on
	for d := len(t.Shape()) - 1; d >= 0; d-- {
		order = append(order, d)
		at := len(order) - 1
		for i := at - 1; i >= 0; i-- {
			c := t.closer(order[at], order[i], in)
			if c > 0 {
				break
			}
			if c < 0 {
				order[i], order[at] = order[at], order[i]
				at = i
			}
		}
	}
	step := 1
	for _, d := range order {
		t.Strides()[d] = step
		step *= max(t.Shape()[d], 1)
	}
}

// closer compares how far neighbours along dimensions d and e of t are from each other in tensors
// that broadcast to it. It returns 0 where none of them decides.
func (t *Tensor) closer(d, e int, in []*Tensor) int {
	for _, x := range in {
		extra := len(t.Shape()) - len(x.Shape())
		if min(d, e) < extra || x.Shape()[d-extra] != t.Shape()[d] || x.Shape()[e-extra] != t.Shape()[e] {
			continue // it is stretched
		}
		along, across := x.Strides()[d-extra], x.Strides()[e-extra]
		if along == 0 || across == 0 {
			continue
		}
		if c := cmp.Compare(along, across); c != 0 {
			return c
		}
		if t.Shape()[d] < t.Shape()[e] {
			return -1
		}
	}
	return 0
}
