package autograd

import (
	"cmp"
	"runtime"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// Operations with a kernel on the host are composed of operations of package tensor or of a
// device.Computer on a device.

// tensors gives access to the devices of tensors.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// isOnDevice reports whether v is on a device.
func (v *Var) isOnDevice() bool { return v.t.Device() != nil }

func newEmptyOn(dev tensor.Device, dt tensor.DType, shape []int) *tensor.Tensor {
	if dev == nil {
		return tensor.Empty(dt, shape...)
	}
	t, err := tensor.On(dev).Empty(dt, shape...)
	must(err)
	return t
}

func moveTo(dev tensor.Device, t *tensor.Tensor) *tensor.Tensor {
	there, err := t.ToDevice(dev)
	must(err)
	return there
}

func moveToHost(t *tensor.Tensor) *tensor.Tensor { return moveTo(nil, t) }

// must panics with a device's error, as operations of package tensor do.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func reluOn(x *Var) *Var {
	y := tensor.ReLU(x.t)
	return recordUnary("ReLU", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyElementsOn("ReLUGradient", y, dy)
	}).setRule(reluTwice)
}

// applyElementsOn applies a device operation that only autograd uses to tensors of one shape and
// dtype, and to scalars, and returns a new tensor. It panics with the device's errors. It may
// replace elements of in.
func applyElementsOn(name string, in ...*tensor.Tensor) *tensor.Tensor {
	dev, x := tensors.Computer(in...), in[0]
	y := x.NewEmpty(x.DType(), x.Shape()...)
	n := y.Numel()
	if n == 0 {
		return y
	}
	operands := make([]device.Operand[tensor.DType], len(in))
	for i, t := range in {
		if t.Device() == nil {
			operands[i] = tensors.Operand(t)
			continue
		}
		in[i] = t.Contiguous()
		operands[i] = operandAs(in[i], n)
	}
	must(dev.Map(&device.Op{Name: name, Arity: len(in)}, operandAs(y, n), operands...))
	runtime.KeepAlive(in)
	return y.Touch()
}

// operandAs returns a contiguous tensor as an operand with another shape. t must stay reachable
// while the operand is used. A view would keep the tensor's memory until it is collected.
func operandAs(t *tensor.Tensor, shape ...int) device.Operand[tensor.DType] {
	o := tensors.Operand(t)
	o.Shape, o.Strides = shape, make([]int, len(shape))
	for i, step := len(shape)-1, 1; i >= 0; i-- {
		o.Strides[i] = step
		step *= shape[i]
	}
	return o
}

func logSoftmaxOn(x *Var) *Var {
	if rows, cols := rowsOf("LogSoftmax", x); rows*cols == 0 {
		return recordUnary("LogSoftmax", x, x.t.Clone(), nil,
			func(dy *tensor.Tensor) *tensor.Tensor { return dy }).setRule(identityRule)
	}
	y := applyRowsOn(device.RowOp{Kind: device.RowLogSoftmax}, x.Shape(), x.t)
	return recordUnary("LogSoftmax", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyRowsOn(device.RowOp{Kind: device.RowLogSoftmaxGradient}, x.Shape(), y, dy)
	}).setRule(logSoftmaxTwice)
}

func softmaxOn(x *Var) *Var {
	if rows, cols := rowsOf("Softmax", x); rows*cols == 0 {
		return recordUnary("Softmax", x, x.t.Clone(), nil,
			func(dy *tensor.Tensor) *tensor.Tensor { return dy }).setRule(identityRule)
	}
	y := applyRowsOn(device.RowOp{Kind: device.RowSoftmax}, x.Shape(), x.t)
	return recordUnary("Softmax", x, y, y, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyRowsOn(device.RowOp{Kind: device.RowSoftmaxGradient}, x.Shape(), y, dy)
	}).setRule(softmaxTwice)
}

