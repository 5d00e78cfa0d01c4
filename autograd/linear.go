package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// Linear returns x·wᵀ + b, (..., out). x must be (..., in), w must be (out, in), and b must be
// (out) or nil.
func Linear(x, w, b *Var) *Var {
	checkLinear(x, w, b)
	return dispatch("Linear", x, linear[float32], linear[float64], linearOn)(x, w, b)
}

// countVectors returns the number of feature vectors in x, even if they are empty.
func countVectors(x *Var) int { return product(x.Shape()[:x.t.Dims()-1]) }

func checkLinear(x, w, b *Var) {
	requireDims("Linear", "a weight (out, in)", w, 2)
	if rowsOf("Linear", x); x.t.Dim(-1) != w.t.Dim(1) {
		misuse(tensor.ErrShape, "Linear: last dimensions of input %v and weight %v differ", x.Shape(), w.Shape())
	}
	checkBias("Linear", b, w.t.Dim(0))
}

func checkBias(op string, b *Var, n int) {
	if b != nil && (b.t.Dims() != 1 || b.t.Dim(0) != n) {
		misuse(tensor.ErrShape, "%s: got bias of shape %v, want (%d)", op, b.Shape(), n)
	}
}

func linear[F kernel.Float](x, w, b *Var) *Var {
	rows, in := countVectors(x), w.t.Dim(1)
	out := w.t.Dim(0)
	xt, wt := x.contiguousTensor(), w.contiguousTensor()
	var room [maxDims]int
	shape := append(room[:0], x.Shape()...)
	shape[len(shape)-1] = out
	y := newResult("Linear", x.t.DType(), shape, x, w, b)
	kernel.Gemm(false, true, rows, out, in, 1, data[F](xt), in, data[F](wt), in, 0, data[F](y.t), out)
	if b != nil {
		kernel.AddBias(rows, out, data[F](y.t), data[F](b.contiguousTensor()))
	}
	keepAlive(x, w, b)
	if y.needs {
		y.saveTensors(xt, wt)
		y.derive = kernelByDType(y.op, y, linearBackward[float32], linearBackward[float64])
		y.again = linearTwice
	}
	return y
}

func linearBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	x, w, b := y.inputs[0], y.inputs[1], y.inputAt(2)
	rows, out, in := countVectors(y), w.t.Dim(0), w.t.Dim(1)
	xt, wt, g := y.saved[0].t, y.saved[1].t, data[F](dy)
	x.writeGradient(func(dx *tensor.Tensor) {
		kernel.Gemm(false, false, rows, in, out, 1, g, out, data[F](wt), in, 0, data[F](dx), in)
	})
	if w.needsGradient() {
		kernel.Gemm(true, false, out, in, rows, 1, g, out, data[F](xt), in, 1, data[F](w.gradientSum()), in)
	}
	if b != nil && b.needsGradient() {
		kernel.ColSum(rows, out, g, data[F](b.gradientSum()))
	}
}

func linearTwice(y, dy *Var) derivatives {
	x, w := y.inputs[0], y.inputs[1]
	rows := Reshape(dy, countVectors(y), w.t.Dim(0))
	var dx, dw *Var
	if x.needsGradient() {
		dx = Reshape(MatMul(rows, w), x.Shape()...)
	}
	if w.needsGradient() {
		dw = MatMul(Transpose(rows, 0, 1), Reshape(x, countVectors(x), w.t.Dim(1)))
	}
	if len(y.inputs) < 3 {
		return derivativesOf(dx, dw)
	}
	return derivativesOf(dx, dw, Sum(rows, 0))
}

// MatMul returns the matrix product of a, (..., n, k), and b, (..., k, m), like torch.matmul.
// Leading dimensions broadcast. A vector is a row on the left and a column on the right.
func MatMul(a, b *Var) *Var {
	return wrapOwned("MatMul", tensor.MatMul(a.t, b.t), a, b).saveIfNeeded(a.t, b.t).setRule(matMulTwice)
}

// BMM returns the matrix products of two batches, (b, n, k) and (b, k, m), as (b, n, m).
func BMM(a, b *Var) *Var {
	if a.t.Dims() != 3 || b.t.Dims() != 3 || a.t.Dim(0) != b.t.Dim(0) {
		misuse(tensor.ErrShape, "BMM: got shapes %v and %v, want (b, n, k) and (b, k, m)", a.Shape(), b.Shape())
	}
	return MatMul(a, b)
}

// matMulTwice is the rule of MatMul. It treats vectors as matrices.
func matMulTwice(y, dy *Var) derivatives {
	a, b := y.inputs[0], y.inputs[1]
	am, bm := a, b
	if b.t.Dims() == 1 {
		bm, dy = Unsqueeze(b, 1), Unsqueeze(dy, dy.t.Dims())
	}
	if a.t.Dims() == 1 {
		am, dy = Unsqueeze(a, 0), Unsqueeze(dy, dy.t.Dims()-1)
	}
	var da, db *Var
	if a.needsGradient() {
		da = Reshape(sumTo(MatMul(dy, Transpose(bm, -1, -2)), am.Shape()), a.Shape()...)
	}
	if b.needsGradient() {
		db = Reshape(sumTo(MatMul(Transpose(am, -1, -2), dy), bm.Shape()), b.Shape()...)
	}
	return derivativesOf(da, db)
}
