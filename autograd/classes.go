package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Ignored is the target of a row that is ignored by a loss, like PyTorch's ignore_index.
const Ignored = -100

// A Classification contains the options of classification losses. The zero value is the mean over
// rows, with equal class weights.
type Classification struct {
	// Weight contains the weights of the classes, in the dtype of the loss. nil means all 1. A mean
	// divides by the sum of the targets' weights.
	Weight *tensor.Tensor
	Ignore []int64 // targets to ignore, in addition to Ignored
	// Smoothing is the part of the target's probability, between 0 and 1, that CrossEntropy
	// distributes evenly over all classes (Szegedy et al., 2016).
	Smoothing float64
	Reduction Reduction
}

// rowLoss returns the loss on the host: one number, or (n) if c.Reduction is Unreduced. It panics
// as checkClasses does. logp must have the shape (n, classes) and target the shape (n).
func (c Classification) rowLoss(logp *Var, target *tensor.Tensor) *Var {
	if target.DType() != tensor.Int64 || !target.IsContiguous() {
		target = target.To(tensor.Int64).Contiguous()
	}
	ignored := c.checkClasses(tensor.Data[int64](target), logp.t.Dim(1))
	if !ignored && c.isPlain() {
		return negativeLikelihood(logp, target, c.Reduction)
	}
	return c.weightedLoss(logp, target)
}

// rowLossOn is like rowLoss on a device. rows and target must have the shapes (n, classes) and
// (n). logs computes log-probabilities from rows while the device checks the target classes.
// Usually all are in range; otherwise the host reads them.
func (c Classification) rowLossOn(rows *Var, target *tensor.Tensor, logs func(x *Var) *Var) *Var {
	if target.DType() != tensor.Int64 || !target.IsContiguous() {
		target = target.To(tensor.Int64).Contiguous()
	}
	var logp *Var
	dev := tensors.Computer(rows.t, target)
	if c.isPlain() && len(c.Ignore) == 0 {
		_, found, err := dev.Outside(tensors.Operand(target), 0, int64(rows.t.Dim(1)), func() { logp = logs(rows) })
		if must(err); !found {
			return negativeLikelihood(logp, target, c.Reduction)
		}
	} else {
		logp = logs(rows)
	}
	near := moveToHost(target)
	if ignored := c.checkClasses(tensor.Data[int64](near), logp.t.Dim(1)); !ignored && c.isPlain() {
		return negativeLikelihood(logp, target, c.Reduction)
	}
	return c.weightedLoss(logp, near)
}

// isPlain reports whether all rows have the same weight and the result is one number.
func (c Classification) isPlain() bool {
	return c.Weight == nil && c.Smoothing == 0 && c.Reduction != Unreduced
}

func negativeLikelihood(logp *Var, target *tensor.Tensor, r Reduction) *Var {
	return dispatch("NLLLoss", logp, nllLoss[float32], nllLoss[float64], nllLossOn)(logp, target, r)
}

// checkClasses panics unless all target classes are less than n and the options are valid. It
// reports whether rows are ignored.
func (c Classification) checkClasses(target []int64, n int) (ignored bool) {
	if !(c.Smoothing >= 0 && c.Smoothing <= 1) {
		misuse(tensor.ErrArgument, "NLLLoss: got smoothing %v, want 0 to 1", c.Smoothing)
	}
	if c.Weight != nil && !sameShape(c.Weight.Shape(), []int{n}) {
		misuse(tensor.ErrShape, "NLLLoss: got weights of shape %v, want one for each of %d classes",
			c.Weight.Shape(), n)
	}
	for i, class := range target {
		if c.isIgnored(class) {
			ignored = true
		} else if class < 0 || class >= int64(n) {
			misuse(tensor.ErrIndex, "NLLLoss: target[%d] = %d is out of range for %d classes", i, class, n)
		}
	}
	return ignored
}

func (c Classification) isIgnored(class int64) bool {
	return class == Ignored || len(c.Ignore) > 0 && slices.Contains(c.Ignore, class)
}

// weightedLoss returns the loss for targets on the host, one number or (n) as rowLoss does.
// checkClasses must have accepted the targets. Each row's loss is multiplied by its class weight.
// Smoothing mixes it with the mean loss of all classes, multiplied by their weights.
func (c Classification) weightedLoss(logp *Var, target *tensor.Tensor) *Var {
	ignored, classes := tensor.New(tensor.Bool, target.Shape()...), target.Clone()
	out, class := tensor.Data[bool](ignored), tensor.Data[int64](classes)
	for i, k := range class {
		if out[i] = c.isIgnored(k); out[i] {
			class[i] = 0
		}
	}
	if dev := logp.t.Device(); dev != nil {
		ignored, classes = moveTo(dev, ignored), moveTo(dev, classes)
	}
	weight := c.Weight
	if weight == nil {
		weight = logp.t.NewEmpty(logp.t.DType(), logp.t.Dim(1)).Fill(1)
	}
	counts := tensor.IndexSelect(weight, 0, classes).MaskedFillInPlace(ignored, 0)
	losses := Neg(Reshape(Gather(logp, 1, classes.Reshape(-1, 1)), -1))
	losses = Mul(MaskedFill(losses, ignored, 0), Const(counts))
	if c.Smoothing > 0 {
		all := MaskedFill(Neg(Mean(Mul(logp, Const(weight)), 1)), ignored, 0)
		losses = Add(MulScalar(losses, 1-c.Smoothing), MulScalar(all, c.Smoothing))
	}
	if c.Reduction == ByMean {
		return MulScalar(Sum(losses), 1/counts.Sum())
	}
	return c.Reduction.reduceLosses(losses)
}
