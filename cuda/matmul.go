package cuda

import (
	"fmt"
	"math"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/tensor"
)

// mostBatch is the maximum number of blocks along z. Tests set it to a smaller value.
var mostBatch = math.MaxUint16

// MatMul implements [device.Computer]: it queues the computation of out = a·b + beta·out for a
// batch of matrices. It uses cuBLAS if that is available and supports the operands, and
// otherwise a kernel of this package. Errors are as for [engine.Map].
func (d engine) MatMul(out, a, b tensorOperand, beta float64) error {
	k, ok := ptx.MatMul(types[out.DType])
	if !ok || types[out.DType] == "" {
		return fmt.Errorf("%w: MatMul of %v on %v", tensor.ErrUnsupported, out.DType, d)
	}
	if out.Shape[0]*out.Shape[1]*out.Shape[2] == 0 {
		return nil
	}
	if g, ok := convertGemm(out, a, b, beta); ok {
		if done, err := d.queueProduct(g, out, a, b); done {
			return err
		}
	}
	return d.multiplyTiled(k, out, a, b, beta)
}

// multiplyTiled multiplies matrices as [device.Computer] defines for MatMul, with the kernel k
// of this package. The error wraps [tensor.ErrUnsupported] if a matrix has too many elements.
func (d *Device) multiplyTiled(k ptx.Kernel, out, a, b tensorOperand, beta float64) error {
	batch, rows, columns, depth := out.Shape[0], out.Shape[1], out.Shape[2], a.Shape[2]
	words := []uint64{uint64(rows), uint64(columns), uint64(depth)}
	var strides []uint64
	for _, o := range []tensorOperand{out, a, b} {
		seen, err := d.kernelOperand(o)
		if err != nil {
			return err
		}
		words = append(words, seen.word)
		for _, s := range o.Strides {
			strides = append(strides, uint64(s*seen.size))
		}
	}
	words = append(append(words, strides...), math.Float64bits(beta))
	tiles := ((rows + ptx.Tile - 1) / ptx.Tile) * ((columns + ptx.Tile - 1) / ptx.Tile)
	if max(rows, columns, depth, tiles) > most {
		return fmt.Errorf("%w: product of size %d×%d×%d on %v", tensor.ErrUnsupported, rows, depth, columns, d)
	}
	for done := 0; done < batch; done += mostBatch {
		n := min(batch-done, mostBatch)
		if err := d.launchKernel(k, "matmul", [3]uint32{uint32(tiles), 1, uint32(n)},
			[3]uint32{ptx.BlockSize, 1, 1}, words); err != nil {
			return err
		}
		for i := range 3 {
			words[3+i] += uint64(n) * strides[3*i]
		}
	}
	return nil
}
