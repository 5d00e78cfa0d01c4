package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Reduction says how the losses of a batch become one number.
type Reduction uint8

// The reductions of PyTorch.
const (
	ByMean    Reduction = iota // divided by the number of rows, or of elements
	BySum                      // added up
	Unreduced                  // a loss for each row, or element
)

// NLLLoss returns the negative log-likelihood of the classes in target, (N) of any integer type, under the
// log-probabilities logp, (N, classes).
func NLLLoss(logp *Var, target *tensor.Tensor, r Reduction) *Var {
	want("NLLLoss", "log-probabilities (N, classes)", logp, 2)
	checkTarget(logp, target)
	if r == Unreduced {
		return Neg(Reshape(Gather(logp, 1, target.Clone().To(tensor.Int64).Reshape(-1, 1)), -1))
	}
	return byType("NLLLoss", logp, nllLoss[float32], nllLoss[float64])(logp, target, r)
}

func checkTarget(logp *Var, target *tensor.Tensor) {
	if target.Dims() != 1 || target.Dim(0) != logp.t.Dim(0) {
		misuse("NLLLoss of log-probabilities %v with target %v: it is one class for each row", logp.Shape(), target.Shape())
	}
}

func nllLoss[F kernel.Float](logp *Var, target *tensor.Tensor, r Reduction) *Var {
	rows, cols := rowsOf("NLLLoss", logp)
	if target.DType() != tensor.Int64 || !target.IsContiguous() {
		target = target.To(tensor.Int64).Contiguous()
	}
	scale := r.scale(rows)
	y := result("NLLLoss", logp.t.DType(), nil, logp)
	classes := tensor.Data[int64](target)
	checkClasses(classes, cols)
	data[F](y.t)[0] = F(scale) * kernel.NLLLoss(rows, cols, data[F](logp.dense()), classes)
	hold(logp)
	if y.needs {
		y.save(target)
		y.note.factor = scale
		y.derive = byType(y.op, y, nllLossBackward[float32], nllLossBackward[float64])
	}
	return y
}

func nllLossBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	logp, target := y.inputs[0], y.saved[0].t
	rows, cols := rowsOf("NLLLoss", logp)
	logp.write(func(dx *tensor.Tensor) {
		kernel.NLLLossBackward(rows, cols, tensor.Data[int64](target), F(y.note.factor)*data[F](dy)[0], data[F](dx))
	})
}

func checkClasses(classes []int64, n int) {
	for i, c := range classes {
		if c < 0 || c >= int64(n) {
			misuse("NLLLoss with target[%d] = %d: there are %d classes", i, c, n)
		}
	}
}

// scale is what a sum over n is multiplied by.
func (r Reduction) scale(n int) float64 {
	if r == BySum {
		return 1
	}
	return 1 / float64(n)
}

// CrossEntropy returns NLLLoss of the LogSoftmax of logits, (N, classes).
func CrossEntropy(logits *Var, target *tensor.Tensor, r Reduction) *Var {
	return NLLLoss(LogSoftmax(logits), target, r)
}

// MSELoss returns the squared differences of x and target, which have one shape.
func MSELoss(x, target *Var, r Reduction) *Var {
	checkShapes("MSELoss", x, target)
	if r == Unreduced {
		d := Sub(x, target)
		return Mul(d, d)
	}
	return byType("MSELoss", x, mseLoss[float32], mseLoss[float64])(x, target, r)
}

func mseLoss[F kernel.Float](x, target *Var, r Reduction) *Var {
	xt, tt := x.dense(), target.dense()
	scale := r.scale(xt.Numel())
	y := result("MSELoss", x.t.DType(), nil, x, target)
	data[F](y.t)[0] = F(scale) * kernel.MSELoss(data[F](xt), data[F](tt))
	hold(x, target)
	if y.needs {
		y.save(xt, tt)
		y.backward = func(dy *tensor.Tensor) {
			s := F(scale) * data[F](dy)[0]
			x.write(func(dx *tensor.Tensor) { kernel.MSELossBackward(data[F](xt), data[F](tt), s, data[F](dx)) })
			target.write(func(dx *tensor.Tensor) { kernel.MSELossBackward(data[F](tt), data[F](xt), s, data[F](dx)) })
		}
	}
	return y
}

func checkShapes(op string, x, target *Var) {
	if !sameShape(x.Shape(), target.Shape()) {
		misuse("%s of shapes %v and %v: they must be equal", op, x.Shape(), target.Shape())
	}
}

// of reduces the losses of elements.
func (r Reduction) of(losses *Var) *Var {
	switch r {
	case ByMean:
		return Mean(losses)
	case BySum:
		return Sum(losses)
	}
	return losses
}

// SmoothL1Loss returns half the squared differences of x and target, which have one shape, divided by beta where they are
// less than beta, and elsewhere the differences less half of beta: there the gradient is 1. With beta 0 it is the L1 loss.
func SmoothL1Loss(x, target *Var, beta float64, r Reduction) *Var {
	checkShapes("SmoothL1Loss", x, target)
	if !(beta >= 0) {
		misuse("SmoothL1Loss with beta %v: it is at least 0", beta)
	}
	d := Abs(Sub(x, target))
	if beta == 0 {
		return r.of(d)
	}
	near := tensor.Lt(d.t, d.t.Number(beta))
	return r.of(Where(near, MulScalar(Mul(d, d), 0.5/beta), AddScalar(d, -0.5*beta)))
}

// BCEWithLogitsLoss returns the binary cross-entropy of probabilities target, of x's shape, and the sigmoid of x.
func BCEWithLogitsLoss(x, target *Var, r Reduction) *Var {
	checkShapes("BCEWithLogitsLoss", x, target)
	// max(x, 0) - x·target + log(1 + e^-|x|)
	losses := tensor.Abs(x.t).Neg().Exp()
	losses = tensor.Log1p(losses).Add(tensor.Relu(x.t)).Sub(tensor.Mul(x.t, target.t))
	v := wrap("BCEWithLogitsLoss", losses, x, target)
	if v.needs {
		v.save(x.t, target.t)
		v.backward = func(dy *tensor.Tensor) {
			if x.needs {
				x.add(tensor.Sigmoid(x.t).Sub(target.t).Mul(dy))
			}
			if target.needs {
				target.add(tensor.Mul(x.t, dy).Neg())
			}
		}
	}
	return r.of(v)
}
