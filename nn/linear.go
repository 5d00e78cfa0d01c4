package nn

import (
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Linear layer computes x·Weightᵀ + Bias.
type Linear struct {
	Weight *autograd.Param // (out, in)
	Bias   *autograd.Param // (out), or nil
}

// NewLinear returns a Float32 layer from in to out features. It is initialised as PyTorch's, with
// numbers from g, or from the default generator if g is nil.
func NewLinear(in, out int, g *tensor.Generator) *Linear {
	checkSizes("NewLinear", in, out)
	return &Linear{Weight: uniform("weight", in, g, out, in), Bias: uniform("bias", in, g, out)}
}

// Forward takes x (..., in) and returns (..., out).
func (l *Linear) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Linear(x, l.Weight.Var(), optional(l.Bias))
}

// optional returns p as a value, or nil if a layer has no such parameter.
func optional(p *autograd.Param) *autograd.Var {
	if p == nil {
		return nil
	}
	return p.Var()
}

// uniform returns a parameter with numbers from ±1/√fanIn: what kaiming_uniform(a=√5) of PyTorch
// amounts to.
func uniform(name string, fanIn int, g *tensor.Generator, shape ...int) *autograd.Param {
	bound := 1 / math.Sqrt(float64(fanIn))
	return autograd.NewParam(name, tensor.New(tensor.Float32, shape...).Uniform(g, -bound, bound))
}

func checkSizes(what string, sizes ...int) {
	for _, n := range sizes {
		if n < 1 {
			misuse(tensor.ErrArgument, "%s with sizes %v: they are at least 1", what, sizes)
		}
	}
}
