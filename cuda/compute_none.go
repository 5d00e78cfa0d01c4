package cuda

import "github.com/shoal-mp/shoal/tensor"

func (d *Device) Reduce(r tensor.Reduction, out, in tensor.Operand) error {
	return d.lacks(r, in.DType)
}
func (d *Device) MatMul(out, a, b tensor.Operand, beta float64) error {
	return d.lacks(tensor.Reduction(0), a.DType)
}
func (d *Device) Gather(out, in, index tensor.Operand, dim int) error {
	return d.lacks(tensor.Reduction(0), in.DType)
}
func (d *Device) Scatter(out, in, index tensor.Operand, dim int, add bool) error {
	return d.lacks(tensor.Reduction(0), in.DType)
}
func (d *Device) Unfold(out, in tensor.Operand, w tensor.Window) error {
	return d.lacks(tensor.Reduction(0), in.DType)
}
func (d *Device) Fold(out, in tensor.Operand, w tensor.Window) error {
	return d.lacks(tensor.Reduction(0), in.DType)
}
func (d *Device) MaxPool(out, at, in tensor.Operand, w tensor.Window) error {
	return d.lacks(tensor.Reduction(0), in.DType)
}
