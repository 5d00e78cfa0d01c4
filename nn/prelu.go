package nn

import (
	"github.com/shoal-mp/shoal/autograd"
)

// A PReLU layer is a leaky ReLU whose slope is learned.
type PReLU struct {
	Weight *autograd.Param // (1), or (channels)
}

// NewPReLU returns a float32 layer with a slope for all elements, or one for each channel, all 0.25
// at first, as PyTorch's.
func NewPReLU(slopes int) *PReLU {
	checkSizes("NewPReLU", slopes)
	return &PReLU{constant("weight", 0.25, slopes)}
}

// Forward takes x (N, channels, ...), or of any shape where there is one slope.
func (p *PReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.PReLU(x, p.Weight.Var()) }
