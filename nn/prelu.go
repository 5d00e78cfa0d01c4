package nn

import (
	"github.com/shoal-mp/shoal/autograd"
)

// A PReLU layer is a leaky ReLU with a learned slope (He and others, 2015).
type PReLU struct {
	Weight *autograd.Param // (1), or (channels)
}

// NewPReLU returns a Float32 layer with one slope, or with one for each channel. The slopes begin
// as 0.25, as PyTorch's.
func NewPReLU(slopes int) *PReLU {
	checkSizes("NewPReLU", slopes)
	return &PReLU{constant("weight", 0.25, slopes)}
}

// Forward takes x (N, channels, ...). With one slope x may have any shape.
func (p *PReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.PReLU(x, p.Weight.Var()) }