// applyRowsOn returns a new tensor of the given shape, the result of a row operation of a device.
// It has the dtype of the last input. applyRowsOn panics with the device's errors.
func applyRowsOn(o device.RowOp, shape []int, in ...*tensor.Tensor) *tensor.Tensor {
	like := in[len(in)-1]
	y := like.NewEmpty(like.DType(), shape...)
	operands := make([]device.Operand[tensor.DType], len(in))
	for i, x := range in {
		in[i] = x.Contiguous()
		operands[i] = tensors.Operand(in[i])
	}
	must(tensors.Computer(in...).Rows(o, tensors.Operand(y), operands...))
	runtime.KeepAlive(in)
	return y.Touch()
}

// applyNormOn returns a new tensor, the result of a row operation of layer norm on a device, in
// the shape of the first input. The first rows inputs consist of n.Rows rows of n.Per elements;
// the others contain one element for each column.
func applyNormOn(o device.RowOp, n kernel.Norm, rows int, in ...*tensor.Tensor) *tensor.Tensor {
	y := in[0].NewEmpty(in[0].DType(), in[0].Shape()...)
	operands := make([]device.Operand[tensor.DType], len(in))
	for i, x := range in {
		in[i] = x.Contiguous()
		if operands[i] = operandAs(in[i], n.Per); i < rows {
			operands[i] = operandAs(in[i], n.Rows, n.Per)
		}
	}
	must(tensors.Computer(in...).Rows(o, operandAs(y, n.Rows, n.Per), operands...))
	runtime.KeepAlive(in)
	return y.Touch()
}

func dropoutOn(op string, x *Var, p float64, g *tensor.Generator, run int) *Var {
	if run == 1 {
		return dropElementsOn(op, x, 1-p, cmp.Or(g, tensor.DefaultGenerator()).Uint64())
	}
	shape := append([]int{}, x.Shape()...)
	shape[2], shape[3] = 1, 1
	kept := x.t.NewEmpty(x.t.DType(), shape...).FillBernoulli(g, 1-p)
	if p < 1 {
		kept.MulScalarInPlace(1 / (1 - p))
	}
	return recordUnary(op, x, tensor.Mul(x.t, kept), kept,
		func(dy *tensor.Tensor) *tensor.Tensor { return tensor.Mul(dy, kept) }).
		setRule(func(_, dy *Var) derivatives { return derivativesOf(Mul(dy, Const(kept))) })
}

// dropElementsOn returns x with each element kept with probability p and multiplied by 1/p, and
// otherwise set to zero. key determines which elements are kept, so the gradient finds them
// again.
func dropElementsOn(op string, x *Var, p float64, key uint64) *Var {
	s := device.Sequence{Kind: device.RandomKept, Key: key, A: p}
	if p > 0 {
		s.B = 1 / p
	}
	keep := func(x *tensor.Tensor) *tensor.Tensor {
		from := x.Contiguous()
		y := x.NewEmpty(x.DType(), x.Shape()...)
		must(tensors.Computer(x).Generate(tensors.Operand(y), s, tensors.Operand(from)))
		runtime.KeepAlive(from)
		return y.Touch()
	}
	return recordUnary(op, x, keep(x.t), nil, keep).setRule(func(_,
		dy *Var) derivatives {
		return derivativesOf(dropElementsOn(op, dy, p, key))
	})
}

func linearOn(x, w, b *Var) *Var {
	rows, in := countVectors(x), w.t.Dim(1)
	flat := x.t.Reshape(rows, in)
	shape := append([]int{}, x.Shape()...)
	shape[len(shape)-1] = w.t.Dim(0)
	product := tensor.MatMul(flat, w.t.T())
	if b != nil {
		product.AddInPlace(b.t)
	}
	y := product.View(shape...)
	product.Close() // y shares its memory
	v := wrapOwned("Linear", y, x, w, b)
	if v.needs {
		v.saveTensors(x.t, w.t)
		v.backward = func(dy *tensor.Tensor) {
			dy = dy.Reshape(rows, w.t.Dim(0))
			if x.needsGradient() {
				dx := tensor.MatMul(dy, w.t)
				x.addAndClose(dx.View(x.Shape()...))
				dx.Close()
			}
			if w.needsGradient() {
				w.gradientSum().AddMMInPlace(dy.T(), flat)
			}
			if b != nil && b.needsGradient() {
				b.addAndClose(tensor.Sum(dy, 0))
			}
		}
	}
	return v.setRule(linearTwice)
}

