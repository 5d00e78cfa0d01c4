package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/wire"
	"github.com/shoal-mp/shoal/tensor"
)

// A Loss is a loss as a value, which travels to other processes as its type does: in a field of
// that type, or in an any.
type Loss interface {
	// Of returns how far x is from the target. Target and x have the shapes that the function of
	// package autograd takes.
	Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var
}

// NLLLoss is autograd.NLLLoss of log-probabilities and classes, as a value: NLLLoss{Weight: w}.
type NLLLoss autograd.Classification

// CrossEntropyLoss is autograd.CrossEntropy of logits and classes, or probabilities, as a value:
// CrossEntropyLoss{Smoothing: 0.1}.
type CrossEntropyLoss autograd.Classification

// MSELoss is autograd.MSELoss as a value.
type MSELoss struct{ Reduction autograd.Reduction }

// SmoothL1Loss is autograd.SmoothL1Loss as a value. PyTorch's default for Beta is 1.
type SmoothL1Loss struct {
	Beta      float64
	Reduction autograd.Reduction
}

// BCEWithLogitsLoss is autograd.BCEWithLogitsLoss of logits and probabilities, as a value.
type BCEWithLogitsLoss struct {
	Positive  *tensor.Tensor // PyTorch's pos_weight, see autograd.WeightedBCEWithLogitsLoss; nil: 1
	Reduction autograd.Reduction
}

// Of returns the loss of x, (N, classes), for classes, (N); for other shapes see
// autograd.Classification.
func (l NLLLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.NLLLoss(x, target, autograd.Classification(l))
}

// Of returns the loss of x, (N, classes), for classes, (N), or for probabilities, (N, classes); for
// other shapes see autograd.Classification.
func (l CrossEntropyLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.CrossEntropy(x, target, autograd.Classification(l))
}

// Of returns the loss of x for a target of its shape.
func (l MSELoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.MSELoss(x, autograd.Const(target), l.Reduction)
}

// Of returns the loss of x for a target of its shape.
func (l SmoothL1Loss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.SmoothL1Loss(x, autograd.Const(target), l.Beta, l.Reduction)
}

// Of returns the loss of x for a target of its shape.
func (l BCEWithLogitsLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	if l.Positive == nil {
		return autograd.BCEWithLogitsLoss(x, autograd.Const(target), l.Reduction)
	}
	return autograd.WeightedBCEWithLogitsLoss(x, autograd.Const(target), l.Positive, l.Reduction)
}

func init() {
	wire.RegisterType[NLLLoss]("nn.NLLLoss")
	wire.RegisterType[CrossEntropyLoss]("nn.CrossEntropyLoss")
	wire.RegisterType[MSELoss]("nn.MSELoss")
	wire.RegisterType[SmoothL1Loss]("nn.SmoothL1Loss")
	wire.RegisterType[BCEWithLogitsLoss]("nn.BCEWithLogitsLoss")
}
