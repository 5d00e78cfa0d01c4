package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// owned returns a view as a tensor of its own where it is one of the host's shared memory, whose
// block it would keep from those who wait for it to be closed.
func owned(t *tensor.Tensor) *tensor.Tensor {
	if !t.IsShared() || t.Device() != nil {
		return t
	}
	c := t.Clone()
	t.Close()
	return c
}

// Reshape returns x with another shape of as many elements. One size may be -1, which stands for
// the rest.
func Reshape(x *Var, shape ...int) *Var {
	v := wrap("Reshape", x.reshaped(shape), x)
	if v.needs {
		v.derive = reshapeBackward
	}
	return v.twice(func(y, dy *Var) []*Var { return of(Reshape(dy, y.inputs[0].Shape()...)) })
}

func reshapeBackward(y *Var, dy *tensor.Tensor) {
	y.inputs[0].write(func(dx *tensor.Tensor) {
		dispatch(y.op, y, copyData[float32], copyData[float64], copyOn)(dx, dy)
	})
}

func copyOn(to, from *tensor.Tensor) { to.CopyFrom(from.View(to.Shape()...)) }

// copyData copies the elements of a contiguous tensor to one of another shape.
func copyData[F kernel.Float](to, from *tensor.Tensor) { copy(data[F](to), data[F](from)) }

// reshaped returns the value with another shape. A Scope keeps the views of what it lends, since it
// lends it again. Those of other tensors on the heap, such as batches, last until Reset.
func (v *Var) reshaped(shape []int) *tensor.Tensor {
	switch {
	case v.lent && len(shape) <= maxDims:
	case v.scope != nil && !v.t.IsShared():
		return v.scope.look(v.t, shape)
	default:
		return owned(v.t.Reshape(shape...))
	}
	key := look{v.t, formOf(nil, v.t.DType(), shape)}
	t := v.scope.views[key]
	if t == nil {
		t = v.t.Reshape(shape...)
		v.scope.views[key] = t
	}
	return t
}

// Squeeze returns x without those of dims that have size 1; without dims, of all dimensions.
func Squeeze(x *Var, dims ...int) *Var {
	squeezed := x.t.Squeeze(dims...)
	defer squeezed.Close()
	return Reshape(x, squeezed.Shape()...)
}

// Unsqueeze returns x with a new dimension dim of size 1.
func Unsqueeze(x *Var, dim int) *Var {
	unsqueezed := x.t.Unsqueeze(dim)
	defer unsqueezed.Close()
	return Reshape(x, unsqueezed.Shape()...)
}

// Expand returns x broadcast to a shape. A size of -1 keeps x's.
func Expand(x *Var, shape ...int) *Var {
	v := wrap("Expand", owned(x.t.Expand(shape...)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(dy) }
	}
	return v.twice(same)
}

// Flatten returns x, (N, ...), as rows: (N, features).
func Flatten(x *Var) *Var {
	if x.t.Dims() == 0 {
		return Reshape(x, 1)
	}
	features := 1
	for _, n := range x.Shape()[1:] {
		features *= n
	}
	return Reshape(x, x.t.Dim(0), features)
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
		v.again = func(_, dy *Var) []*Var { return of(Permute(dy, back...)) }
	}
	return v
}

// Transpose returns x with two dimensions exchanged.
func Transpose(x *Var, a, b int) *Var {
	v := wrap("Transpose", owned(x.t.Transpose(a, b)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) { x.add(dy.Transpose(a, b)) }
	}
	return v.twice(func(_, dy *Var) []*Var { return of(Transpose(dy, a, b)) })
}

// Flip returns x with its elements in reverse order along dims, as [tensor.Flip] does.
func Flip(x *Var, dims ...int) *Var {
	v := made("Flip", tensor.Flip(x.t, dims...), x)
	if v.needs {
		dims = slices.Clone(dims)
		v.backward = func(dy *tensor.Tensor) { x.add(tensor.Flip(dy, dims...)) }
		v.again = func(_, dy *Var) []*Var { return of(Flip(dy, dims...)) }
	}
	return v
}

// Select returns the part of x at index i of dim, without this dimension.
func Select(x *Var, dim, i int) *Var {
	return part("Select", x, func(t *tensor.Tensor) *tensor.Tensor { return t.Select(dim, i) })
}

// Narrow returns the indices start to start+n-1 of x along dim.
func Narrow(x *Var, dim, start, n int) *Var {
	return part("Narrow", x, func(t *tensor.Tensor) *tensor.Tensor { return t.Narrow(dim, start, n) })
}

// Slice returns every step-th index of x along dim, beginning with from and below to, as
// [tensor.Tensor.Slice] does.
func Slice(x *Var, dim, from, to, step int) *Var {
	return part("Slice", x, func(t *tensor.Tensor) *tensor.Tensor { return t.Slice(dim, from, to, step) })
}

// Split returns parts of x with size indices along dim each; the last may have fewer.
func Split(x *Var, size, dim int) []*Var {
	if size < 1 {
		misuse("Split into parts of %d: want at least 1", size)
	}
	var parts []*Var
	for at := 0; at < x.t.Dim(dim) || at == 0; at += size {
		parts = append(parts, Narrow(x, dim, at, min(size, x.t.Dim(dim)-at)))
	}
	return parts
}

// part returns what view sees of x; the gradient of the rest is zero.
func part(op string, x *Var, view func(*tensor.Tensor) *tensor.Tensor) *Var {
	v := wrap(op, owned(view(x.t)), x)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			if x.wanted() {
				seen := view(x.total())
				seen.Add(dy)
				seen.Close()
			}
		}
	}
	return v.twice(func(y, dy *Var) []*Var { return of(whole(y.op, dy, y.inputs[0].Shape(), view)) })
}

// whole returns zeros of a shape, in which what view sees is x: the opposite of part.
func whole(op string, x *Var, shape []int, view func(*tensor.Tensor) *tensor.Tensor) *Var {
	all := x.t.NewZeros(x.t.DType(), shape...)
	view(all).CopyFrom(x.t)
	return unary(op, x, all, nil, view).twice(func(y, dy *Var) []*Var { return of(part(op, dy, view)) })
}

// Cat returns the values one after another along dim. Their other dimensions must be equal.
func Cat(dim int, xs ...*Var) *Var {
	ts := make([]*tensor.Tensor, len(xs))
	for i, x := range xs {
		ts[i] = x.t
	}
	v := made("Cat", tensor.Cat(dim, ts...), xs...)
	if v.needs {
		v.backward = func(dy *tensor.Tensor) {
			start := 0
			for _, x := range xs {
				if x.t.Dims() == 1 && x.t.Dim(0) == 0 { // which Cat passes over, whatever the others' shape
					continue
				}
				n := x.t.Dim(dim)
				x.add(dy.Narrow(dim, start, n))
				start += n
			}
		}
	}
	return v.twice(func(y, dy *Var) []*Var {
		parts, start := make([]*Var, len(y.inputs)), 0
		for i, x := range y.inputs {
			if x.t.Dims() != 1 || x.t.Dim(0) != 0 {
				parts[i] = Narrow(dy, dim, start, x.t.Dim(dim))
				start += x.t.Dim(dim)
			}
		}
		return parts
	})
}

// Stack returns the values, which must have the same shape, along a new dimension dim.
func Stack(dim int, xs ...*Var) *Var {
	wide := make([]*Var, len(xs))
	for i, x := range xs {
		wide[i] = Unsqueeze(x, dim)
	}
	return Cat(dim, wide...)
}
