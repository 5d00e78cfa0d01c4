package autograd

import "github.com/shoal-mp/shoal/tensor"

// owned returns a view as a tensor of its own where it is one of shared memory, whose block it would keep from those
// who wait for it to be closed.
func owned(t *tensor.Tensor) *tensor.Tensor {
	if !t.IsShared() {
		return t
	}
	c := t.Clone()
	t.Close()
	return c
}

// Reshape returns x with another shape of as many elements; one size may be -1.
func Reshape(x *Var, shape ...int) *Var {
	v := wrap("Reshape", owned(x.t.Reshape(shape...)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(dy.Reshape(x.Shape()...)) }
	}
	return v
}

// Flatten returns x, (N, ...), as rows: (N, features).
func Flatten(x *Var) *Var {
	if x.t.Dims() == 0 {
		return Reshape(x, 1)
	}
	n := x.t.Dim(0)
	return Reshape(x, n, x.t.Numel()/max(n, 1))
}

// Permute returns x with its dimensions in another order.
func Permute(x *Var, dims ...int) *Var {
	v := wrap("Permute", owned(x.t.Permute(dims...)), x)
	if v.needs {
		back := make([]int, len(dims))
		for i, d := range dims {
			if d < 0 {
				d += len(dims)
			}
			back[d] = i
		}
		v.backward = func(dy *tensor.Tensor) { x.add(dy.Permute(back...)) }
	}
	return v
}

// Transpose returns x with two dimensions exchanged.
func Transpose(x *Var, a, b int) *Var {
	v := wrap("Transpose", owned(x.t.Transpose(a, b)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(dy.Transpose(a, b)) }
	}
	return v
}

// Select returns the part of x at index i of a dimension, which disappears.
func Select(x *Var, dim, i int) *Var {
	return part("Select", x, func(t *tensor.Tensor) *tensor.Tensor { return t.Select(dim, i) })
}

// Narrow returns n indices of a dimension of x, from start on.
func Narrow(x *Var, dim, start, n int) *Var {
	return part("Narrow", x, func(t *tensor.Tensor) *tensor.Tensor { return t.Narrow(dim, start, n) })
}

// part returns what view sees of x; the gradient of the rest is zero.
func part(op string, x *Var, view func(*tensor.Tensor) *tensor.Tensor) *Var {
	v := wrap(op, owned(view(x.t)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			dx := tensor.New(x.t.DType(), x.Shape()...)
			view(dx).CopyFrom(dy)
			x.add(dx)
		}
	}
	return v
}

// Cat joins values along a dimension.
func Cat(dim int, xs ...*Var) *Var {
	ts := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		ts[i] = x.t
	}
	v := wrap("Cat", tensor.Cat(ts, dim), xs...)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			start := 0
			for _, x := range xs {
				n := x.t.Dim(dim)
				x.add(dy.Narrow(dim, start, n))
				start += n
			}
		}
	}
	return v
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
