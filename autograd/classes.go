package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Ignored is the target of a row that does not count in a loss: PyTorch's ignore_index.
const Ignored = -100

// A Classification says how classes and rows count in a loss. The zero value is the mean over rows,
// with equal weights of the classes.
type Classification struct {
	// weights of the classes, (classes), of the dtype of the loss; nil: all 1. A mean divides by
	// the sum of the weights of the targets
	Weight *tensor.Tensor
	Ignore []int64 // more targets whose rows do not count, besides Ignored
	// for CrossEntropy: the part of the target's probability, 0 to 1, that is spread evenly over
	// all classes (Szegedy and others, 2016)
	Smoothing float64
	Reduction Reduction
}

// rowLoss is the loss of log-probabilities, (n, classes), for classes, (n), on the host.
func (c Classification) rowLoss(logp *Var, target *tensor.Tensor) *Var {
	if target.DType() != tensor.Int64 || !target.IsContiguous() {
		target = target.To(tensor.Int64).Contiguous()
	}
	ignored := c.checkClasses(tensor.Data[int64](target), logp.t.Dim(1))
	if !ignored && c.isPlain() {
		return negativeLikelihood(logp, target, c.Reduction)
	}
	return c.weighted(logp, target)
}

// rowLossOn is the loss on a device of what logs makes of rows, while the device looks at the
// classes: as a rule all are in range. Otherwise the host reads them.
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
	near := onHost(target)
	if ignored := c.checkClasses(tensor.Data[int64](near), logp.t.Dim(1)); !ignored && c.isPlain() {
		return negativeLikelihood(logp, target, c.Reduction)
	}
	return c.weighted(logp, near)
}

// isPlain reports whether all rows count alike, and what is asked for is one number.
func (c Classification) isPlain() bool {
	return c.Weight == nil && c.Smoothing == 0 && c.Reduction != Unreduced
}

func negativeLikelihood(logp *Var, target *tensor.Tensor, r Reduction) *Var {
	return dispatch("NLLLoss", logp, nllLoss[float32], nllLoss[float64], nllLossOn)(logp, target, r)
}

// checkClasses panics unless there are classes of that number, and weights for them. It reports
// whether rows are ignored.
func (c Classification) checkClasses(target []int64, n int) (ignored bool) {
	if !(c.Smoothing >= 0 && c.Smoothing <= 1) {
		misuse(tensor.ErrArgument, "NLLLoss with smoothing %v: it is between 0 and 1", c.Smoothing)
	}
	if c.Weight != nil && !sameShape(c.Weight.Shape(), []int{n}) {
		misuse(tensor.ErrShape, "NLLLoss with weights %v of %d classes", c.Weight.Shape(), n)
	}
	for i, class := range target {
		if c.ignores(class) {
			ignored = true
		} else if class < 0 || class >= int64(n) {
			misuse(tensor.ErrIndex, "NLLLoss with target[%d] = %d: there are %d classes", i, class, n)
		}
	}
	return ignored
}

func (c Classification) ignores(class int64) bool {
	return class == Ignored || len(c.Ignore) > 0 && slices.Contains(c.Ignore, class)
}

// weighted, of targets on the host, is the loss of rows, each multiplied by the weight of its
// class, less what smoothing takes of it and with what it adds: the mean loss of all classes,
// multiplied by their weights.
func (c Classification) weighted(logp *Var, target *tensor.Tensor) *Var {
	ignored, classes := tensor.New(tensor.Bool, target.Shape()...), target.Clone()
	out, class := tensor.Data[bool](ignored), tensor.Data[int64](classes)
	for i, k := range class {
		if out[i] = c.ignores(k); out[i] {
			class[i] = 0
		}
	}
	if dev := logp.t.Device(); dev != nil {
		ignored, classes = movedTo(dev, ignored), movedTo(dev, classes)
	}
	weight := c.Weight
	if weight == nil {
		weight = logp.t.NewEmpty(logp.t.DType(), logp.t.Dim(1)).Fill(1)
	}
	counts := tensor.IndexSelect(weight, 0, classes).MaskedFill(ignored, 0)
	losses := Neg(Reshape(Gather(logp, 1, classes.Reshape(-1, 1)), -1))
	losses = Mul(MaskedFill(losses, ignored, 0), Const(counts))
	if c.Smoothing > 0 {
		all := MaskedFill(Neg(Mean(Mul(logp, Const(weight)), 1)), ignored, 0)
		losses = Add(MulScalar(losses, 1-c.Smoothing), MulScalar(all, c.Smoothing))
	}
	if c.Reduction == ByMean {
		return MulScalar(Sum(losses), 1/counts.Sum())
	}
	return c.Reduction.of(losses)
}
