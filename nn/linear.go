package nn

import (
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Linear is a layer that computes x·Weightᵀ + Bias.
type Linear struct {
	Weight *autograd.Param // (out, in)
	Bias   *autograd.Param // (out), or nil
}

// NewLinear returns a Float32 layer from in to out features. Parameters are initialised as in
// PyTorch, with random numbers from g, or from the default generator if g is nil. NewLinear panics
// with an error that wraps [tensor.ErrArgument] if a size is less than 1.
func NewLinear(in, out int, g *tensor.Generator) *Linear {
	checkSizes("NewLinear", in, out)
	return &Linear{Weight: uniformParam("weight", in, g, out, in), Bias: uniformParam("bias", in, g, out)}
}

// Forward returns the result, (..., out), for x. x must be (..., in); otherwise Forward panics with
// an error that wraps [tensor.ErrShape].
func (l *Linear) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Linear(x, l.Weight.Var(), varOrNil(l.Bias))
}

// varOrNil returns p as a Var, or nil if p is nil.
func varOrNil(p *autograd.Param) *autograd.Var {
	if p == nil {
		return nil
	}
	return p.Var()
}

// uniformParam returns a Float32 parameter drawn uniformly from ±1/√fanIn. PyTorch's layers use
// this bound: it equals kaiming_uniform with a=√5.
func uniformParam(name string, fanIn int, g *tensor.Generator, shape ...int) *autograd.Param {
	bound := 1 / math.Sqrt(float64(fanIn))
	return autograd.NewParam(name, tensor.New(tensor.Float32, shape...).FillUniform(g, -bound, bound))
}

func checkSizes(what string, sizes ...int) {
	for _, n := range sizes {
		if n < 1 {
			misuse(tensor.ErrArgument, "%s: got sizes %v, want at least 1", what, sizes)
		}
	}
}
