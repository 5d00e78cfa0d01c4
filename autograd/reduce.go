package autograd

import "github.com/shoal-mp/shoal/tensor"

// Keep returns f(x, dims...) with each reduced dimension kept at size 1, like keepdim=True in
// PyTorch.
func Keep(f func(x *Var, dims ...int) *Var, x *Var, dims ...int) *Var {
	return keepDims(f(x, x.scope.copyDims(dims)...), x, x.dimSet(dims))
}

// keepDims returns y, a reduction of x, with the reduced dimensions restored at size 1.
func keepDims(y, x *Var, reduced axes) *Var {
	var room [2 * maxDims]int
	shape := append(room[:0], x.Shape()...)
	for i := range shape {
		if reduced.has(i) {
			shape[i] = 1
		}
	}
	return Reshape(y, shape...)
}

// Sum returns the sum of x over dims, or over all dimensions if dims is empty.
func Sum(x *Var, dims ...int) *Var { return sumOver(x, x.dimSet(dims)) }

// sumOver is like Sum, but returns a copy for an empty set of dimensions.
func sumOver(x *Var, dims axes) *Var {
	var room [2 * maxDims]int
	var y *tensor.Tensor
	if dims == 0 {
		y = x.t.Clone()
	} else {
		y = tensor.Sum(x.t, dims.appendDims(room[:0])...)
	}
	v := wrapOwned("Sum", y, x)
	v.note.dims = dims
	return v.setRule(func(y, dy *Var) derivatives { return derivativesOf(keepDims(dy, y.inputs[0], y.note.dims)) })
}

// Mean returns the mean of x over dims, or over all dimensions if dims is empty.
func Mean(x *Var, dims ...int) *Var { return meanOver(x, x.dimSet(dims)) }

func meanOver(x *Var, dims axes) *Var {
	return MulScalar(sumOver(x, dims), 1/float64(countReduced(x, dims)))
}

// meanKeepDims is Mean with the reduced dimensions kept at size 1.
func meanKeepDims(x *Var, dims axes) *Var { return keepDims(meanOver(x, dims), x, dims) }

// countReduced returns how many elements are reduced to one when dims are reduced.
func countReduced(x *Var, dims axes) int {
	n := 1
	for i, size := range x.Shape() {
		if dims.has(i) {
			n *= size
		}
	}
	return n
}

// Variance returns the unbiased variance of x over dims, or over all dimensions if dims is empty:
// the sum of squared deviations from the mean, divided by the number of elements less one. It is
// NaN for fewer than two elements.
func Variance(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	still := x.scope.NoGrad(x.t)
	off := Sub(still, meanKeepDims(still, named)).t
	// scale is infinite for fewer than two elements: their variance is NaN.
	scale := 1 / float64(max(0, countReduced(x, named)-1))
	squares := still.scope.NoGrad(x.ownTensor(tensor.Mul(off, off)))
	v := wrapOwned("Variance", applyNumber(tensor.Mul, sumOver(squares, named).t, scale), x).saveIfNeeded(x.t)
	v.note.dims, v.note.factor = named, scale
	return v.setRule(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		off := Sub(x, meanKeepDims(x, dims))
		return derivativesOf(Mul(MulScalar(off, 2*y.note.factor), keepDims(dy, x, dims)))
	})
}

// Std returns the standard deviation of x over dims, the square root of [Variance]. The gradient is
// zero if all elements are equal.
func Std(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	var room [2 * maxDims]int
	v := wrapOwned("Std", tensor.Std(x.t, named.appendDims(room[:0])...), x)
	v.note.dims, v.note.factor = named, 1/float64(max(0, countReduced(x, named)-1))
	return v.saveIfNeeded(x.t, v.t).setRule(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		off := Sub(x, meanKeepDims(x, dims))
		slope := Where(dy.ownTensor(applyNumber(tensor.Eq, y.t, 0)), dy.constLike(0), Div(dy, y))
		return derivativesOf(Mul(MulScalar(off, y.note.factor), keepDims(slope, x, dims)))
	})
}

// safeSqrt returns the square roots, with derivative zero at zero.
func safeSqrt(op string, v *Var) *Var {
	y := wrapOwned(op, tensor.Sqrt(v.t), v)
	return y.saveIfNeeded(y.t).setRule(func(y, dy *Var) derivatives {
		return derivativesOf(Where(dy.ownTensor(applyNumber(tensor.Eq, y.t, 0)), dy.constLike(0),
			MulScalar(Div(dy, y), 0.5)))
	})
}

