package nn

import (
	"cmp"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A Loss is a loss function. The losses of this package are values that can be sent to other
// processes, in a field of their type or of type any. Their zero values have PyTorch's defaults.
type Loss interface {
	// Of returns the loss of x for a target. It panics with an error that wraps
	// [tensor.ErrMisuse] if the shapes or the dtypes do not match.
	Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var
}

// NLLLoss is the negative log-likelihood of log-probabilities and classes, see [autograd.NLLLoss].
type NLLLoss struct {
	Weight    *tensor.Tensor // weight of each class; nil means 1
	Ignore    []int64        // classes that do not count, besides [autograd.Ignored]
	Reduction autograd.Reduction
}

// Of implements [Loss]. x contains log-probabilities, and target a class for each row; see
// [autograd.NLLLoss] for the shapes.
func (l NLLLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	c := autograd.Classification{Weight: l.Weight, Ignore: l.Ignore, Reduction: l.Reduction}
	return autograd.NLLLoss(x, target, c)
}

// CrossEntropyLoss is the cross entropy of logits and classes, or of logits and probabilities, see
// [autograd.CrossEntropy].
type CrossEntropyLoss struct {
	Weight    *tensor.Tensor // weight of each class; nil means 1
	Ignore    []int64        // classes that do not count, besides [autograd.Ignored]
	Smoothing float64        // of the labels, in [0, 1]
	Reduction autograd.Reduction
}

// Of implements [Loss]. x contains logits, and target classes or probabilities; see
// [autograd.CrossEntropy] for the shapes.
func (l CrossEntropyLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.CrossEntropy(x, target, autograd.Classification(l))
}

// MSELoss is the squared error of two tensors of one shape, see [autograd.MSELoss].
type MSELoss struct {
	Reduction autograd.Reduction
}

// Of implements [Loss]. x and target must have the same shape.
func (l MSELoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.MSELoss(x, autograd.Const(target), l.Reduction)
}

// L1Loss is the absolute error of two tensors of one shape.
type L1Loss struct {
	Reduction autograd.Reduction
}

// Of implements [Loss]. x and target must have the same shape.
func (l L1Loss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.SmoothL1Loss(x, autograd.Const(target), 0, l.Reduction)
}

// SmoothL1Loss is the squared error of elements that differ by less than Beta, and the absolute
// error of the others, see [autograd.SmoothL1Loss].
type SmoothL1Loss struct {
	Beta      float64 // default 1; see [L1Loss] for PyTorch's beta=0
	Reduction autograd.Reduction
}

// Of implements [Loss]. x and target must have the same shape.
func (l SmoothL1Loss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.SmoothL1Loss(x, autograd.Const(target), cmp.Or(l.Beta, 1), l.Reduction)
}

// BCEWithLogitsLoss is the binary cross entropy of logits and probabilities of one shape, see
// [autograd.BCEWithLogitsLoss].
type BCEWithLogitsLoss struct {
	Positive  *tensor.Tensor // weight of positive targets, PyTorch's pos_weight; nil means 1
	Reduction autograd.Reduction
}

// Of implements [Loss]. x contains logits and target probabilities, in the same shape.
func (l BCEWithLogitsLoss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.BCEWithLogitsLoss(x, autograd.Const(target), l.Positive, l.Reduction)
}

func init() {
	codec.RegisterType[NLLLoss]("nn.NLLLoss")
	codec.RegisterType[CrossEntropyLoss]("nn.CrossEntropyLoss")
	codec.RegisterType[MSELoss]("nn.MSELoss")
	codec.RegisterType[L1Loss]("nn.L1Loss")
	codec.RegisterType[SmoothL1Loss]("nn.SmoothL1Loss")
	codec.RegisterType[BCEWithLogitsLoss]("nn.BCEWithLogitsLoss")
}
