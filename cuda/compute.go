package cuda

import (
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/cuda/internal/ptx"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// The operations are named as in package tensor.
var (
	opCopy  = "Copy"
	opWhere = "Where"
)

// An engine implements the device interfaces that package tensor uses to allocate and compute. It
// keeps these methods out of the exported API of [Device].
type engine struct{ *Device }

// A tensorOperand is an operand as package tensor passes it.
type tensorOperand = device.Operand[tensor.DType]

var _ device.Computer[tensor.DType] = engine{}

// tensors accesses the memory of tensors.
var tensors = device.OfTensors[*tensor.Tensor, tensor.DType]()

// engineOf returns the engine of a device, or nil if the device does not belong to this package.
func engineOf(dev device.Device) device.Engine {
	switch d := dev.(type) {
	case *Device:
		return engine{d}
	case LegacyDevice:
		return legacyEngine{engine(d)}
	}
	return nil
}

// missingKernel returns the error for an operation without a kernel for dt. It wraps
// [tensor.ErrUnsupported].
func (d *Device) missingKernel(what fmt.Stringer, dt tensor.DType) error {
	return fmt.Errorf("%w: %v of %v on %v", tensor.ErrUnsupported, what, dt, d)
}

// Map implements [device.Computer]: it queues kernels that apply o to in and store the result
// in out. The error wraps [tensor.ErrUnsupported] if there is no kernel for the dtypes,
// dimensions or size of the operands, and [ErrDevice] if the memory of an operand is on another
// device.
func (d engine) Map(o *device.Op, out tensorOperand, in ...tensorOperand) error {
	moves := o.Name == opCopy || o.Name == opWhere
	if moves && (complexParts[out.DType] != 0 || complexParts[in[len(in)-1].DType] != 0) {
		return d.copyComplex(o, out, in)
	}
	kind, operands := types[out.DType], make([]ptx.Operand, len(in))
	for i, x := range in {
		operands[i] = ptx.Operand{Type: types[x.DType], Number: x.Memory == nil}
	}
	// copies without conversion need only the bits
	if o.Name == opWhere || moves && out.DType == in[0].DType {
		kind = moved[out.DType.Size()]
		for i := range operands[len(operands)-1:] {
			operands[i].Type = kind
		}
	}
	if o.Name == opWhere {
		operands[1].Type, operands[2].Type = kind, kind
		operands[0].Type = ptx.Bool
	}
	if kind == "" || slices.ContainsFunc(operands, func(x ptx.Operand) bool { return x.Type == "" }) {
		return d.missingKernel(o, in[len(in)-1].DType)
	}
	k, ok := ptx.Map(o.Name, kind, operands...)
	if !ok {
		return d.missingKernel(o, in[len(in)-1].DType)
	}
	w, err := d.walkOver(out.Shape, append([]tensorOperand{out}, in...)...)
	if err != nil {
		return err
	}
	return d.each(k, w)
}

// moved maps the size of an element to the type that copies it bitwise.
var moved = map[int]ptx.Type{1: ptx.Bits8, 2: ptx.Bits16, 4: ptx.Bits32, 8: ptx.Bits64}

// complexParts maps a complex dtype to the dtype of its parts. Other dtypes map to 0, which is
// Bool.
var complexParts = map[tensor.DType]tensor.DType{tensor.Complex64: tensor.Float32, tensor.Complex128: tensor.Float64}

// complexPart returns the real parts (i = 0) or the imaginary parts (i = 1) of an operand. The
// imaginary part of a real operand is 0.
func complexPart(o tensorOperand, i int) tensorOperand {
	dt, ok := complexParts[o.DType]
	switch {
	case !ok && i == 0 || o.DType == tensor.Bool:
		return o
	case !ok:
		return tensorOperand{DType: o.DType}
	}
	o.DType = dt
	if o.Memory == nil {
		copy(o.Value[:], o.Value[i*dt.Size():])
		return o
	}
	o.Offset, o.Strides = 2*o.Offset+i, slices.Clone(o.Strides)
	for k := range o.Strides {
		o.Strides[k] *= 2
	}
	return o
}

// copyComplex copies or selects complex elements: first the real parts, then the imaginary
// parts. Real operands are converted. The error wraps [tensor.ErrUnsupported] if out is Bool.
func (d engine) copyComplex(o *device.Op, out tensorOperand, in []tensorOperand) error {
	parts := 1
	if complexParts[out.DType] != 0 {
		parts = 2
	} else if out.DType == tensor.Bool {
		return d.missingKernel(o, in[0].DType)
	}
	for i := range parts {
		x := make([]tensorOperand, len(in))
		for k := range in {
			x[k] = complexPart(in[k], i)
			if in[k].DType == tensor.Bool && i == 1 && o.Name == opCopy {
				x[k] = tensorOperand{DType: tensor.Float32}
			}
		}
		if err := d.Map(o, complexPart(out, i), x...); err != nil {
			return err
		}
	}
	return nil
}

// Generate implements [device.Computer]: it queues kernels that set each element of out
// according to s and its index. Errors are as for [engine.Map].
func (d engine) Generate(out tensorOperand, s device.Sequence, in ...tensorOperand) error {
	names := map[device.SequenceKind]string{device.Arithmetic: "Arithmetic",
		device.RandomUniform: "RandomUniform", device.RandomNormal: "RandomNormal",
		device.RandomBernoulli: "RandomBernoulli", device.RandomInteger: "RandomInteger",
		device.RandomKept: "RandomKept"}
	kind := types[out.DType]
	if kind == "" || names[s.Kind] == "" {
		return fmt.Errorf("%w: sequence of %v on %v", tensor.ErrUnsupported, out.DType, d)
	}
	extra := []uint64{s.Key, math.Float64bits(s.A), math.Float64bits(s.B), uint64(64 - s.Bits),
		math.Float64bits(math.Ldexp(1, s.Bits))}
	switch s.Kind {
	case device.RandomInteger:
		extra[1], extra[2] = uint64(s.From), s.Count
	case device.RandomBernoulli, device.RandomKept:
		extra[1] = ptx.Chance(s.A, kind)
	}
	w, err := d.walkOver(out.Shape, append([]tensorOperand{out}, in...)...)
	if err != nil {
		return err
	}
	return d.each(ptx.Sequence(names[s.Kind], kind), w, extra...)
}

// Descend implements [device.Computer]: it queues kernels that perform one step of an
// optimizer, which updates param and state. Errors are as for [engine.Map].
func (d engine) Descend(s device.Descent, param, grad tensorOperand, state ...tensorOperand) error {
	k, ok := ptx.Descend(ptx.Descent{
		Rule: map[device.DescentRule]string{device.DescendSGD: "SGD", device.DescendAdam: "Adam",
			device.DescendRMSprop: "RMSprop", device.DescendAdagrad: "Adagrad"}[s.Rule],
		Momentum: s.Momentum != 0, First: s.N == 1, Nesterov: s.Nesterov, Decoupled: s.Decoupled,
		AMSGrad: s.AMSGrad, Centered: s.Centered, Atomic: s.Atomic,
	}, types[param.DType])
	if !ok {
		return fmt.Errorf("%w: step of %v on %v", tensor.ErrUnsupported, param.DType, d)
	}
	w, err := d.walkOver(param.Shape, append([]tensorOperand{param, grad}, state...)...)
	if err != nil {
		return err
	}
	numbers := [ptx.Numbers]float64{
		ptx.Rate: s.LR, ptx.Decay: s.WeightDecay, ptx.Momentum: s.Momentum, ptx.Fresh: 1 - s.Dampening,
		ptx.Keep: s.Beta2, ptx.Square: 1 - s.Beta2, ptx.Eps: s.Eps, ptx.Shrink: s.LR * s.WeightDecay,
	}
	n := float64(s.N)
	switch s.Rule {
	case device.DescendAdagrad:
		numbers[ptx.Rate] = s.LR / (1 + (n-1)*s.LRDecay)
	case device.DescendAdam:
		numbers[ptx.Rate] = s.LR / (1 - math.Pow(s.Beta1, n))
		numbers[ptx.Fresh] = 1 - s.Beta1
		numbers[ptx.Root] = 1 / math.Sqrt(1-math.Pow(s.Beta2, n))
	}
	words := make([]uint64, 0, len(numbers))
	for _, v := range numbers {
		words = append(words, math.Float64bits(v))
	}
	return d.each(k, w, words...)
}
