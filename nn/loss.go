package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// NLLLoss returns the mean negative log-likelihood of the classes in target, (N), under logp, (N, classes). For the sum
// see autograd.NLLLoss.
func NLLLoss(logp *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.NLLLoss(logp, target, autograd.ByMean)
}

// CrossEntropyLoss is NLLLoss of the logarithm of the softmax of logits, (N, classes).
func CrossEntropyLoss(logits *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.CrossEntropy(logits, target, autograd.ByMean)
}

// MSELoss returns the mean squared difference of x and target, of the same shape.
func MSELoss(x *autograd.Var, target *tensor.Tensor) *autograd.Var {
	return autograd.MSELoss(x, autograd.Const(target), autograd.ByMean)
}
