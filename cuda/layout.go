package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// A walk describes how an elementwise kernel iterates over its operands. The innermost dimension
// comes first, and strides are in bytes.
type walk struct {
	shape    []int
	place    int // row-major index of the first element
	operands []operand
}

// An operand is either an address with a stride for each dimension, or a number, which has no
// strides.
type operand struct {
	word    uint64
	number  bool
	size    int // of an element, in bytes
	strides []int
}

// types maps dtypes to kernel types. Complex dtypes are missing: they are copied as pairs of
// numbers.
var types = map[tensor.DType]ptx.Type{
	tensor.Bool: ptx.Bool, tensor.Uint8: ptx.Uint8, tensor.Int8: ptx.Int8, tensor.Int16: ptx.Int16,
	tensor.Int32: ptx.Int32, tensor.Int64: ptx.Int64,
	tensor.Float16: ptx.Float16, tensor.BFloat16: ptx.BFloat16, tensor.Float32: ptx.Float32,
	tensor.Float64: ptx.Float64,
}

// kernelOperand converts an operand for a kernel on d. It counts as a use of the memory by
// queued work. The error wraps [ErrDevice] if the memory is on another device. It panics if the
// elements are not within the memory.
func (d *Device) kernelOperand(o tensorOperand) (operand, error) {
	if o.Memory == nil {
		return operand{word: binary.LittleEndian.Uint64(o.Value[:]), number: true, size: o.DType.Size()}, nil
	}
	m, ok := o.Memory.(*memory)
	if !ok || m.dev != d {
		return operand{}, fmt.Errorf("%w: memory of %v for a kernel on %v", ErrDevice, o.Memory.Device(), d)
	}
	seen, last := operand{size: o.DType.Size()}, o.Offset
	for i, n := range o.Shape {
		seen.strides = append(seen.strides, o.Strides[i]*seen.size)
		last += max(n-1, 0) * o.Strides[i]
	}
	slices.Reverse(seen.strides)
	if slices.Contains(o.Shape, 0) {
		last = o.Offset - 1
	}
	seen.word = uint64(m.addressAt(o.Offset*seen.size, (last+1-o.Offset)*seen.size))
	return seen, nil
}

// walkOver returns the walk that an elementwise kernel makes over all elements of a shape. All
// operands must have that shape or be numbers. The error wraps [ErrDevice] if the memory of an
// operand is on another device.
func (d *Device) walkOver(shape []int, operands ...tensorOperand) (w walk, err error) {
	w.shape = slices.Clone(shape)
	slices.Reverse(w.shape)
	for _, o := range operands {
		seen, err := d.kernelOperand(o)
		if err != nil {
			return w, err
		}
		w.operands = append(w.operands, seen)
	}
	return w, nil
}

// clone returns a copy of the walk. The layout of the copy may be modified.
func (w walk) clone() walk {
	w.shape, w.operands = slices.Clone(w.shape), slices.Clone(w.operands)
	for k := range w.operands {
		w.operands[k].strides = slices.Clone(w.operands[k].strides)
	}
	return w
}

func (w walk) elementCount() int {
	n := 1
	for _, size := range w.shape {
		n *= size
	}
	return n
}

// mergeDims returns the walk with adjacent dimensions merged where possible. The result has at
// least one dimension.
func (w walk) mergeDims() walk {
	var dims []dim
	for i, n := range slices.Backward(w.shape) {
		if n != 1 {
			dims = append(dims, w.dim(n, func(o operand) int { return o.strides[i] }))
		}
	}
	dims = device.Merge(dims, func(steps *[]int) []int { return *steps })
	if len(dims) == 0 {
		dims = []dim{w.dim(1, func(o operand) int { return o.size })}
	}
	out := walk{place: w.place, operands: slices.Clone(w.operands)}
	for k := range out.operands {
		out.operands[k].strides = nil
	}
	for _, d := range slices.Backward(dims) {
		out.shape = append(out.shape, d.Size)
		for k := range out.operands {
			if o := &out.operands[k]; !o.number {
				o.strides = append(o.strides, d.Steps[k])
			}
		}
	}
	return out
}

// A dim holds the strides of all operands in one dimension; the stride of a number is 0.
type dim = device.Dim[[]int]

func (w walk) dim(n int, stride func(o operand) int) dim {
	d := dim{Size: n, Steps: make([]int, len(w.operands))}
	for k, o := range w.operands {
		if !o.number {
			d.Steps[k] = stride(o)
		}
	}
	return d
}

