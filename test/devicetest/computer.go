package devicetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/foreign"
	"github.com/shoal-mp/shoal/tensor"
)

// foreignTensors creates tensors in the memory of simulated devices.
var foreignTensors = foreign.OfTensors[*tensor.Tensor, *tensor.Storage]()

// An operand is a tensor as package tensor passes it to a device.
type operand = device.Operand[tensor.DType]

var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// ComputerOn returns the compute interface of a device, for calls without package tensor. It
// panics if the device has none.
func ComputerOn(dev tensor.Device) device.Computer[tensor.DType] {
	return device.EngineOf(dev).(device.Computer[tensor.DType])
}

// OperandOf returns t as an operand for the calls of a [device.Computer]. t must stay open while
// the operand is in use.
func OperandOf(t *tensor.Tensor) device.Operand[tensor.DType] { return tensors.Operand(t) }

// see returns a host tensor on the memory of an operand: changes of one are changes of the
// other. An operand without memory is a scalar; its tensor has a copy. see panics if the memory
// belongs to another device.
func (d *Device) see(o operand) *tensor.Tensor {
	if o.Memory == nil {
		return must(foreignTensors.Adopt(append([]byte{}, o.Value[:]...), noOwner{}).View(o.DType, nil, nil, 0))
	}
	m := o.Memory.(*memory)
	if m.dev != d {
		panic(fmt.Sprintf("devicetest: memory of %v is given to %v", m.dev, d))
	}
	return must(m.storage.View(o.DType, o.Shape, o.Strides, o.Offset))
}

func must(t *tensor.Tensor, err error) *tensor.Tensor {
	if err != nil {
		panic(err)
	}
	return t
}

func (d *Device) seeAll(in []operand) (ts []*tensor.Tensor) {
	for _, o := range in {
		ts = append(ts, d.see(o))
	}
	return ts
}

// compute counts a computation. It returns the error set by [Device.Fail], or nil.
func (d *Device) compute() error {
	d.calls.Add(1)
	return d.failure()
}

// Map implements [device.Computer].
func (d *Device) Map(o *device.Op, out operand, in ...operand) error {
	if err := d.compute(); err != nil {
		return err
	}
	to, from := d.see(out), d.seeAll(in)
	switch o.Name {
	case "Copy":
		to.CopyFrom(from[0])
	case "Where":
		to.CopyFrom(tensor.Where(from[0], from[1], from[2]))
	case "AddAtomic":
		to.AddAtomic(from[0])
	case "GELU", "GELUGradient", "Gated", "GatedGradient", "ReLUGradient":
		to.CopyFrom(gate(o.Name, from))
	default:
		to.CopyFrom(Apply(o)(from...))
	}
	return nil
}

// gate computes in Float64, and returns, the activation function with the given name, one of
// those that package autograd passes to Map. in are its operands.
func gate(name string, in []*tensor.Tensor) *tensor.Tensor {
	x, number := in[0].To(tensor.Float64), func(i int) float64 { return in[i].Item() }
	phi := tensor.Erf(tensor.Mul(x, x.Number(math.Sqrt2/2))).AddScalarInPlace(1).MulScalarInPlace(0.5)
	open := func(a, b float64) *tensor.Tensor {
		return tensor.Mul(x, x).MulScalarInPlace(b).AddScalarInPlace(a).MulInPlace(x).SigmoidInPlace()
	}
	switch name {
	case "GELU":
		return tensor.Mul(x, phi)
	case "GELUGradient":
		density := tensor.Mul(x, x).MulScalarInPlace(-0.5).ExpInPlace().MulScalarInPlace(1 / math.Sqrt(2*math.Pi))
		return density.MulInPlace(x).AddInPlace(phi).MulInPlace(in[1])
	case "Gated":
		return tensor.Mul(x, open(number(1), number(2)))
	case "GatedGradient":
		s := open(number(2), number(3))
		slope := tensor.Mul(x, x).MulScalarInPlace(3 * number(3)).AddScalarInPlace(number(2))
		rest := tensor.Neg(s).AddScalarInPlace(1).MulInPlace(s).MulInPlace(x)
		return slope.MulInPlace(rest).AddInPlace(s).MulInPlace(in[1])
	}
	return tensor.Where(tensor.Le(x, x.Number(0)), x.Number(0), in[1].To(tensor.Float64))
}

// Reduce implements [device.Computer].
func (d *Device) Reduce(r device.Reduction, out, in operand) error {
	if err := d.compute(); err != nil {
		return err
	}
	var dims []int
	for i := len(out.Shape); i < len(in.Shape); i++ {
		dims = append(dims, i)
	}
	x := d.see(in)
	if dims == nil { // over single elements
		x = x.Unsqueeze(-1)
		dims = []int{-1}
	}
	d.see(out).CopyFrom(tensors.Reduce(r, x, dims...))
	return nil
}

