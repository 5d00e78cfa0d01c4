package nn

import (
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A Conv2d layer is a cross-correlation with learned filters.
type Conv2d struct {
	Weight  *autograd.Param // (out, in, KH, KW)
	Bias    *autograd.Param // (out), or nil
	Stride  [2]int          // zero: 1
	Padding [2]int          // zeros around the image
}

// NewConv2d returns a float32 layer from in to out channels with square filters, stride 1 and no padding, initialised
// as PyTorch's with numbers from g, or from the default generator if g is nil. Set Stride and Padding afterwards.
func NewConv2d(in, out, size int, g *tensor.Generator) *Conv2d {
	checkSizes("NewConv2d", in, out, size)
	fanIn := in * size * size
	return &Conv2d{Weight: uniform("weight", fanIn, g, out, in, size, size), Bias: uniform("bias", fanIn, g, out)}
}

// Params returns Weight and Bias.
func (c *Conv2d) Params() iter.Seq[*autograd.Param] { return Params(c) }

// Forward takes x (N, in, H, W) and returns (N, out, H', W').
func (c *Conv2d) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Conv2d(x, c.Weight.Var(), optional(c.Bias), autograd.Window{Stride: c.Stride, Padding: c.Padding})
}