// layout returns the kernel parameters that describe the shape and the strides of the operands in
// memory. The error wraps [tensor.ErrUnsupported] if there are more than [ptx.Dims] dimensions; the
// walk should be merged first.
func (w walk) layout() ([]uint64, error) {
	if len(w.shape) > ptx.Dims {
		return nil, fmt.Errorf("%w: %d dimensions, none of which can be merged with its neighbour",
			tensor.ErrUnsupported, len(w.shape))
	}
	words := append(make([]uint64, 0, 64), uint64(len(w.shape)))
	room := func(s []int) {
		for i := range ptx.Dims {
			if i < len(s) {
				words = append(words, uint64(s[i]))
			} else {
				words = append(words, 0)
			}
		}
	}
	room(w.shape)
	for i := range ptx.Dims {
		if i < len(w.shape) {
			words = append(words, ptx.Reciprocal(max(w.shape[i], 1)))
		} else {
			words = append(words, 0)
		}
	}
	for _, o := range w.operands {
		if !o.number {
			room(o.strides)
		}
	}
	return words, nil
}

// isDense reports whether all operands are contiguous and aligned for access in vectors of the
// given number of elements. The walk must be merged. It returns false if vector is 0.
func (w walk) isDense(vector int) bool {
	if vector == 0 || len(w.shape) > 1 {
		return false
	}
	return !slices.ContainsFunc(w.operands, func(o operand) bool {
		return !o.number && (o.strides[0] != o.size && w.shape[0] > 1 || o.word%uint64(vector*o.size) != 0)
	})
}

// most is the maximum number of elements in one kernel launch. Tests set it to a smaller value,
// which must be a multiple of 16.
var most = math.MaxInt32 &^ 15

// each launches an elementwise kernel over a walk, in several parts if it has more than most
// elements. extra are further parameters, which follow the operands.
func (d *Device) each(k ptx.Kernel, w walk, extra ...uint64) error {
	for _, part := range w.splitParts(most) {
		if err := d.eachOf(k, part, extra); err != nil {
			return err
		}
	}
	return nil
}

func (d *Device) eachOf(k ptx.Kernel, w walk, extra []uint64) error {
	n := w.elementCount()
	if n == 0 {
		return nil
	}
	words := []uint64{uint64(n), uint64(w.place)}
	for _, o := range w.operands {
		words = append(words, o.word)
	}
	words = append(words, extra...)
	if w.isDense(k.Vector) {
		grid, block := gridFor((n + k.Vector - 1) / k.Vector)
		return d.launchKernel(k, "dense", grid, block, words)
	}
	entry := "strided"
	if vectors, ok := w.inVectors(k.Vector); ok {
		entry, w = "inner", vectors
		n /= k.Vector
		words[0] = uint64(n)
	}
	layout, err := w.layout()
	if err != nil {
		return err
	}
	grid, block := gridFor(n)
	return d.launchKernel(k, entry, grid, block, append(words, layout...))
}

// inVectors returns the walk in units of n elements along the innermost dimension. ok is false
// unless each operand is contiguous and aligned in that dimension, or has the same element for all
// of it.
func (w walk) inVectors(n int) (walk, bool) {
	if n == 0 || w.shape[0]%n != 0 {
		return w, false
	}
	out := w
	out.shape, out.operands = slices.Clone(w.shape), slices.Clone(w.operands)
	out.shape[0] /= n
	for k := range out.operands {
		o := &out.operands[k]
		whole := func(address int) bool { return address%(n*o.size) == 0 }
		switch {
		case o.number || o.strides[0] == 0:
			continue
		case o.strides[0] != o.size || !whole(int(o.word)):
			return w, false
		}
		o.strides = slices.Clone(o.strides)
		o.strides[0] *= n
		if slices.ContainsFunc(o.strides, func(s int) bool { return !whole(s) }) {
			return w, false
		}
	}
	return out, true
}

// splitParts splits the walk into merged walks of at most limit elements each, in order.
func (w walk) splitParts(limit int) []walk {
	w = w.mergeDims()
	if w.elementCount() <= limit {
		return []walk{w}
	}
	last := len(w.shape) - 1
	low, high := w.splitDim(last, max(w.shape[last]/2&^15, 1))
	return append(low.splitParts(limit), high.splitParts(limit)...)
}

// splitDim splits the walk along a dimension, which must be the outermost, into its first n
// indices and the remaining ones.
func (w walk) splitDim(dim, n int) (low, high walk) {
	low, high = w, w
	low.shape, high.shape, high.operands = slices.Clone(w.shape), slices.Clone(w.shape), slices.Clone(w.operands)
	low.shape[dim], high.shape[dim] = n, w.shape[dim]-n
	high.place += low.elementCount()
	for k := range high.operands {
		if o := &high.operands[k]; !o.number {
			o.word += uint64(n * o.strides[dim])
		}
	}
	return low, high
}