// MatMul implements [device.Computer].
func (d *Device) MatMul(out, a, b operand, beta float64) error {
	if err := d.compute(); err != nil {
		return err
	}
	y := d.see(out)
	if beta == 0 {
		y.Zero()
	}
	y.MulScalarInPlace(beta).AddInPlace(tensor.MatMul(d.see(a), d.see(b)))
	return nil
}

// Outside implements [device.Computer]: it returns the first index outside of the range from
// from to to-1, if there is one. It calls meanwhile unless it returns an error.
func (d *Device) Outside(index operand, from, to int64, meanwhile func()) (v int64, found bool, err error) {
	if err := d.compute(); err != nil {
		return 0, false, err
	}
	all := tensor.Data[int64](d.see(index).Contiguous())
	i := slices.IndexFunc(all, func(i int64) bool { return i < from || i >= to })
	if i >= 0 {
		v = all[i]
	}
	meanwhile()
	return v, i >= 0, nil
}

// Gather implements [device.Computer]: like Outside, it also returns the first invalid index.
func (d *Device) Gather(out, in, index operand, dim int) (v int64, found bool, err error) {
	n := in.Shape[dim]
	return d.Outside(index, int64(-n), int64(n), func() {
		d.see(out).CopyFrom(tensor.Gather(d.see(in), dim, d.within(index, n)))
	})
}

// Scatter implements [device.Computer].
func (d *Device) Scatter(out, in, index operand, dim int, add bool) error {
	if err := d.compute(); err != nil {
		return err
	}
	at := d.within(index, out.Shape[dim])
	if add {
		d.see(out).ScatterAddInPlace(dim, at, d.see(in))
	} else {
		d.see(out).ScatterInPlace(dim, at, d.see(in))
	}
	return nil
}

// within returns the indices, clamped to the range from -n to n-1, with negative ones resolved
// from the end. All results are from 0 to n-1 unless n is 0.
func (d *Device) within(index operand, n int) *tensor.Tensor {
	at := d.see(index)
	at = tensor.Minimum(tensor.Maximum(at, at.Number(float64(-n))), at.Number(float64(n-1)))
	return tensor.Remainder(at, at.Number(float64(max(n, 1))))
}

// Generate implements [device.Computer].
func (d *Device) Generate(out operand, s device.Sequence, in ...operand) error {
	if err := d.compute(); err != nil {
		return err
	}
	t := d.see(out)
	if s.Kind == device.RandomInteger {
		for i := range tensor.Data[int64](t) {
			tensor.Data[int64](t)[i] = Integer(s, uint64(i))
		}
		return nil
	}
	number := numberOf(s.Kind, out.DType)
	v := make([]float64, t.Numel())
	for i := range v {
		v[i] = number(s, uint64(i))
	}
	drawn := tensor.FromSlice(v, t.Shape()...)
	for _, o := range in {
		drawn.MulInPlace(d.see(o).To(tensor.Float64))
	}
	t.CopyFrom(drawn)
	return nil
}

// Rows implements [device.Computer].
func (d *Device) Rows(o device.RowOp, out operand, in ...operand) error {
	if err := d.compute(); err != nil {
		return err
	}
	if !slices.Contains([]tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64}, out.DType) {
		return fmt.Errorf("%w: %v of %v", tensor.ErrUnsupported, o.Kind, out.DType)
	}
	to, x := d.see(out), d.see(in[0]).To(tensor.Float64)
	switch o.Kind {
	case device.RowLogSoftmax:
		x = tensor.Sub(x, tensor.Keep(tensor.Amax, x, -1))
		to.CopyFrom(tensor.Sub(x, tensor.Keep(tensor.Sum, tensor.Exp(x), -1).LogInPlace()))
	case device.RowLogSoftmaxGradient:
		dy := d.see(in[1]).To(tensor.Float64)
		to.CopyFrom(tensor.Sub(dy, tensor.Exp(x).MulInPlace(tensor.Keep(tensor.Sum, dy, -1))))
	case device.RowSoftmax:
		x = tensor.Exp(tensor.Sub(x, tensor.Keep(tensor.Amax, x, -1)))
		to.CopyFrom(tensor.Div(x, tensor.Keep(tensor.Sum, x, -1)))
	case device.RowSoftmaxGradient:
		dy := d.see(in[1]).To(tensor.Float64)
		to.CopyFrom(tensor.Sub(dy, tensor.Keep(tensor.Sum, tensor.Mul(x, dy), -1)).MulInPlace(x))
	case device.RowNorm:
		y, _ := normalizeRows(x, o.Factor)
		if len(in) > 1 {
			y.MulInPlace(d.see(in[1]).To(tensor.Float64)).AddInPlace(d.see(in[2]).To(tensor.Float64))
		}
		to.CopyFrom(y)
	case device.RowNormGradient:
		y, scale := normalizeRows(x, o.Factor)
		dy := d.see(in[1]).To(tensor.Float64)
		if len(in) > 2 {
			dy = tensor.Mul(dy, d.see(in[2]).To(tensor.Float64))
		}
		along := tensor.Mul(y, tensor.Keep(tensor.Mean, tensor.Mul(dy, y), -1))
		to.CopyFrom(tensor.Sub(dy, tensor.Keep(tensor.Mean, dy, -1)).SubInPlace(along).MulInPlace(scale))
	case device.RowNLL:
		to.Fill(o.Factor * tensor.Sum(tensor.Gather(x, 1, d.within(in[1], x.Dim(1)).Unsqueeze(1))).Item())
	case device.RowNLLGradient:
		classes := d.see(in[0]).Unsqueeze(1)
		to.Zero().ScatterInPlace(1, classes, tensor.Full(to.DType(), o.Factor*d.see(in[1]).Item(), classes.Shape()...))
	}
	return nil
}

