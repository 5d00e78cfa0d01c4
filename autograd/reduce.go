package autograd

import "github.com/shoal-mp/shoal/tensor"

// Keep returns f(x, dims...) with each reduced dimension kept at size 1, like keepdim=True in
// PyTorch.
func Keep(f func(x *Var, dims ...int) *Var, x *Var, dims ...int) *Var {
	return kept(f(x, x.scope.dims(dims)...), x, x.named(dims))
}

// kept returns y, a reduction of x, with the reduced dimensions restored at size 1.
func kept(y, x *Var, reduced axes) *Var {
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
func Sum(x *Var, dims ...int) *Var { return sumOver(x, x.named(dims)) }

// sumOver is like Sum, but returns a copy for an empty set of dimensions.
func sumOver(x *Var, dims axes) *Var {
	var room [2 * maxDims]int
	var y *tensor.Tensor
	if dims == 0 {
		y = x.t.Clone()
	} else {
		y = tensor.Sum(x.t, dims.list(room[:0])...)
	}
	v := made("Sum", y, x)
	v.note.dims = dims
	return v.twice(func(y, dy *Var) derivatives { return of(kept(dy, y.inputs[0], y.note.dims)) })
}

// Mean returns the mean of x over dims, or over all dimensions if dims is empty.
func Mean(x *Var, dims ...int) *Var { return meanOver(x, x.named(dims)) }

func meanOver(x *Var, dims axes) *Var { return MulScalar(sumOver(x, dims), 1/float64(count(x, dims))) }

// keptMean is Mean with the reduced dimensions kept at size 1.
func keptMean(x *Var, dims axes) *Var { return kept(meanOver(x, dims), x, dims) }

// count returns how many elements are reduced to one when dims are reduced.
func count(x *Var, dims axes) int {
	n := 1
	for i, size := range x.Shape() {
		if dims.has(i) {
			n *= size
		}
	}
	return n
}

// Variance returns the unbiased variance of x over dims, or over all dimensions if dims is empty:
// the sum of squared deviations from the mean, divided by the number of elements less one.
func Variance(x *Var, dims ...int) *Var {
	named := x.named(dims)
	still := x.scope.NoGrad(x.t)
	off := Sub(still, keptMean(still, named)).t
	// scale is infinite for fewer than two elements: their variance is NaN.
	scale := 1 / float64(max(0, count(x, named)-1))
	squares := still.scope.NoGrad(x.own(tensor.Mul(off, off)))
	v := made("Variance", with(tensor.Mul, sumOver(squares, named).t, scale), x).reads(x.t)
	v.note.dims, v.note.factor = named, scale
	return v.twice(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		off := Sub(x, keptMean(x, dims))
		return of(Mul(MulScalar(off, 2*y.note.factor), kept(dy, x, dims)))
	})
}

// Std returns the standard deviation of x over dims, the square root of [Variance]. The gradient is
// zero if all elements are equal.
func Std(x *Var, dims ...int) *Var { return rooted("Std", Variance(x, dims...)) }

// rooted returns the square roots, with derivative zero at zero.
func rooted(op string, v *Var) *Var {
	y := made(op, tensor.Sqrt(v.t), v)
	return y.reads(y.t).twice(func(y, dy *Var) derivatives {
		return of(Where(dy.own(with(tensor.Eq, y.t, 0)), dy.like(0), MulScalar(Div(dy, y), 0.5)))
	})
}

// Prod returns the product of x over dims, or over all dimensions if dims is empty.
func Prod(x *Var, dims ...int) *Var {
	named := x.named(dims)
	var room [2 * maxDims]int
	v := made("Prod", tensor.Prod(x.t, named.list(room[:0])...), x)
	v.note.dims = named
	v.reads(x.t, v.t)
	return v.twice(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		switch dy = kept(dy, x, dims); {
		case x.t.Numel() == 0:
			return of(dy.constant(dy.t.NewZeros(dy.t.DType(), x.Shape()...)))
		case x.t.Dims() == 0:
			return of(dy)
		case !dy.quiet: // the shortcuts below are not differentiable
			return of(Mul(others(x, dims), dy))
		}
		switch zeros := dy.own(tensor.Sum(dy.own(with(tensor.Eq, x.t, 0)))).Item(); {
		case zeros == 0:
			return of(Mul(Div(kept(y, x, dims), x), dy))
		case zeros > 1 && dims == 1<<x.t.Dims()-1:
			return of(Mul(dy.constant(dy.t.NewZeros(dy.t.DType(), x.Shape()...)), dy))
		}
		return of(Mul(others(x, dims), dy))
	})
}

// others returns, for each element of x, the product of the other elements that are reduced
// together with it over dims.
func others(x *Var, dims axes) *Var {
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
	before := running(rows)
	after := Flip(running(Flip(rows, 1)), 1)
	ones := Const(t.NewEmpty(t.DType(), rows.t.Dim(0), 1).Fill(1))
	before = Cat(1, ones, Narrow(before, 1, 0, last))
	after = Cat(1, Narrow(after, 1, 1, last), ones)
	return Permute(Reshape(Mul(before, after), turned.Shape()...), back...)
}

// running returns the cumulative products of rows. Each iteration doubles the number of factors.
func running(rows *Var) *Var {
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
	named := x.named(dims)
	var room [2 * maxDims]int
	return shared("Amax", x, tensor.Amax(x.t, named.list(room[:0])...), named)
}

// Amin returns the minimum of x over dims, or over all dimensions if dims is empty. Equal elements
// share the gradient.
func Amin(x *Var, dims ...int) *Var {
	named := x.named(dims)
	var room [2 * maxDims]int
	return shared("Amin", x, tensor.Amin(x.t, named.list(room[:0])...), named)
}

// shared records t as the extremes of x over dims, with the gradient shared by equal elements.
func shared(op string, x *Var, t *tensor.Tensor, dims axes) *Var {
	v := made(op, t, x).reads(x.t, t)
	v.note.dims = dims
	return v.twice(func(y, dy *Var) derivatives {
		x, dims := y.inputs[0], y.note.dims
		equal := dy.own(tensor.Eq(x.t, kept(dy.scope.NoGrad(y.t), x, dims).t))
		same := dy.constant(equal.To(x.t.DType()))
		return of(Mul(Div(same, kept(sumOver(same, dims), same, dims)), kept(dy, x, dims)))
	})
}

// CumSum returns the cumulative sums along dim.
func CumSum(x *Var, dim int) *Var {
	v := made("CumSum", tensor.CumSum(x.t, dim), x)
	v.note.place[0] = dim
	return v.twice(func(y, dy *Var) derivatives {
		dim := y.note.place[0]
		if y.t.Dims() == 0 {
			return of(dy)
		}
		return of(Flip(CumSum(Flip(dy, dim), dim), dim))
	})
}
