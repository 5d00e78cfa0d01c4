package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// A Reduction determines how a loss combines the losses of rows or elements.
type Reduction uint8

// The reductions of PyTorch.
const (
	ByMean    Reduction = iota // mean over rows or elements
	BySum                      // sum
	Unreduced                  // one loss for each row or element
)

func nllLoss[F kernel.Float](logp *Var, target *tensor.Tensor, r Reduction) *Var {
	rows, cols := rowsOf("NLLLoss", logp)
	scale := r.scaleFactor(rows)
	y := newResult("NLLLoss", logp.t.DType(), nil, logp)
	data[F](y.t)[0] = F(scale) * kernel.NLLLoss(rows, cols, data[F](logp.contiguousTensor()),
		tensor.Data[int64](target))
	keepAlive(logp)
	if y.needs {
		y.saveTensors(target)
		y.note.factor = scale
		y.derive = kernelByDType(y.op, y, nllLossBackward[float32], nllLossBackward[float64])
		y.again = kernelByDType(y.op, y, nllLossTwice[float32], nllLossTwice[float64])
	}
	return y
}

func nllLossBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	logp, target := y.inputs[0], y.saved[0].t
	rows, cols := rowsOf("NLLLoss", logp)
	logp.writeGradient(func(dx *tensor.Tensor) {
		kernel.NLLLossBackward(rows, cols, tensor.Data[int64](target), F(y.note.factor)*data[F](dy)[0], data[F](dx))
	})
}

// nllLossTwice is the rule of an NLLLoss. It multiplies dy by a constant: the derivative does not
// depend on logp.
func nllLossTwice[F kernel.Float](y, dy *Var) derivatives {
	logp, target := y.inputs[0], y.saved[0].t
	rows, cols := rowsOf("NLLLoss", logp)
	slopes := dy.scope.newEmpty(nil, logp.t.DType(), logp.Shape()).Zero()
	kernel.NLLLossBackward(rows, cols, tensor.Data[int64](target), F(y.note.factor), data[F](slopes))
	return derivativesOf(Mul(dy, dy.scope.Const(slopes)))
}

// scaleFactor returns the factor of the sum of n losses: 1 for BySum, and otherwise 1/n.
func (r Reduction) scaleFactor(n int) float64 {
	if r == BySum {
		return 1
	}
	return 1 / float64(n)
}

// MSELoss returns the squared differences of x and target, reduced by r. x and target must have the
// same shape.
func MSELoss(x, target *Var, r Reduction) *Var {
	checkShapes("MSELoss", x, target)
	x, target = promotePair(x, target)
	if r == Unreduced || x.isOnDevice() {
		d := Sub(x, target)
		return r.reduceLosses(Mul(d, d))
	}
	return kernelByDType("MSELoss", x, mseLoss[float32], mseLoss[float64])(x, target, r)
}

func mseLoss[F kernel.Float](x, target *Var, r Reduction) *Var {
	xt, tt := x.contiguousTensor(), target.contiguousTensor()
	scale := r.scaleFactor(xt.Numel())
	y := newResult("MSELoss", x.t.DType(), nil, x, target)
	data[F](y.t)[0] = F(scale) * kernel.MSELoss(data[F](xt), data[F](tt))
	keepAlive(x, target)
	if y.needs {
		y.saveTensors(xt, tt)
		y.note.factor = scale
	}
	return y.setDerivatives(kernelByDType(y.op, y, mseLossBackward[float32], mseLossBackward[float64]), mseLossTwice)
}

func mseLossBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	xt, tt, s := y.saved[0].t, y.saved[1].t, F(y.note.factor)*data[F](dy)[0]
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernel.MSELossBackward(data[F](xt), data[F](tt), s,
			data[F](dx))
	})
	y.inputs[1].writeGradient(func(dx *tensor.Tensor) {
		kernel.MSELossBackward(data[F](tt), data[F](xt), s,
			data[F](dx))
	})
}

func mseLossTwice(y, dy *Var) derivatives {
	dx := Mul(dy, MulScalar(Sub(y.inputs[0], y.inputs[1]), 2*y.note.factor))
	return derivativesOf(dx, Neg(dx))
}

func checkShapes(op string, x, target *Var) {
	if !sameShape(x.Shape(), target.Shape()) {
		misuse(tensor.ErrShape, "%s: shapes %v and %v differ", op, x.Shape(), target.Shape())
	}
}

