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

// NLL is autograd.NLLLoss of log-probabilities and classes, as a value: NLL{Weight: w}.
type NLL autograd.Classification

// CrossEntropy is autograd.CrossEntropy of logits and classes, or probabilities, as a value:
// CrossEntropy{Smoothing: 0.1}.
type CrossEntropy autograd.Classification

// MSE is autograd.MSELoss as a value.
type MSE struct{ Reduction autograd.Reduction }

// SmoothL1 is autograd.SmoothL1Loss as a value. PyTorch's default for Beta is 1.
type SmoothL1 struct {
	Beta      float64
	Reduction autograd.Reduction
}

// BCEWithLogits is autograd.BCEWithLogitsLoss of logits and probabilities, as a value.
type BCEWithLogits struct {
	Positive  *tensor.Tensor // PyTorch's pos_weight, see autograd.WeightedBCEWithLogitsLoss; nil: 1
	Reduction autograd.Reduction
}

// Of returns the loss of x, (N, classes), for classes, (N); for other shapes see
// autograd.Classification.
func (l NLL) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.Classification(l).NLLLoss(x, target)
}

// Of returns the loss of x, (N, classes), for classes, (N), or for probabilities, (N, classes); for
// other shapes see autograd.Classification.
func (l CrossEntropy) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.Classification(l).CrossEntropy(x, target)
}

// Of returns the loss of x for a target of its shape.
func (l MSE) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.MSELoss(x, autograd.Const(target), l.Reduction)
}

// Of returns the loss of x for a target of its shape.
func (l SmoothL1) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.SmoothL1Loss(x, autograd.Const(target), l.Beta, l.Reduction)
}

// Of returns the loss of x for a target of its shape.
func (l BCEWithLogits) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	if l.Positive == nil {
		return autograd.BCEWithLogitsLoss(x, autograd.Const(target), l.Reduction)
	}
	return autograd.WeightedBCEWithLogitsLoss(x, autograd.Const(target), l.Positive, l.Reduction)
}

func init() {
	wire.RegisterType[NLL]("nn.NLL")
	wire.RegisterType[CrossEntropy]("nn.CrossEntropy")
	wire.RegisterType[MSE]("nn.MSE")
	wire.RegisterType[SmoothL1]("nn.SmoothL1")
	wire.RegisterType[BCEWithLogits]("nn.BCEWithLogits")
}

// NLLLoss returns the mean negative log-likelihood of the classes in target, (N), under logp, (N,
// classes).
func NLLLoss(logp *autograd.Var, target *tensor.Tensor) *autograd.Var { return NLL{}.Of(logp, target) }

// CrossEntropyLoss is NLLLoss of the logarithm of the softmax of logits, (N, classes).
func CrossEntropyLoss(logits *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return CrossEntropy{}.Of(logits, target)
}

// MSELoss returns the mean squared difference of x and target, of the same shape.
func MSELoss(x *autograd.Var, target *tensor.Tensor) *autograd.Var { return MSE{}.Of(x, target) }

// SmoothL1Loss returns the mean of what is squared near 0 and absolute from 1 on, of the
// differences of x and target.
func SmoothL1Loss(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return SmoothL1{Beta: 1}.Of(x, target)
}

// BCEWithLogitsLoss returns the mean binary cross-entropy of the sigmoid of x and the probabilities
// target.
func BCEWithLogitsLoss(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return BCEWithLogits{}.Of(x, target)
}
