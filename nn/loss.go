package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Loss is a loss function of package autograd as a value that can be sent to other processes, in a
// field of type Loss or of type any. To change an option, set it in a copy of one of the variables,
// or next to the Name:
//
//	nn.Loss{Name: "CrossEntropy", Smoothing: 0.1}
type Loss struct {
	Name      string             // name of the function in package autograd
	Reduction autograd.Reduction // how the losses of rows or elements are combined

	Weight    *tensor.Tensor // for NLLLoss and CrossEntropy, see [autograd.Classification]
	Ignore    []int64        // for NLLLoss and CrossEntropy
	Smoothing float64        // for CrossEntropy

	Beta     float64        // for SmoothL1Loss; 0 is the L1 loss
	Positive *tensor.Tensor // for BCEWithLogitsLoss: PyTorch's pos_weight; nil means 1
}

// Losses with PyTorch's defaults.
var (
	NLLLoss           = Loss{Name: "NLLLoss"}               // of log-probabilities and classes
	CrossEntropyLoss  = Loss{Name: "CrossEntropy"}          // of logits and classes, or probabilities
	MSELoss           = Loss{Name: "MSELoss"}               // of two tensors of one shape
	SmoothL1Loss      = Loss{Name: "SmoothL1Loss", Beta: 1} // of two tensors of one shape
	BCEWithLogitsLoss = Loss{Name: "BCEWithLogitsLoss"}     // of logits and probabilities of one shape
)

// Of returns the loss of x for a target. The function of package autograd with the name of the loss
// documents the shapes and dtypes that they must have. Of panics with an error that wraps
// [tensor.ErrMisuse] if l.Name is unknown.
func (l Loss) Of(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	switch l.Name {
	case "NLLLoss":
		return autograd.NLLLoss(x, target, l.classes())
	case "CrossEntropy":
		return autograd.CrossEntropy(x, target, l.classes())
	case "MSELoss":
		return autograd.MSELoss(x, autograd.Const(target), l.Reduction)
	case "SmoothL1Loss":
		return autograd.SmoothL1Loss(x, autograd.Const(target), l.Beta, l.Reduction)
	case "BCEWithLogitsLoss":
		return autograd.BCEWithLogitsLoss(x, autograd.Const(target), l.Positive, l.Reduction)
	}
	misuse(tensor.ErrMisuse, "a Loss of the name %q, which package autograd does not have", l.Name)
	return nil
}

func (l Loss) classes() autograd.Classification {
	return autograd.Classification{Weight: l.Weight, Ignore: l.Ignore, Smoothing: l.Smoothing, Reduction: l.Reduction}
}

func init() { codec.RegisterType[Loss]("nn.Loss") }
