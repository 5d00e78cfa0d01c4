package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
	"github.com/shoal-mp/shoal/tensor"
)

// Gather implements [device.Computer]: it sets each element of out to the element of in that
// index selects in dimension dim. found is true if an index is out of range, and v is one such
// index. If there are few indices for the amount of gathered data, a separate kernel checks
// them first, so that the host need not wait for the gathering itself. Errors are as for
// [engine.Map].
func (d engine) Gather(out, in, index tensorOperand, dim int) (v int64, found bool, err error) {
	kind, ok := moved[out.DType.Size()]
	if !ok {
		return 0, false, fmt.Errorf("%w: Gather of %v on %v", tensor.ErrUnsupported, in.DType, d)
	}
	w, err := d.walkOver(out.Shape, out, index, in)
	if err != nil {
		return 0, false, err
	}
	w, kind = w.inWideUnits(kind, 1)
	n := in.Shape[dim]
	gather := func(report cudriver.Ptr) error {
		w := w.clone()
		return d.each(ptx.Gather(kind), w, w.zeroStride(2, dim), uint64(n), uint64(report))
	}
	once := withoutBroadcast(index)
	if few := product(once.Shape) <= product(out.Shape)/8; !few {
		return d.launchReporting(gather, func() {})
	}
	var failed error
	v, found, err = d.Outside(once, int64(-n), int64(n), func() { failed = gather(0) })
	return v, found, errors.Join(err, failed)
}

// withoutBroadcast returns the operand with its broadcast dimensions (stride 0) reduced to size 1.
func withoutBroadcast(o tensorOperand) tensorOperand {
	o.Shape = slices.Clone(o.Shape)
	for i, step := range o.Strides {
		if step == 0 {
			o.Shape[i] = min(o.Shape[i], 1)
		}
	}
	return o
}

// inWideUnits returns the walk in units of 8 bytes, and the type [ptx.Bits64], if all elements
// of a unit share one index and are contiguous in the other operands. index is the number of
// the index operand. Otherwise it returns w and kind unchanged.
func (w walk) inWideUnits(kind ptx.Type, index int) (walk, ptx.Type) {
	n := 8 / kind.Size()
	if n == 1 || len(w.shape) == 0 || w.shape[0] == 1 {
		return w, kind
	}
	for k, o := range w.operands {
		if (o.strides[0] == 0) != (k == index) {
			return w, kind
		}
	}
	all, ok := w.inVectors(n)
	if !ok {
		return w, kind
	}
	for k := range all.operands {
		if k != index {
			all.operands[k].size = 8
		}
	}
	return all, ptx.Bits64
}

// Scatter implements [device.Computer]: it queues kernels that store each element of in in the
// element of out that index selects in dimension dim, or add it if add is set. An index that is
// out of range selects an arbitrary element of out. Errors are as for [engine.Map].
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
	if !add {
		w, kind = w.inWideUnits(kind, 1)
	}
	return d.each(ptx.Scatter(kind, add), w, w.zeroStride(0, dim), uint64(out.Shape[dim]))
}

// zeroStride sets the stride of a dimension of operand k of w to 0 and returns the old stride
// in bytes. dim is counted from the outermost dimension.
func (w walk) zeroStride(k, dim int) uint64 {
	o := &w.operands[k]
	at := len(o.strides) - 1 - dim
	stride := o.strides[at]
	o.strides[at] = 0
	return uint64(stride)
}
