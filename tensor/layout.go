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

// rowMajorInto sets strides to the strides of a contiguous tensor.
func rowMajorInto(strides, shape []int) {
	step := 1
	for i, n := range slices.Backward(shape) {
		strides[i] = step
		step *= max(n, 1)
	}
}

// SizeOf returns the size in bytes of a contiguous tensor with the given shape. It should be used
// to check shapes from files and messages. The error wraps [ErrDType], or [ErrLayout] if a size is
// negative or the product overflows.
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

// checkShape returns the size of a contiguous tensor in bytes. It panics if dt or shape is invalid.
func checkShape(dt DType, shape []int) (size int) {
	if !dt.valid() {
		misuse(ErrArgument, "invalid dtype %v", dt)
	}
	n := uint64(dt.Size())
	for _, d := range shape {
		if d < 0 {
			// The copy keeps shape from escaping to the heap.
			misuse(ErrShape, "shape %v has a negative size", slices.Clone(shape))
		}
		hi, lo := bits.Mul64(max(n, 1), uint64(d))
		if hi != 0 || lo>>62 != 0 {
			misuse(ErrShape, "shape %v exceeds the address space", slices.Clone(shape))
		}
		n = lo
	}
	return product(shape) * dt.Size()
}

// wrapIndex returns index i counted from the start, where a negative i counts from the end of n.
// It panics if i is out of range. what is the name of the index in the error.
func wrapIndex(i, n int, what string) int {
	if i < -n || i >= n {
		misuse(ErrIndex, "%s %d is out of range [-%[3]d, %[3]d)", what, i, n)
	}
	if i < 0 {
		i += n
	}
	return i
}

func (t *Tensor) resolveDim(i int) int { return wrapIndex(i, len(t.Shape()), "dimension") }

// broadcastInto returns the common shape of the operands. Shapes are aligned at the last
// dimension, and sizes of 1 are stretched. It panics with ErrShape if there is no common shape.
// It uses room if the result fits.
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
				// The copies keep shapes from escaping to the heap.
				misuse(ErrShape, "shapes %v cannot be broadcast together", cloneShapes(shapes))
			}
		}
	}
	return out
}

func cloneShapes(shapes [][]int) [][]int {
	all := make([][]int, len(shapes))
	for i, s := range shapes {
		all[i] = slices.Clone(s)
	}
	return all
}

// broadcastStrides returns the strides of t broadcast to shape. It panics with ErrShape if this
// is impossible.
func (t *Tensor) broadcastStrides(shape []int) []int { return t.appendBroadcastStrides(nil, shape) }

// appendBroadcastStrides is like broadcastStrides, but uses room if the strides fit.
func (t *Tensor) appendBroadcastStrides(room, shape []int) []int {
	extra := len(shape) - len(t.Shape())
	if extra < 0 {
		misuse(ErrShape, "shape %v cannot be broadcast to %v", slices.Clone(t.Shape()), slices.Clone(shape))
	}
	strides := slices.Grow(room[:0], len(shape))[:len(shape)]
	clear(strides)
	for i, n := range t.Shape() {
		switch {
		case n == shape[extra+i]:
			strides[extra+i] = t.Strides()[i]
		case n != 1:
			misuse(ErrShape, "shape %v cannot be broadcast to %v", slices.Clone(t.Shape()), slices.Clone(shape))
		}
	}
	return strides
}

// matchOrder reorders the strides of t, which must be new and row-major, to the memory order of the
// dimensions of in, so that their rows are rows of t. If the operands disagree about two
// dimensions, the first one that steps along both decides. The algorithm is PyTorch's, including
// its ties.
func (t *Tensor) matchOrder(in []*Tensor) {
	if slices.Equal(in[0].Shape(), t.Shape()) && in[0].IsContiguous() {
		return // the first operand decides
	}
	var room [2 * fewDims]int
	order := room[:0] // dimensions, innermost first
	for d := len(t.Shape()) - 1; d >= 0; d-- {
		order = append(order, d)
		at := len(order) - 1
		for i := at - 1; i >= 0; i-- {
			c := t.compareDistance(order[at], order[i], in)
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

// compareDistance compares the distance between neighbors along dimension d with the distance
// along dimension e, in the tensors of in. It returns a negative number if the distance along d
// is smaller, a positive one if it is larger, and 0 if no tensor decides.
func (t *Tensor) compareDistance(d, e int, in []*Tensor) int {
	for _, x := range in {
		extra := len(t.Shape()) - len(x.Shape())
		if min(d, e) < extra || x.Shape()[d-extra] != t.Shape()[d] || x.Shape()[e-extra] != t.Shape()[e] {
			continue // x is broadcast along d or e
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
