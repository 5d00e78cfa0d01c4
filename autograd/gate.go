package autograd

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// GELU returns x·Φ(x), where Φ is the cumulative distribution function of the normal distribution
// (Hendrycks and Gimpel, 2016), like PyTorch's gelu with approximate="none".
func GELU(x *Var) *Var {
	return dispatch("GELU", x, gelu[float32], gelu[float64], geluOn)(x)
}

// GELUTanh returns the tanh approximation of [GELU], like PyTorch's gelu with approximate="tanh".
func GELUTanh(x *Var) *Var { return applyGate("GELUTanh", kernel.GELUTanh, x) }

// SiLU returns x · sigmoid(x).
func SiLU(x *Var) *Var { return applyGate("SiLU", kernel.SiLU, x) }

func gelu[F kernel.Float](x *Var) *Var {
	y, xt := recordElementwise("GELU", x)
	kernel.GELU(data[F](xt), data[F](y.t))
	keepAlive(x)
	return y.setDerivatives(kernelByDType(y.op, y, geluBackward[float32], geluBackward[float64]), geluTwice)
}

func geluBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernel.GELUBackward(data[F](y.saved[0].t), data[F](dy), data[F](dx))
	})
}

func geluTwice(y, dy *Var) derivatives {
	x := y.inputs[0]
	density := MulScalar(Exp(MulScalar(Mul(x, x), -0.5)), 1/math.Sqrt(2*math.Pi))
	phi := MulScalar(AddScalar(Erf(MulScalar(x, math.Sqrt2/2)), 1), 0.5)
	return derivativesOf(Mul(dy, Add(Mul(density, x), phi)))
}

// recordElementwise returns a Var for the result of an elementwise operation on x, and the
// contiguous tensor of x. It saves the tensor if the Var needs a gradient.
func recordElementwise(op string, x *Var) (y *Var, xt *tensor.Tensor) {
	y, xt = newResult(op, x.t.DType(), x.Shape(), x), x.contiguousTensor()
	if y.needs {
		y.saveTensors(xt)
	}
	return y, xt
}

// setDerivatives sets the derivatives of v, if it needs a gradient, and returns v. once is used
// for gradients that are tensors, and again for gradients that are values of a graph. again may
// be nil if v has another rule or none.
func (v *Var) setDerivatives(once derivation, again rule) *Var {
	if v.needs {
		v.derive, v.again = once, again
	}
	return v
}

func applyGate(op string, g kernel.Gate, x *Var) *Var {
	return dispatch(op, x, gatedOf[float32], gatedOf[float64], applyGateOn)(op, g, x)
}

func gatedOf[F kernel.Float](op string, g kernel.Gate, x *Var) *Var {
	y, xt := recordElementwise(op, x)
	y.note.gate = g
	kernel.Gated(g, data[F](xt), data[F](y.t))
	keepAlive(x)
	return y.setDerivatives(kernelByDType(op, y, gatedBackward[float32], gatedBackward[float64]), gatedTwice)
}

func gatedBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernel.GatedBackward(y.note.gate, data[F](y.saved[0].t), data[F](dy), data[F](dx))
	})
}

func gatedTwice(y, dy *Var) derivatives {
	x, g := y.inputs[0], y.note.gate
	squares := Mul(x, x)
	open := Sigmoid(Mul(AddScalar(MulScalar(squares, g.B), g.A), x))
	slope := AddScalar(MulScalar(squares, 3*g.B), g.A)
	rest := Mul(Mul(AddScalar(Neg(open), 1), open), x)
	return derivativesOf(Mul(dy, Add(Mul(slope, rest), open)))
}

func geluOn(x *Var) *Var {
	return recordUnary("GELU", x, applyElementsOn("GELU", x.t), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyElementsOn("GELUGradient", x.t, dy)
	}).setRule(geluTwice)
}

func applyGateOn(op string, g kernel.Gate, x *Var) *Var {
	a, b := x.t.Number(g.A), x.t.Number(g.B)
	y := recordUnary(op, x, applyElementsOn("Gated", x.t, a, b), x.t, func(dy *tensor.Tensor) *tensor.Tensor {
		return applyElementsOn("GatedGradient", x.t, dy, a, b)
	})
	y.note.gate = g
	return y.setRule(gatedTwice)
}
