package nn

import (
	"iter"

	"github.com/shoal-mp/shoal/autograd"
)

// ReLU is autograd.ReLU as a layer.
type ReLU struct{}

// Params returns nothing.
func (ReLU) Params() iter.Seq[*autograd.Param] { return Join() }

// Forward returns the larger of x and zero.
func (ReLU) Forward(x *autograd.Var) *autograd.Var { return autograd.ReLU(x) }

// Tanh is autograd.Tanh as a layer.
type Tanh struct{}

// Params returns nothing.
func (Tanh) Params() iter.Seq[*autograd.Param] { return Join() }

// Forward returns the hyperbolic tangents of x.
func (Tanh) Forward(x *autograd.Var) *autograd.Var { return autograd.Tanh(x) }

// Sigmoid is autograd.Sigmoid as a layer.
type Sigmoid struct{}

// Params returns nothing.
func (Sigmoid) Params() iter.Seq[*autograd.Param] { return Join() }

// Forward returns 1 / (1 + e^-x).
func (Sigmoid) Forward(x *autograd.Var) *autograd.Var { return autograd.Sigmoid(x) }

// LogSoftmax is autograd.LogSoftmax, over the last dimension, as a layer.
type LogSoftmax struct{}

// Params returns nothing.
func (LogSoftmax) Params() iter.Seq[*autograd.Param] { return Join() }

// Forward takes x (..., classes).
func (LogSoftmax) Forward(x *autograd.Var) *autograd.Var { return autograd.LogSoftmax(x) }

// Flatten makes rows of what each example has.
type Flatten struct{}

// Params returns nothing.
func (Flatten) Params() iter.Seq[*autograd.Param] { return Join() }

// Forward takes x (N, ...) and returns (N, features).
func (Flatten) Forward(x *autograd.Var) *autograd.Var { return autograd.Flatten(x) }
