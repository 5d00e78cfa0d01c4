package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// LogSoftmax returns the logarithm of the softmax of x along dim. A negative dim counts from the
// end. A scalar counts as one dimension, as in PyTorch.
func LogSoftmax(x *Var, dim int) *Var { return applyAlongDim("LogSoftmax", x, dim, lastLogSoftmax) }

func lastLogSoftmax(x *Var) *Var {
	return dispatch("LogSoftmax", x, logSoftmax[float32], logSoftmax[float64], logSoftmaxOn)(x)
}

// Softmax returns e^x divided by its sum along dim. A negative dim counts from the end. A scalar
// counts as one dimension, as in PyTorch.
func Softmax(x *Var, dim int) *Var { return applyAlongDim("Softmax", x, dim, lastSoftmax) }

func lastSoftmax(x *Var) *Var {
	return dispatch("Softmax", x, softmax[float32], softmax[float64], softmaxOn)(x)
}

func softmax[F kernel.Float](x *Var) *Var {
	rows, cols := rowsOf("Softmax", x)
	y := newResult("Softmax", x.t.DType(), x.Shape(), x)
	kernel.Softmax(rows, cols, data[F](x.contiguousTensor()), data[F](y.t))
	keepAlive(x)
	y.saveIfNeeded(y.t)
	return y.setDerivatives(kernelByDType(y.op, y, softmaxBackward[float32], softmaxBackward[float64]), softmaxTwice)
}

func softmaxBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	rows, cols := rowsOf("Softmax", y)
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernel.SoftmaxBackward(rows, cols, data[F](y.t), data[F](dy), data[F](dx))
	})
}

func softmaxTwice(y, dy *Var) derivatives {
	along := Mul(dy, y)
	return derivativesOf(Sub(along, Mul(y, rowSums(along))))
}

// applyAlongDim applies f, which works on the last dimension, to dimension dim. It panics with
// [tensor.ErrIndex] if dim is out of range.
func applyAlongDim(op string, x *Var, dim int, f func(x *Var) *Var) *Var {
	dims := max(1, x.t.Dims())
	if dim < -dims || dim >= dims {
		misuse(tensor.ErrIndex, "%s: got dimension %d of shape %v, want %d to %d", op, dim, x.Shape(), -dims, dims-1)
	}
	switch {
	case x.t.Dims() == 0:
		return Reshape(f(Reshape(x, 1)))
	case dim == -1 || dim == dims-1:
		return f(x)
	}
	return makeContiguous(Transpose(f(Transpose(x, dim, -1)), dim, -1))
}

// makeContiguous returns x in contiguous memory.
func makeContiguous(x *Var) *Var {
	if x.t.IsContiguous() {
		return x
	}
	return wrapOwned(x.op, x.t.Clone(), x).setRule(identityRule)
}

func logSoftmax[F kernel.Float](x *Var) *Var {
	rows, cols := rowsOf("LogSoftmax", x)
	y := newResult("LogSoftmax", x.t.DType(), x.Shape(), x)
	kernel.LogSoftmax(rows, cols, data[F](x.contiguousTensor()), data[F](y.t))
	keepAlive(x)
	if y.needs {
		y.saveTensors(y.t)
		y.derive = kernelByDType(y.op, y, logSoftmaxBackward[float32], logSoftmaxBackward[float64])
		y.again = logSoftmaxTwice
	}
	return y
}

func logSoftmaxBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	rows, cols := rowsOf("LogSoftmax", y)
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernel.LogSoftmaxBackward(rows, cols, data[F](y.t), data[F](dy), data[F](dx))
	})
}

func logSoftmaxTwice(y, dy *Var) derivatives {
	return derivativesOf(Sub(dy, Mul(Exp(y), rowSums(dy))))
}

// rowSums returns the sums of rows, kept at size 1.
func rowSums(x *Var) *Var {
	last := axes(1) << (x.t.Dims() - 1)
	return keepDims(sumOver(x, last), x, last)
}

// rowsOf returns x's shape as a matrix with the last dimension as columns, or 0, 0 if the last
// dimension is empty. It panics with [tensor.ErrShape] if x has no dimensions.
func rowsOf(op string, x *Var) (rows, cols int) {
	if x.t.Dims() == 0 {
		misuse(tensor.ErrShape, "%s: got a single number, want a last dimension of classes or features", op)
	}
	cols = x.t.Dim(-1)
	if cols == 0 {
		return 0, 0
	}
	return x.t.Numel() / cols, cols
}

// LogSumExp returns the logarithm of the sum of e^x over dims, or over all dimensions if dims is
// empty. It does not overflow for large x.
func LogSumExp(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	if countReduced(x, named) == 0 { // logarithms of empty sums
		return Log(sumOver(Exp(x), named))
	}
	var room [2 * maxDims]int
	top := keepDims(x.scope.NoGrad(x.ownTensor(tensor.Amax(x.t, named.appendDims(room[:0])...))), x, named).t
	finite := x.ownTensor(tensor.IsFinite(top))
	shift := x.wrapConst(tensor.Where(finite, top, x.ownTensor(top.Number(0))))
	sums := Log(sumOver(Exp(Sub(x, shift)), named))
	return Add(sums, Reshape(shift, sums.Shape()...))
}

// Norm returns the Euclidean norm of x over dims, or over all dimensions if dims is empty: the
// square root of the sum of squares. The gradient is zero if all elements are zero.
func Norm(x *Var, dims ...int) *Var { return safeSqrt("Norm", sumOver(Mul(x, x), x.dimSet(dims))) }
