package cuda

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/ptx"
	"github.com/shoal-mp/shoal/tensor"
)

// Gather is device.Computer's.
func (d engine) Gather(out, in, index tensorOperand, dim int) error {
	kind, ok := moved[out.DType.Size()]
	if !ok {
		return fmt.Errorf("%w: Gather of %v on %v", tensor.ErrUnsupported, in.DType, d)
	}
	w, err := d.walkOver(out.Shape, out, index, in)
	if err != nil {
		return err
	}
	return d.each(ptx.Gather(kind), w, w.pull(2, dim))
}

// Scatter is device.Computer's.
func (d engine) Scatter(out, in, index tensorOperand, dim int, add bool) error {
	kind, ok := moved[out.DType.Size()]
	if add {
		kind, ok = types[out.DType]
	}
	if !ok {
		return fmt.Errorf("%w: Scatter of %v on %v", tensor.ErrUnsupported, in.DType, d)
	}
	w, err := d.walkOver(index.Shape, out, index, in)
	if err != nil {
		return err
	}
	return d.each(ptx.Scatter(kind, add), w, w.pull(0, dim))
}

// pull takes a dimension, which is counted from the outermost, out of the layout of an operand, and
// returns its stride.
func (w walk) pull(k, dim int) uint64 {
	o := &w.operands[k]
	at := len(o.strides) - 1 - dim
	stride := o.strides[at]
	o.strides[at] = 0
	return uint64(stride)
}
