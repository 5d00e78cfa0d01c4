package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// ReLU returns the maximum of x and zero. The gradient at zero is zero.
func ReLU(x *Var) *Var {
	return dispatch("ReLU", x, relu[float32], relu[float64], reluOn)(x)
}

func relu[F kernel.Float](x *Var) *Var {
	y := newResult("ReLU", x.t.DType(), x.Shape(), x)
	kernel.Relu(data[F](x.contiguousTensor()), data[F](y.t))
	keepAlive(x)
	if y.needs {
		y.saveTensors(y.t)
		y.derive = kernelByDType(y.op, y, reluBackward[float32], reluBackward[float64])
		y.again = reluTwice
	}
	return y
}

func reluBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) { kernel.ReluBackward(data[F](y.t), data[F](dy), data[F](dx)) })
}

func reluTwice(y, dy *Var) derivatives {
	return derivativesOf(Where(dy.ownTensor(applyNumber(tensor.Le, y.t, 0)), dy.constLike(0), dy)) // NaN passes through
}

// Dropout sets each element of x to zero with probability p and multiplies the others by 1/(1-p),
// which preserves the mean. p must be between 0 and 1. If g is nil, it uses the default generator.
// If train is false, Dropout returns x.
func Dropout(x *Var, p float64, g *tensor.Generator, train bool) *Var {
	return dropout("Dropout", x, p, g, train, 1)
}

// Dropout2d is like [Dropout], but zeroes whole channels of x, which must have the shape (N, C, H,
// W).
func Dropout2d(x *Var, p float64, g *tensor.Generator, train bool) *Var {
	requireDims("Dropout2d", "an image batch (N, C, H, W)", x, 4)
	return dropout("Dropout2d", x, p, g, train, x.t.Dim(2)*x.t.Dim(3))
}

// dropout implements Dropout. It zeroes or keeps run adjacent elements together. op is the name
// of the operation in errors.
func dropout(op string, x *Var, p float64, g *tensor.Generator, train bool, run int) *Var {
	if !(p >= 0 && p <= 1) {
		misuse(tensor.ErrArgument, "%s: got probability %v, want 0 to 1", op, p)
	}
	if !train || p == 0 || x.t.Numel() == 0 {
		return x
	}
	return dispatch(op, x, dropoutOf[float32], dropoutOf[float64], dropoutOn)(op, x, p, g, run)
}

func dropoutOf[F kernel.Float](op string, x *Var, p float64, g *tensor.Generator, run int) *Var {
	y := newResult(op, x.t.DType(), x.Shape(), x)
	kept := y.scope.newEmpty(nil, x.t.DType(), []int{x.t.Numel() / run}).FillBernoulli(g, 1-p)
	y.note.run, y.note.factor = run, 1 // if p is 1, nothing is kept and the factor does not matter
	if p < 1 {
		y.note.factor = 1 / (1 - p)
	}
	applyDropout[F](y, kept, x.contiguousTensor(), y.t)
	keepAlive(x)
	if y.needs {
		y.saveTensors(kept)
		y.derive = dropoutBackward
		y.again = dropoutTwice
	}
	return y
}

func dropoutBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		kernelByDType(y.op, y, applyDropout[float32], applyDropout[float64])(y, y.saved[0].t, dy, dx)
	})
}

func dropoutTwice(y, dy *Var) derivatives {
	factors := dy.newEmptyLike()
	kernelByDType(y.op, y, factorsOf[float32], factorsOf[float64])(y, y.saved[0].t, factors)
	return derivativesOf(Mul(dy, dy.scope.Const(factors)))
}

// factorsOf sets the elements of to to the factors of y's dropout: 0 for elements that were
// dropped, and y.note.factor for others. kept is 1 for each run of elements that is kept, and
// otherwise 0.
func factorsOf[F kernel.Float](y *Var, kept, to *tensor.Tensor) {
	factors := data[F](to)
	for i := range factors {
		factors[i] = 1
	}
	kernel.Dropout(y.note.run, F(y.note.factor), data[F](kept), factors, factors)
}

// applyDropout applies y's dropout to from and stores the result in to. kept is as for factorsOf.
func applyDropout[F kernel.Float](y *Var, kept, from, to *tensor.Tensor) {
	kernel.Dropout(y.note.run, F(y.note.factor), data[F](kept), data[F](from), data[F](to))
}

// requireDims panics with [tensor.ErrShape] unless x has dims dimensions. The error contains the
// name op of the operation, and want, a description of the wanted shape.
func requireDims(op, want string, x *Var, dims int) {
	if x.t.Dims() != dims {
		misuse(tensor.ErrShape, "%s: got shape %v, want %s", op, x.Shape(), want)
	}
}
