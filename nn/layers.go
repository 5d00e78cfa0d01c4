package nn

import "github.com/shoal-mp/shoal/autograd"

// ReLU is autograd.ReLU as a layer.
type ReLU struct{ NoParams }

// Forward returns the larger of x and zero.
func (ReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.ReLU(x) }

// Tanh is autograd.Tanh as a layer.
type Tanh struct{ NoParams }

// Forward returns the hyperbolic tangents of x.
func (Tanh) Forward(x *autograd.Var) *autograd.Var { return autograd.Tanh(x) }

// Sigmoid is autograd.Sigmoid as a layer.
type Sigmoid struct{ NoParams }

// Forward returns 1 / (1 + e^-x).
func (Sigmoid) Forward(x *autograd.Var) *autograd.Var { return autograd.Sigmoid(x) }

// LeakyReLU is autograd.LeakyReLU as a layer.
type LeakyReLU struct {
	NoParams
	Slope float64 // where x is negative; PyTorch's default is 0.01
}

// Forward returns x where it is positive, and Slope · x elsewhere.
func (l LeakyReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.LeakyReLU(x, l.Slope) }

// GELU is autograd.GELU as a layer.
type GELU struct {
	NoParams
	Tanh bool // autograd.GELUTanh instead, which is PyTorch's approximate="tanh"
}

// Forward returns x · Φ(x).
func (g GELU) Forward(x *autograd.Var) *autograd.Var {
	if g.Tanh {
		return autograd.GELUTanh(x)
	}
	return autograd.GELU(x)
}

// SiLU is autograd.SiLU as a layer.
type SiLU struct{ NoParams }

// Forward returns x · sigmoid(x).
func (SiLU) Forward(x *autograd.Var) *autograd.Var { return autograd.SiLU(x) }

// Softmax is autograd.Softmax, over the last dimension, as a layer.
type Softmax struct{ NoParams }

// Forward takes x (..., classes).
func (Softmax) Forward(x *autograd.Var) *autograd.Var { return autograd.Softmax(x, -1) }

// LogSoftmax is autograd.LogSoftmax, over the last dimension, as a layer.
type LogSoftmax struct{ NoParams }

// Forward takes x (..., classes).
func (LogSoftmax) Forward(x *autograd.Var) *autograd.Var { return autograd.LogSoftmax(x, -1) }

// Flatten makes rows of what each example has.
type Flatten struct{ NoParams }

// Forward takes x (N, ...) and returns (N, features).
func (Flatten) Forward(x *autograd.Var) *autograd.Var { return autograd.Flatten(x) }