// Prod returns the product of x over dims, or over all dimensions if dims is empty.
func Prod(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	var room [2 * maxDims]int
	v := wrapOwned("Prod", tensor.Prod(x.t, named.appendDims(room[:0])...), x)
	v.note.dims = named
	v.saveIfNeeded(x.t, v.t)
	return v.setRule(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		switch dy = keepDims(dy, x, dims); {
		case x.t.Numel() == 0:
			return derivativesOf(dy.wrapConst(dy.t.NewZeros(dy.t.DType(), x.Shape()...)))
		case x.t.Dims() == 0:
			return derivativesOf(dy)
		case !dy.quiet: // the shortcuts below are not differentiable
			return derivativesOf(Mul(productOfOthers(x, dims), dy))
		}
		switch zeros := dy.ownTensor(tensor.Sum(dy.ownTensor(applyNumber(tensor.Eq, x.t, 0)))).Item(); {
		case zeros == 0:
			return derivativesOf(Mul(Div(keepDims(y, x, dims), x), dy))
		case zeros > 1 && dims == 1<<x.t.Dims()-1:
			return derivativesOf(Mul(dy.wrapConst(dy.t.NewZeros(dy.t.DType(), x.Shape()...)), dy))
		}
		return derivativesOf(Mul(productOfOthers(x, dims), dy))
	})
}

// productOfOthers returns, for each element of x, the product of the other elements that are
// reduced together with it over dims.
func productOfOthers(x *Var, dims axes) *Var {
	t := x.t
	var stay, gone []int
	for i, size := range t.Shape() {
		if !dims.has(i) && size != 1 {
			stay = append(stay, i)
		} else {
			gone = append(gone, i)
		}
	}
	order := append(stay, gone...)
	back := make([]int, len(order))
	for i, d := range order {
		back[d] = i
	}
	turned := Permute(x, order...)
	rows := Reshape(turned, -1, t.Numel()/max(1, product(turned.Shape()[:len(stay)])))
	last := rows.t.Dim(1) - 1
	before := cumulativeProducts(rows)
	after := Flip(cumulativeProducts(Flip(rows, 1)), 1)
	ones := Const(t.NewEmpty(t.DType(), rows.t.Dim(0), 1).Fill(1))
	before = Cat(1, ones, Narrow(before, 1, 0, last))
	after = Cat(1, Narrow(after, 1, 1, last), ones)
	return Permute(Reshape(Mul(before, after), turned.Shape()...), back...)
}

// cumulativeProducts returns the cumulative products of rows. Each iteration doubles the number of
// factors.
func cumulativeProducts(rows *Var) *Var {
	n := rows.t.Dim(1)
	for have := 1; have < n; have *= 2 {
		more := Mul(Narrow(rows, 1, have, n-have), Narrow(rows, 1, 0, n-have))
		rows = Cat(1, Narrow(rows, 1, 0, have), more)
	}
	return rows
}

func product(shape []int) int {
	n := 1
	for _, size := range shape {
		n *= size
	}
	return n
}

// Amax returns the maximum of x over dims, or over all dimensions if dims is empty. Equal elements
// share the gradient.
func Amax(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	var room [2 * maxDims]int
	return shareGradient("Amax", x, tensor.Amax(x.t, named.appendDims(room[:0])...), named)
}

// Amin returns the minimum of x over dims, or over all dimensions if dims is empty. Equal elements
// share the gradient.
func Amin(x *Var, dims ...int) *Var {
	named := x.dimSet(dims)
	var room [2 * maxDims]int
	return shareGradient("Amin", x, tensor.Amin(x.t, named.appendDims(room[:0])...), named)
}

// shareGradient records t as the extremes of x over dims, with the gradient shared by equal
// elements.
func shareGradient(op string, x *Var, t *tensor.Tensor, dims axes) *Var {
	v := wrapOwned(op, t, x).saveIfNeeded(x.t, t)
	v.note.dims = dims
	return v.setRule(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		equal := dy.ownTensor(tensor.Eq(x.t, keepDims(dy.scope.NoGrad(y.t), x, dims).t))
		same := dy.wrapConst(equal.To(x.t.DType()))
		return derivativesOf(Mul(Div(same, keepDims(sumOver(same, dims), same, dims)), keepDims(dy, x, dims)))
	})
}

// CumSum returns the cumulative sums along dim.
func CumSum(x *Var, dim int) *Var {
	v := wrapOwned("CumSum", tensor.CumSum(x.t, dim), x)
	v.note.place[0] = dim
	return v.setRule(func(y, dy *Var) derivatives {
		dim := y.note.place[0]
		if y.t.Dims() == 0 {
			return derivativesOf(dy)
		}
		return derivativesOf(Flip(CumSum(Flip(dy, dim), dim), dim))
	})
}