// normalizeRows returns the rows of x normalized to mean 0 and variance 1, and the scale factor
// of each row. eps is added to the variance.
func normalizeRows(x *tensor.Tensor, eps float64) (y, scale *tensor.Tensor) {
	off := tensor.Sub(x, tensor.Keep(tensor.Mean, x, -1))
	scale = tensor.Keep(tensor.Mean, tensor.Mul(off, off), -1).AddScalarInPlace(eps).PowInPlace(-0.5)
	return tensor.Mul(off, scale), scale
}

// window calls f for each position, place, of a window in images of the given size in pixels,
// and each element of the window. at is the index of the pixel, or -1 outside of the image.
func window(w device.Window, height, width int, f func(place, element, at int)) {
	outH, outW := w.Out(height, width)
	for place := range outH * outW {
		for element := range w.Size[0] * w.Size[1] {
			y := place/outW*w.Stride[0] - w.Padding[0] + element/w.Size[1]
			x := place%outW*w.Stride[1] - w.Padding[1] + element%w.Size[1]
			at := -1
			if y >= 0 && y < height && x >= 0 && x < width {
				at = y*width + x
			}
			f(place, element, at)
		}
	}
}

// numbers returns a copy of the elements of a tensor as float64.
func numbers(t *tensor.Tensor) []float64 {
	return append([]float64{}, tensor.Data[float64](t.To(tensor.Float64))...)
}

// Unfold implements [device.Computer].
func (d *Device) Unfold(out, in operand, w device.Window) error {
	if err := d.compute(); err != nil {
		return err
	}
	x, y := numbers(d.see(in)), numbers(d.see(out))
	d.patches(in.Shape, w, func(image, column int) {
		y[column] = 0
		if image >= 0 {
			y[column] = x[image]
		}
	})
	d.see(out).CopyFrom(tensor.FromSlice(y, out.Shape...))
	return nil
}

// Fold implements [device.Computer].
func (d *Device) Fold(out, in operand, w device.Window) error {
	if err := d.compute(); err != nil {
		return err
	}
	x, y := numbers(d.see(in)), make([]float64, d.see(out).Numel())
	d.patches(out.Shape, w, func(image, column int) {
		if image >= 0 {
			y[image] += x[column]
		}
	})
	d.see(out).CopyFrom(tensor.FromSlice(y, out.Shape...))
	return nil
}

// patches calls f for each element of the unfolded images, column, with the index of its pixel
// in images, or -1 for padding. images is the shape of the images.
func (d *Device) patches(images []int, w device.Window, f func(image, column int)) {
	outH, outW := w.Out(images[2], images[3])
	places, taps, area := outH*outW, w.Size[0]*w.Size[1], images[2]*images[3]
	for plane := range images[0] * images[1] {
		window(w, images[2], images[3], func(place, element, at int) {
			if at >= 0 {
				at += plane * area
			}
			f(at, (plane*taps+element)*places+place)
		})
	}
}

// MaxPool implements [device.Computer].
func (d *Device) MaxPool(out, at, in operand, w device.Window) error {
	if err := d.compute(); err != nil {
		return err
	}
	x, places := numbers(d.see(in)), out.Shape[1]
	y, found := make([]float64, out.Shape[0]*places), tensor.Data[int64](d.see(at))
	area := in.Shape[1] * in.Shape[2]
	for plane := range in.Shape[0] {
		best := y[plane*places:]
		for i := range places {
			best[i] = math.Inf(-1)
			found[plane*places+i] = -1
		}
		window(w, in.Shape[1], in.Shape[2], func(place, _, pixel int) {
			if pixel < 0 {
				return
			}
			v := x[plane*area+pixel]
			if found[plane*places+place] < 0 || v > best[place] || v != v && best[place] == best[place] {
				best[place], found[plane*places+place] = v, int64(pixel)
			}
		})
	}
	d.see(out).CopyFrom(tensor.FromSlice(y, out.Shape...))
	return nil
}

var _ device.Computer[tensor.DType] = (*Device)(nil)
