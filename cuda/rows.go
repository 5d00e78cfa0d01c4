package cuda

import (
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// leastOfRow is the minimum number of elements of a row per thread, except for the last threads.
const leastOfRow = 4

// Rows implements [device.Computer]: it queues a kernel that applies o to each row of the
// operands. Errors are as for [engine.Map].
func (d engine) Rows(o device.RowOp, out tensorOperand, in ...tensorOperand) error {
	if o.Kind == device.RowNLLGradient {
		return d.nllGradient(o, out, in[0], in[1])
	}
	k, ok := ptx.Rows(o.Kind.String(), types[out.DType], len(in))
	if !ok {
		return d.missingKernel(o.Kind, out.DType)
	}
	rows, n, classes := 1, in[0].Shape[0], 0
	if o.Kind == device.RowNLL {
		classes = in[0].Shape[1]
	} else {
		rows, n = product(out.Shape)/out.Shape[len(out.Shape)-1], out.Shape[len(out.Shape)-1]
	}
	if rows > most || n > most {
		return fmt.Errorf("%w: %v of %d rows of %d on %v", tensor.ErrUnsupported, o.Kind, rows, n, d)
	}
	width := 1 // gives each thread several elements if there are many rows
	for width < min(n/leastOfRow, ptx.BlockSize) {
		width *= 2
	}
	words := []uint64{uint64(rows), uint64(n), uint64(width), uint64(classes), math.Float64bits(o.Factor)}
	for _, operand := range append([]tensorOperand{out}, in...) {
		seen, err := d.kernelOperand(operand)
		if err != nil {
			return err
		}
		words = append(words, seen.word)
	}
	height := ptx.BlockSize / width
	grid := [3]uint32{uint32((rows + height - 1) / height), 1, 1}
	return d.launchKernel(k, "rows", grid, [3]uint32{ptx.BlockSize, 1, 1}, words)
}

// nllGradient computes [device.RowNLLGradient] with a thread for each element of out. Each
// thread reads the class of its row and the shared scalar.
func (d *Device) nllGradient(o device.RowOp, out, class, number tensorOperand) error {
	k, ok := ptx.NLLGradient(types[out.DType])
	if !ok {
		return d.missingKernel(o.Kind, out.DType)
	}
	class.Shape, class.Strides = out.Shape, []int{1, 0}
	number.Shape, number.Strides = out.Shape, []int{0, 0}
	w, err := d.walkOver(out.Shape, out, class, number)
	if err != nil {
		return err
	}
	return d.each(k, w, uint64(out.Shape[1]), math.Float64bits(o.Factor))
}

func product(shape []int) int {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return n
}
