package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// CrossEntropy returns the cross-entropy of logits and a target. The logits must be (N, classes),
// (N, classes, d1, ...) or (classes). The target must be one of two kinds:
//
//   - classes: any integer dtype, with the logits' shape without the class dimension, as in
//     [NLLLoss];
//   - probabilities: floats with the logits' shape. The loss is -Σ
//     weight·probability·log-probability. A mean divides by the number of rows, regardless of
//     weights. No row is ignored. Probabilities get no gradient.
func CrossEntropy(logits *Var, target *tensor.Tensor, c Classification) *Var {
	if !isFloat(target.DType()) {
		return c.classLoss("CrossEntropy", logits, target, lastLogSoftmax)
	}
	if !sameShape(target.Shape(), logits.Shape()) {
		misuse(tensor.ErrShape, "CrossEntropy: logits %v and probabilities %v have different shapes",
			logits.Shape(), target.Shape())
	}
	rows, shape := moveClassesLast("CrossEntropy", logits)
	likely, _ := moveClassesLast("CrossEntropy", Const(target.To(logits.t.DType())))
	return c.probabilityLoss(LogSoftmax(rows, -1), likely.t, shape)
}

func isFloat(dt tensor.DType) bool {
	switch dt {
	case tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64:
		return true
	}
	return false
}

// NLLLoss returns the negative log-likelihood of the classes in target. logp contains
// log-probabilities; it must be (N, classes), (N, classes, d1, ...) or (classes). target must have
// an integer dtype and logp's shape without the class dimension. Rows with the target [Ignored] are
// ignored.
func NLLLoss(logp *Var, target *tensor.Tensor, c Classification) *Var {
	return c.classLoss("NLLLoss", logp, target, func(x *Var) *Var { return x })
}

// classLoss returns the loss for class targets. It panics with [tensor.ErrShape] unless there is
// one target for each row, and as checkClasses does. logs computes log-probabilities from rows.
func (c Classification) classLoss(op string, x *Var, target *tensor.Tensor, logs func(x *Var) *Var) *Var {
	rows, shape := moveClassesLast(op, x)
	if !sameShape(target.Shape(), shape) {
		misuse(tensor.ErrShape, "%s of shape %v: got target shape %v, want one class for each row, %v",
			op, x.Shape(), target.Shape(), shape)
	}
	if rows.isOnDevice() || target.Device() != nil {
		losses := c.rowLossOn(rows, target.Reshape(-1), logs)
		if c.Reduction != Unreduced {
			return losses
		}
		return Reshape(losses, shape...)
	}
	if len(shape) == 1 && x == rows { // the common case in training must not allocate
		return c.rowLoss(logs(x), target)
	}
	losses := c.rowLoss(logs(rows), target.Reshape(-1))
	if c.Reduction != Unreduced {
		return losses
	}
	return Reshape(losses, shape...)
}

// moveClassesLast returns x, (N, classes, d1, ...) or (classes), as rows, (n, classes), and the
// shape of a value per row. It panics with [tensor.ErrShape] if x has no dimensions.
func moveClassesLast(op string, x *Var) (rows *Var, shape []int) {
	switch x.t.Dims() {
	case 0:
		misuse(tensor.ErrShape, "%s: got a single number, want (N, classes), (N, classes, d1, ...) or (classes)", op)
	case 1:
		return Reshape(x, 1, x.t.Dim(0)), nil
	case 2:
		return x, x.Shape()[:1]
	}
	order := []int{0}
	for d := 2; d < x.t.Dims(); d++ {
		order = append(order, d)
	}
	shape = slices.Delete(slices.Clone(x.Shape()), 1, 2)
	return Reshape(Permute(x, append(order, 1)...), product(shape), x.t.Dim(1)), shape
}

// probabilityLoss returns the loss for target probabilities. logp and target must be (n, classes).
// An unreduced loss has the given shape.
func (c Classification) probabilityLoss(logp *Var, target *tensor.Tensor, shape []int) *Var {
	c.checkClasses(nil, logp.t.Dim(1))
	if c.Smoothing > 0 {
		target = addNumber(tensor.Mul(target, target.Number(1-c.Smoothing)), c.Smoothing/float64(logp.t.Dim(1)))
	}
	if c.Weight != nil {
		target = tensor.Mul(target, c.Weight)
	}
	losses := Neg(Mul(logp, Const(target)))
	switch c.Reduction {
	case ByMean:
		return MulScalar(Sum(losses), 1/float64(logp.t.Dim(0)))
	case BySum:
		return Sum(losses)
	}
	return Reshape(Sum(losses, 1), shape...)
}
