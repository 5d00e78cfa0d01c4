package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Keep returns f(x, dims...) with each dimension that f reduces kept at size 1: PyTorch's
// keepdim=True.
func Keep(f func(x *Var, dims ...int) *Var, x *Var, dims ...int) *Var {
	return Reshape(f(x, dims...), kept(x.Shape(), dims)...)
}

// kept returns shape after dims, by default all, were reduced to size 1.
func kept(shape, dims []int) []int {
	out := slices.Clone(shape)
	for i := range shape {
		if len(dims) == 0 || slices.Contains(dims, i) || slices.Contains(dims, i-len(shape)) {
			out[i] = 1
		}
	}
	return out
}

// Sum returns the sum of x over dims, or over all dimensions without dims.
func Sum(x *Var, dims ...int) *Var {
	if len(dims) == 0 {
		dims = allDims(x)
	}
	v := made("Sum", sumOver(x.t, dims), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(stretch(dy, x.Shape(), dims)) }
	}
	return v.twice(func(y, dy *Var) []*Var { return of(Reshape(dy, kept(y.inputs[0].Shape(), dims)...)) })
}

// Mean returns the mean of x over dims, or over all dimensions without dims.
func Mean(x *Var, dims ...int) *Var {
	if len(dims) == 0 {
		dims = allDims(x)
	}
	return MulScalar(Sum(x, dims...), 1/float64(count(x, dims)))
}

// count returns how many elements make one when dims, by default all, are reduced.
func count(x *Var, dims []int) int {
	n := 1
	for i, size := range kept(x.Shape(), dims) {
		if size != x.t.Dim(i) {
			n *= x.t.Dim(i)
		}
	}
	return n
}

func allDims(x *Var) []int {
	dims := make([]int, x.t.Dims())
	for i := range dims {
		dims[i] = i
	}
	return dims
}

// sumOver is tensor.Sum, but of no dimensions it is a copy.
func sumOver(t *tensor.Tensor, dims []int) *tensor.Tensor {
	if len(dims) == 0 {
		return t.Clone()
	}
	return tensor.Sum(t, dims...)
}

// stretch puts the dimensions back that a sum took away and gives each element its share.
func stretch(dy *tensor.Tensor, shape, dims []int) *tensor.Tensor {
	if len(dims) > 0 {
		dy = dy.Reshape(kept(shape, dims)...)
	}
	return dy.Expand(shape...)
}

// Variance returns the unbiased variances of x over dims, or over all dimensions without dims: the
// sums of squared distances from the mean, divided by one less than the number of elements.
func Variance(x *Var, dims ...int) *Var {
	off := tensor.Sub(x.t, tensor.Keep(tensor.Mean, x.t, dims...))
	scale := 1 / float64(max(0, count(x, dims)-1)) // infinite for fewer than two, of which the variance is NaN
	return unary("Variance", x, tensor.Sum(tensor.Mul(off, off), dims...).MulScalar(scale), nil,
		func(dy *tensor.Tensor) *tensor.Tensor {
			return tensor.Mul(off, off.Number(2*scale)).Mul(dy.Reshape(kept(x.Shape(), dims)...))
		}).twice(func(_, dy *Var) []*Var {
		off := Sub(x, Keep(Mean, x, dims...))
		return of(Mul(MulScalar(off, 2*scale), Reshape(dy, kept(x.Shape(), dims)...)))
	})
}

// Std returns the standard deviations of x over dims, the roots of Variance. If all elements are
// equal, the gradient is zero.
func Std(x *Var, dims ...int) *Var { return rooted("Std", Variance(x, dims...)) }

// rooted returns the roots of squares, whose derivative is zero where they are.
func rooted(op string, v *Var) *Var {
	y := tensor.Sqrt(v.t)
	return unary(op, v, y, y, func(dy *tensor.Tensor) *tensor.Tensor {
		return tensor.Where(tensor.Eq(y, y.Number(0)), dy.Number(0), tensor.Div(dy, y).MulScalar(0.5))
	}).twice(func(y, dy *Var) []*Var {
		return of(Where(tensor.Eq(y.t, y.t.Number(0)), dy.like(0), MulScalar(Div(dy, y), 0.5)))
	})
}

// Prod returns the products of x over dims, or over all dimensions without dims.
func Prod(x *Var, dims ...int) *Var {
	return reduction("Prod", x, tensor.Prod, dims, func(y *tensor.Tensor) *tensor.Tensor {
		zeros := tensor.Sum(tensor.Eq(x.t, x.t.Number(0))).Item()
		switch {
		case x.t.Dims() == 0:
			return tensor.Full(x.t.DType(), 1)
		case zeros == 0:
			return tensor.Div(y, x.t)
		case zeros > 1 && len(dims) == 0:
			return x.t.NewZeros(x.t.DType(), x.Shape()...)
		}
		return others(NoGrad(x.t), dims).t
	}).twice(func(_, dy *Var) []*Var {
		if x.t.Dims() == 0 || x.t.Numel() == 0 {
			return of(dy)
		}
		return of(Mul(others(x, dims), Reshape(dy, kept(x.Shape(), dims)...)))
	})
}

// others returns, for each element of x, the product of those that are reduced with it over dims.
func others(x *Var, dims []int) *Var {
	t := x.t
	var stay, gone []int
	for i, size := range kept(t.Shape(), dims) {
		if size == t.Dim(i) && size != 1 {
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

// running returns the running products of rows. Each round doubles how many elements a product has.
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

// Amax returns the greatest elements of x over dims, or over all dimensions without dims. Equal
// elements share the gradient.
func Amax(x *Var, dims ...int) *Var { return shared("Amax", x, tensor.Amax, dims) }

// Amin returns the least elements of x over dims, or over all dimensions without dims. Equal
// elements share the gradient.
func Amin(x *Var, dims ...int) *Var { return shared("Amin", x, tensor.Amin, dims) }

func shared(op string, x *Var, f func(t *tensor.Tensor, dims ...int) *tensor.Tensor, dims []int) *Var {
	share := func(y *tensor.Tensor) *tensor.Tensor {
		same := tensor.Eq(x.t, y).To(x.t.DType())
		return tensor.Div(same, tensor.Keep(tensor.Sum, same, dims...))
	}
	return reduction(op, x, f, dims, share).twice(func(y, dy *Var) []*Var {
		shape := kept(x.Shape(), dims)
		return of(Mul(Const(share(y.t.Reshape(shape...))), Reshape(dy, shape...)))
	})
}

// reduction returns f(x, dims...), whose derivatives are what derive makes of it with the
// dimensions kept.
func reduction(op string, x *Var, f func(t *tensor.Tensor, dims ...int) *tensor.Tensor, dims []int,
	derive func(y *tensor.Tensor) *tensor.Tensor) *Var {
	y := f(x.t, dims...)
	v := made(op, y, x)
	if v.needs {
		v.save(x.t, y)
		v.backward = func(dy *tensor.Tensor) {
			shape := kept(x.Shape(), dims)
			x.add(derive(y.Reshape(shape...)).Mul(dy.Reshape(shape...)))
		}
	}
	return v
}

// CumSum returns the running sums along dim.
func CumSum(x *Var, dim int) *Var {
	return unary("CumSum", x, tensor.CumSum(x.t, dim), nil, func(dy *tensor.Tensor) *tensor.Tensor {
		before := tensor.CumSum(dy, dim).Sub(dy) // and each element goes into all sums but those before it
		return tensor.Sub(tensor.Keep(tensor.Sum, dy, dim), before)
	}).twice(func(_, dy *Var) []*Var { return of(Flip(CumSum(Flip(dy, dim), dim), dim)) })
}
