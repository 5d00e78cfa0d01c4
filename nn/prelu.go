package nn

import (
	"github.com/shoal-mp/shoal/autograd"
)

// PReLU is a leaky ReLU layer with a learned slope. See He et al., Delving Deep into Rectifiers,
// 2015, https://arxiv.org/abs/1502.01852.
type PReLU struct {
	Weight *autograd.Param // (1), or (channels)
}

// NewPReLU returns a Float32 layer with the given number of slopes, which must be 1 or the number
// of channels. It panics with an error that wraps [tensor.ErrArgument] if slopes is less than 1.
// As in PyTorch, slopes are initialised to 0.25.
func NewPReLU(slopes int) *PReLU {
	checkSizes("NewPReLU", slopes)
	return &PReLU{constantParam("weight", 0.25, slopes)}
}

// Forward applies the layer to x (N, channels, ...). With one slope x may have any shape. Forward
// panics with an error that wraps [tensor.ErrShape] if x has another number of channels than p
// has slopes.
func (p *PReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.PReLU(x, p.Weight.Var()) }
