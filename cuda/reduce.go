package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// A long row is split into parts, each reduced by a block of its own, unless there are enough rows
// to fill the device or a thread would have too few elements.
const (
	enoughBlocks  = 1024
	leastElements = 16 // per thread
	leastParts    = 4
)

// Reduce implements [device.Computer]: it queues kernels that reduce those dimensions of in
// that out does not have. Errors are as for [engine.Map].
func (d engine) Reduce(r device.Reduction, out, in tensorOperand) error {
	k, ok := ptx.Reduce(r.String(), types[out.DType], types[in.DType])
	if !ok || types[out.DType] == "" || types[in.DType] == "" {
		return d.missingKernel(r, in.DType)
	}
	outer, inner := in, in
	kept := len(out.Shape)
	outer.Shape, outer.Strides = in.Shape[:kept], in.Strides[:kept]
	inner.Shape, inner.Strides = in.Shape[kept:], in.Strides[kept:]
	rows, err := d.walkOver(out.Shape, outer, out)
	if err != nil {
		return err
	}
	if _, err := d.kernelOperand(in); err != nil { // bounds check of the whole operand
		return err
	}
	row, err := d.walkOver(inner.Shape, inner)
	if err != nil {
		return err
	}
	rows, row = rows.mergeDims(), row.mergeDims()
	results, n := rows.elementCount(), row.elementCount()
	if last := len(inner.Shape) - 1; last > 0 && inner.Shape[last] >= leastElements && combinable[r.String()] &&
		results > 0 {
		return d.reduceTwice(r, out, in)
	}
	switch {
	case results == 0:
		return nil
	case results > most || n > most:
		return fmt.Errorf("%w: %d reductions of %d elements on %v", tensor.ErrUnsupported, results, n, d)
	}
	b := blockFor(rows, row, n)
	parts := 1
	if blocks := (results + b.height() - 1) / b.height(); combinable[r.String()] {
		parts = min(enoughBlocks/blocks, n/(leastElements*b.width))
	}
	if parts < leastParts {
		return d.reduce(k, b, rows, row, 1, 0)
	}
	return d.reduceInParts(r, b, rows, row, parts, out, in.DType)
}

// reduceTwice reduces the last dimension of in, and then the remaining ones. r must be
// combinable.
func (d engine) reduceTwice(r device.Reduction, out, in tensorOperand) error {
	last := len(in.Shape) - 1
	return d.reduceInTwoSteps(r, out, in.Shape[:last], func(to tensorOperand) error { return d.Reduce(r, to, in) })
}

// reduceInTwoSteps reduces in two steps. The function first must write a temporary tensor, to,
// of the given shape; reduceInTwoSteps then reduces the last dimensions of that tensor to out.
func (d engine) reduceInTwoSteps(r device.Reduction, out tensorOperand, shape []int,
	first func(to tensorOperand) error) error {
	wide := out.DType
	if (r == device.Sum || r == device.Prod) && wide != tensor.Int64 {
		wide = tensor.Float64
	}
	m, err := d.Alloc(product(shape) * wide.Size())
	if err != nil {
		return err
	}
	// The temporary memory may be freed before the kernels have run: only this process uses it, and
	// later work is on the same stream.
	strides := contiguousStrides(reverseInts(shape), 1)
	slices.Reverse(strides)
	to := tensorOperand{Memory: m, DType: wide, Shape: shape, Strides: strides}
	if err = first(to); err == nil {
		err = d.Reduce(r, out, to)
	}
	return errors.Join(err, m.End())
}

// combinable is the set of reductions that can be applied again to partial results.
var combinable = map[string]bool{"Sum": true, "Prod": true, "Amax": true, "Amin": true}

// reduceInParts splits each row into the given number of parts, reduces each part to temporary
// memory, and then reduces those results to out. in is the dtype of the elements.
func (d engine) reduceInParts(r device.Reduction, b block, rows, row walk, parts int, out tensorOperand,
	in tensor.DType) error {
	return d.reduceInTwoSteps(r, out, append(slices.Clone(out.Shape), parts), func(to tensorOperand) error {
		k, _ := ptx.Reduce(r.String(), types[to.DType], types[in])
		seen, err := d.kernelOperand(to)
		if err != nil {
			return err
		}
		seen.strides = contiguousStrides(rows.shape, parts*seen.size)
		rows.operands = []operand{rows.operands[0], seen}
		return d.reduce(k, b, rows, row, parts, seen.size)
	})
}

func reverseInts(s []int) []int {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// contiguousStrides returns the strides of a contiguous layout, the innermost dimension first.
// size is the stride of the innermost dimension.
func contiguousStrides(shape []int, size int) (strides []int) {
	for _, n := range shape {
		strides = append(strides, size)
		size *= n
	}
	return strides
}

// A block is the assignment of a block's threads to elements: width threads along a row, and the
// remaining ones across rows. If across is set, threads with adjacent numbers process adjacent
// rows, and otherwise adjacent elements of a row.
type block struct {
	width  int
	across bool
}

func (b block) height() int { return ptx.BlockSize / b.width }

// blockFor chooses a block such that adjacent threads read adjacent memory. n is the number of
// elements of a row.
func blockFor(rows, row walk, n int) (b block) {
	b.width = 1
	b.across = rows.operands[0].strides[0] < row.operands[0].strides[0] && rows.shape[0] > 1
	widest := ptx.BlockSize
	if b.across {
		widest = ptx.BlockSize / 32
	}
	for b.width < min(n, widest) {
		b.width *= 2
	}
	return b
}

func (d *Device) reduce(k ptx.Kernel, b block, rows, row walk, parts, step int) error {
	results, n := rows.elementCount(), row.elementCount()
	chunk := (n + parts - 1) / parts
	alongBy, acrossBy := 1, b.width
	if b.across {
		alongBy, acrossBy = b.height(), 1
	}
	outer, err := rows.layout()
	if err != nil {
		return err
	}
	inner, err := row.layout()
	if err != nil {
		return err
	}
	words := []uint64{uint64(results), uint64(n), uint64(chunk), uint64(b.width), uint64(alongBy),
		uint64(acrossBy), uint64(step),
		rows.operands[1].word, rows.operands[0].word}
	words = append(append(words, outer...), inner...)
	grid, entry := [3]uint32{uint32((results + b.height() - 1) / b.height()), uint32(parts), 1}, "reduce"
	if len(row.shape) == 1 {
		entry = "line"
	}
	return d.launchKernel(k, entry, grid, [3]uint32{ptx.BlockSize, 1, 1}, words)
}
