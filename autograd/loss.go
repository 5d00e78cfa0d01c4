package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Reduction says how the losses of a batch become one number.
type Reduction uint8

// The reductions of PyTorch that give one number.
const (
	ByMean Reduction = iota // divided by the number of rows, or of elements
	BySum
)

// NLLLoss returns the negative log-likelihood of the classes in target, (N) of any integer type, under the
// log-probabilities logp, (N, classes).
func NLLLoss(logp *Var, target *tensor.Tensor, r Reduction) *Var {
	want("NLLLoss", "log-probabilities (N, classes)", logp, 2)
	checkTarget(logp, target)
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
		y.backward = func(dy *tensor.Tensor) {
			logp.write(func(dx *tensor.Tensor) {
				kernel.NLLLossBackward(rows, cols, tensor.Data[int64](target), F(scale)*data[F](dy)[0], data[F](dx))
			})
		}
	}
	return y
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
	if !sameShape(x.Shape(), target.Shape()) {
		misuse("MSELoss of shapes %v and %v: they must be equal", x.Shape(), target.Shape())
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