func maxPool2dOn(x *Var, o Window) *Var {
	images := x.contiguousTensor()
	window := device.Window{Size: o.Size, Stride: o.Stride, Padding: o.Padding}
	n, c, h, w := x.t.Dim(0), x.t.Dim(1), x.t.Dim(2), x.t.Dim(3)
	outH, outW := window.Out(h, w)
	y, at := images.NewEmpty(images.DType(), n*c, outH*outW), images.NewEmpty(tensor.Int64, n*c, outH*outW)
	dev := tensors.Computer(images)
	if y.Numel() > 0 {
		must(dev.MaxPool(tensors.Operand(y), tensors.Operand(at), tensors.Operand(images.View(n*c, h, w)), window))
	}
	out := y.View(n, c, outH, outW)
	y.Close() // out shares its memory
	v := wrapOwned("MaxPool2d", out, x)
	v.ownTensor(at)
	if v.needs {
		v.saveTensors(at)
		v.backward = func(dy *tensor.Tensor) {
			x.writeGradient(func(dx *tensor.Tensor) {
				if dx.Zero(); dx.Numel() > 0 {
					must(dev.Scatter(tensors.Operand(dx.View(n*c, h*w)), tensors.Operand(dy.Reshape(n*c, outH*outW)),
						tensors.Operand(at), 1, true))
					dx.Touch()
				}
			})
		}
	}
	return v.setRule(maxPool2dTwice)
}

// nllLossOn returns the loss on a device. The caller must have checked the targets.
func nllLossOn(logp *Var, target *tensor.Tensor, r Reduction) *Var {
	rows, scale := logp.t.Dim(0), r.scaleFactor(logp.t.Dim(0))
	if rows == 0 {
		return recordUnary("NLLLoss", logp, tensor.Sum(logp.t).MulScalarInPlace(-scale), nil,
			func(*tensor.Tensor) *tensor.Tensor { return logp.t.Clone() }).
			setRule(func(*Var, *Var) derivatives { return derivativesOf(Const(logp.t.Clone())) })
	}
	y := logp.t.NewEmpty(logp.t.DType())
	from := logp.contiguousTensor()
	must(tensors.Computer(from, target).Rows(device.RowOp{Kind: device.RowNLL, Factor: -scale}, tensors.Operand(y),
		tensors.Operand(from), tensors.Operand(target)))
	runtime.KeepAlive(from)
	return recordUnary("NLLLoss", logp, y.Touch(), target, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyRowsOn(device.RowOp{Kind: device.RowNLLGradient, Factor: -scale}, logp.Shape(), target, dy)
	}).setRule(func(_, dy *Var) derivatives {
		slopes := applyRowsOn(device.RowOp{Kind: device.RowNLLGradient, Factor: -scale}, logp.Shape(), target,
			dy.t.NewEmpty(dy.t.DType()).Fill(1))
		return derivativesOf(Mul(dy, Const(slopes)))
	})
}

func standardizeOn(op string, x *Var, s groups, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	average := func(t *tensor.Tensor) *tensor.Tensor { return tensor.Keep(tensor.Mean, t, 0, 2) }
	group := func(t *tensor.Tensor) *tensor.Tensor { return t.Reshape(s.parts, s.n, s.width) }
	from := group(x.t)
	m := average(from)
	centred := tensor.Sub(from, m)
	squares := average(tensor.Mul(centred, centred))
	scale := addNumber(squares, eps).PowInPlace(-0.5)
	to := centred.MulInPlace(scale)
	count := float64(s.parts * s.width)
	mean, variance = m.Reshape(s.n), tensor.Mul(squares, squares.Number(count/(count-1))).Reshape(s.n)
	y = recordUnary(op, x, to.Reshape(x.Shape()...), to, func(dy *tensor.Tensor) *tensor.Tensor {
		dy = group(dy)
		along := tensor.Mul(to, average(tensor.Mul(dy, to)))
		return tensor.Sub(dy, average(dy)).SubInPlace(along).MulInPlace(scale).Reshape(x.Shape()...)
	}).setRule(standardizeTwice)
	y.ensurePlan().groups, y.note.factor = s, eps
	return y, mean, variance
}
