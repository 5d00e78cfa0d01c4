package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// Keep returns f(x, dims...) with the dimensions that f reduces kept, with size 1.
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

// Sum returns the sum of x over dims, which disappear, or over all dimensions if there are none.
func Sum(x *Var, dims ...int) *Var {
	if len(dims) == 0 {
		dims = allDims(x)
	}
	v := wrap("Sum", sumOver(x.t, dims), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(stretch(dy, x.Shape(), dims)) }
	}
	return v
}

// Mean returns the mean of x over dims, which disappear, or over all dimensions if there are none.
func Mean(x *Var, dims ...int) *Var {
	if len(dims) == 0 {
		dims = allDims(x)
	}
	n := 1
	for _, d := range dims {
		n *= x.t.Dim(d)
	}
	return MulScalar(Sum(x, dims...), 1/float64(n))
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
	kept := append([]int(nil), shape...)
	for _, d := range dims {
		if d < 0 {
			d += len(shape)
		}
		kept[d] = 1
	}
	return dy.Reshape(kept...).Expand(shape...)
}

// Variance returns the variances of x over dims, which disappear, or over all dimensions if there are none: the mean squares
// of what Mean leaves, but divided by one less than their number.
func Variance(x *Var, dims ...int) *Var {
	off := Sub(x, Keep(Mean, x, dims...))
	squares := Sum(Mul(off, off), dims...)
	return MulScalar(squares, 1/float64(x.t.Numel()/max(1, squares.t.Numel())-1))
}

// Std returns the standard deviations of x over dims, the roots of Variance.
func Std(x *Var, dims ...int) *Var { return Sqrt(Variance(x, dims...)) }

// Prod returns the products of x over dims, which disappear, or over all dimensions if there are none.
func Prod(x *Var, dims ...int) *Var {
	return reduction("Prod", x, tensor.Prod, dims, func(y *tensor.Tensor) *tensor.Tensor {
		zero := tensor.Eq(x.t, x.t.Number(0)) // where y, divided by x, is not the product of the others
		others := tensor.Keep(tensor.Prod, tensor.Where(zero, x.t.Number(1), x.t), dims...)
		zeros := tensor.Keep(tensor.Sum, zero, dims...)
		only := tensor.Mul(others, tensor.Eq(zeros, zeros.Number(1)).To(x.t.DType()))
		return tensor.Where(zero, only, tensor.Div(y, x.t))
	})
}

// Amax returns the greatest elements of x over dims, which disappear, or over all dimensions if there are none. Equal
// ones share the gradient.
func Amax(x *Var, dims ...int) *Var { return shared("Amax", x, tensor.Amax, dims) }

// Amin returns the least elements of x over dims, which disappear, or over all dimensions if there are none. Equal ones
// share the gradient.
func Amin(x *Var, dims ...int) *Var { return shared("Amin", x, tensor.Amin, dims) }

func shared(op string, x *Var, f func(t *tensor.Tensor, dims ...int) *tensor.Tensor, dims []int) *Var {
	return reduction(op, x, f, dims, func(y *tensor.Tensor) *tensor.Tensor {
		same := tensor.Eq(x.t, y).To(x.t.DType())
		return tensor.Div(same, tensor.Keep(tensor.Sum, same, dims...))
	})
}

// reduction returns f(x, dims...), whose derivatives are what derive makes of it with the dimensions kept.
func reduction(op string, x *Var, f func(t *tensor.Tensor, dims ...int) *tensor.Tensor, dims []int, derive func(y *tensor.Tensor) *tensor.Tensor) *Var {
	y := f(x.t, dims...)
	v := wrap(op, y, x)
	if v.needs {
		v.save(x.t, y)
		v.backward = func(dy *tensor.Tensor) {
			shape := kept(x.Shape(), dims)
			x.add(derive(y.Reshape(shape...)).Mul(dy.Reshape(shape...)))
		}
	}
	return v
}

// CumSum returns the running sums along a dimension.
func CumSum(x *Var, dim int) *Var {
	return unary("CumSum", x, tensor.CumSum(x.t, dim), nil, func(dy *tensor.Tensor) *tensor.Tensor {
		before := tensor.CumSum(dy, dim).Sub(dy) // and each element goes into all sums but those before it
		return tensor.Sub(tensor.Keep(tensor.Sum, dy, dim), before)
	})
}