// reduceLosses returns the mean or the sum of the losses, or losses itself if r is Unreduced.
func (r Reduction) reduceLosses(losses *Var) *Var {
	switch r {
	case ByMean:
		return Mean(losses)
	case BySum:
		return Sum(losses)
	}
	return losses
}

// SmoothL1Loss returns d²/(2·beta) if d = |x - target| is less than beta, and d - beta/2 otherwise,
// reduced by r. x and target must have the same shape. beta must not be negative; with beta 0 it is
// the L1 loss.
func SmoothL1Loss(x, target *Var, beta float64, r Reduction) *Var {
	checkShapes("SmoothL1Loss", x, target)
	if !(beta >= 0) {
		misuse(tensor.ErrArgument, "SmoothL1Loss: got beta %v, want at least 0", beta)
	}
	d := Sub(x, target)
	if beta == 0 {
		return r.reduceLosses(Abs(d))
	}
	off := d.ownTensor(tensor.Abs(d.t))
	near := d.ownTensor(applyNumber(tensor.Lt, off, beta))
	square := d.ownTensor(tensor.Mul(off, off)).MulScalarInPlace(0.5 / beta)
	losses := wrapOwned("SmoothL1Loss", tensor.Where(near, square, d.ownTensor(addNumber(off, -0.5*beta))), d).
		saveIfNeeded(d.t)
	losses.note.factor = 1 / beta
	return r.reduceLosses(losses.setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Mul(dy, Clamp(MulScalar(y.inputs[0], y.note.factor), -1, 1)))
	}))
}

// BCEWithLogitsLoss returns the binary cross-entropy of the sigmoid of x and the probabilities
// target, reduced by r. x and target must have the same shape. positive is PyTorch's pos_weight:
// the weight of the positive term, which raises the recall of rare classes. It must broadcast to
// x's shape; nil means 1.
func BCEWithLogitsLoss(x, target *Var, positive *tensor.Tensor, r Reduction) *Var {
	checkShapes("BCEWithLogitsLoss", x, target)
	if x, target = promotePair(x, target); positive == nil {
		positive = x.ownTensor(x.t.Number(1))
	}
	// (1 - target)·x + count·log(1 + e^-x), where the logarithm is computed as max(-x, 0) + log(1 +
	// e^-|x|). count is the factor of the logarithm: 1 + (positive - 1)·target.
	rest := x.ownTensor(addNumber(positive, -1))
	count := x.ownTensor(tensor.Mul(rest, target.t)).AddScalarInPlace(1)
	logs := x.ownTensor(tensor.Log1p(x.ownTensor(tensor.Abs(x.t)).NegInPlace().ExpInPlace()))
	logs.AddInPlace(x.ownTensor(tensor.Neg(x.t)).ReLUInPlace())
	losses := addNumber(x.ownTensor(tensor.Neg(target.t)), 1).MulInPlace(x.t)
	losses.AddInPlace(x.ownTensor(tensor.Mul(count, logs)))
	v := wrapOwned("BCEWithLogitsLoss", losses, x, target).saveIfNeeded(x.t, target.t, positive)
	return r.reduceLosses(v.setRule(func(y, dy *Var) derivatives {
		return bceTwice(y.inputs[0], y.inputs[1], dy.scope.Const(y.saved[2].t), dy)
	}))
}

func bceTwice(x, target, positive, dy *Var) derivatives {
	count := AddScalar(Mul(AddScalar(positive, -1), target), 1)
	dx := Sub(AddScalar(Neg(target), 1), Mul(Sigmoid(Neg(x)), count))
	if !target.needsGradient() {
		return derivativesOf(Mul(dy, dx), nil)
	}
	return derivativesOf(Mul(dy, dx), Mul(dy, Sub(Mul(positive, softplus(Neg(x))), softplus(x))))
}

// softplus returns log(1 + e^x), which equals -log(1 - sigmoid(x)).
func softplus(x *Var) *Var {
	y := tensor.Log1p(x.ownTensor(tensor.Abs(x.t)).NegInPlace().ExpInPlace()).AddInPlace(x.ownTensor(tensor.ReLU(x.t)))
	return wrapOwned("BCEWithLogitsLoss", y, x).saveIfNeeded(x.t).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(Mul(dy, Sigmoid(y.inputs[0]))) })
}
