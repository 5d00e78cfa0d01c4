package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/tensor"
)

// picked returns elements of x that f selects, by indices that are kept: the gradient of an element
// is the sum of those of the places that it was put into. What f does to x it does to the numbers
// of x's elements as well.
func picked(op string, x *Var, f func(t *tensor.Tensor) *tensor.Tensor, indices ...*tensor.Tensor) *Var {
	v := wrap(op, f(x.t), x)
	if v.needs {
		v.save(indices...)
		v.backward = func(dy *tensor.Tensor) {
			n := x.t.Numel()
			from := f(numbered(x.t.Device(), n).Reshape(x.Shape()...))
			dx := dy.NewZeros(dy.DType(), n).IndexAdd(0, from.Reshape(-1), dy.Reshape(-1))
			x.add(dx.Reshape(x.Shape()...))
		}
	}
	return v.twice(func(_, dy *Var) []*Var {
		n := x.t.Numel()
		from := f(numbered(x.t.Device(), n).Reshape(x.Shape()...)).Reshape(-1)
		return of(Reshape(put(op, n, from, Reshape(dy, -1)), x.Shape()...))
	})
}

// put returns n rows of zeros to which rows of x are added, each where idx says: the opposite of
// IndexSelect.
func put(op string, n int, idx *tensor.Tensor, x *Var) *Var {
	shape := slices.Clone(x.Shape())
	shape[0] = n
	rows := x.t.NewZeros(x.t.DType(), shape...).IndexAdd(0, idx, x.t)
	return unary(op, x, rows, idx, func(dy *tensor.Tensor) *tensor.Tensor { return tensor.IndexSelect(dy, 0, idx) }).
		twice(func(_, dy *Var) []*Var { return of(IndexSelect(dy, 0, idx)) })
}

// numbered returns the numbers 0 to n-1.
func numbered(dev tensor.Device, n int) *tensor.Tensor {
	t, err := tensor.On(dev).Arange(tensor.Int64, 0, float64(n), 1)
	if err != nil {
		panic(err)
	}
	return t
}

// Gather returns a value of idx's shape: for each element i of idx (Int64), the element of x at the
// same indices, except that the index along dim is i.
func Gather(x *Var, dim int, idx *tensor.Tensor) *Var {
	return picked("Gather", x, func(t *tensor.Tensor) *tensor.Tensor { return tensor.Gather(t, dim, idx) }, idx)
}

// IndexSelect returns the slices of x along dim that idx (Int64, one dimension) lists.
func IndexSelect(x *Var, dim int, idx *tensor.Tensor) *Var {
	return picked("IndexSelect", x,
		func(t *tensor.Tensor) *tensor.Tensor { return tensor.IndexSelect(t, dim, idx) }, idx)
}

// Index returns x[idx[0], idx[1], ...], as [tensor.Index] does.
func Index(x *Var, idx ...*tensor.Tensor) *Var {
	return picked("Index", x, func(t *tensor.Tensor) *tensor.Tensor { return tensor.Index(t, idx...) }, idx...)
}

// MaskedSelect returns the elements of x where mask (Bool) is true, in one dimension.
func MaskedSelect(x *Var, mask *tensor.Tensor) *Var {
	return picked("MaskedSelect", x,
		func(t *tensor.Tensor) *tensor.Tensor { return tensor.MaskedSelect(t, mask) }, mask)
}

// Max returns the greatest elements along dim, without this dimension, and their indices (Int64).
// Only these elements get the gradient.
func Max(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return extreme("Max", x, dim, tensor.Argmax(x.t, dim))
}

// Min returns the least elements along dim, without this dimension, and their indices (Int64). Only
// these elements get the gradient.
func Min(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return extreme("Min", x, dim, tensor.Argmin(x.t, dim))
}

func extreme(op string, x *Var, dim int, at *tensor.Tensor) (*Var, *tensor.Tensor) {
	return picked(op, x, func(t *tensor.Tensor) *tensor.Tensor {
		if t.Dims() == 0 {
			return t.Clone()
		}
		return tensor.Gather(t, dim, at.Unsqueeze(dim)).Squeeze(dim)
	}, at), at
}

// along returns what gathers the elements at indices along a dimension, of which a single number
// has one here.
func along(dim int, at *tensor.Tensor) func(t *tensor.Tensor) *tensor.Tensor {
	return func(t *tensor.Tensor) *tensor.Tensor {
		if t.Dims() == 0 {
			return t.Clone()
		}
		return tensor.Gather(t, dim, at)
	}
}

// Sort returns the elements sorted along dim, and the indices (Int64) where they were, as
// [tensor.Argsort] has them.
func Sort(x *Var, dim int, descending bool) (values *Var, indices *tensor.Tensor) {
	at := tensor.Argsort(x.t, dim, descending)
	return picked("Sort", x, along(dim, at), at), at
}

// TopK returns the k greatest elements along dim, the greatest first, and the indices (Int64) where
// they were.
func TopK(x *Var, k, dim int) (values *Var, indices *tensor.Tensor) {
	_, at := tensor.TopK(x.t, k, dim)
	return picked("TopK", x, along(dim, at), at), at
}

// ScatterAdd returns x with the elements of src added at the places that idx (Int64) names, as
// [tensor.Tensor.ScatterAdd] does.
func ScatterAdd(x *Var, dim int, idx *tensor.Tensor, src *Var) *Var {
	v := wrap("ScatterAdd", x.t.Clone().ScatterAdd(dim, idx, src.t), x, src)
	if v.needs {
		v.save(idx)
		v.backward = func(dy *tensor.Tensor) {
			x.add(dy)
			src.addPart(idx.Shape(), tensor.Gather(dy, dim, idx))
		}
	}
	return v.twice(func(y, dy *Var) []*Var {
		corner := func(t *tensor.Tensor) *tensor.Tensor { return cornerOf(t, idx.Shape()) }
		return of(dy, whole(y.op, Gather(dy, dim, idx), src.Shape(), corner))
	})
}

// addPart adds a gradient of the first elements along each dimension; the others have none.
func (v *Var) addPart(shape []int, dx *tensor.Tensor) {
	if sameShape(shape, v.Shape()) {
		v.add(dx)
		return
	}
	whole := dx.NewZeros(dx.DType(), v.Shape()...)
	cornerOf(whole, shape).CopyFrom(dx)
	v.add(whole)
}

// cornerOf returns the first elements along each dimension.
func cornerOf(t *tensor.Tensor, shape []int) *tensor.Tensor {
	for d, n := range shape {
		t = t.Narrow(d, 0, n)
	}
	return t
}

// Embedding returns the rows of w, (n, features), that idx lists. idx is Int64 of any shape (...),
// and the result is (..., features). The rows in padding get no gradient. Negative numbers in idx
// and padding count from the end.
func Embedding(w, idx *Var, padding ...int64) *Var {
	want("Embedding", "a weight (n, features)", w, 2)
	padding = fromBothEnds(padding, int64(w.t.Dim(0)))
	flat := owned(idx.t.Reshape(-1))
	rows := tensor.IndexSelect(w.t, 0, flat)
	v := idx.scope.newVar()
	v.quiet = idx.quiet
	v.from("Embedding", []*Var{w})
	v.t = rows.Reshape(append(slices.Clone(idx.Shape()), w.t.Dim(1))...)
	if v.needs {
		v.save(idx.t)
		v.backward = func(dy *tensor.Tensor) {
			dy = dy.Reshape(rows.Shape()...)
			for _, p := range padding {
				dy = tensor.Where(tensor.Eq(flat, tensor.Scalar(tensor.Int64, float64(p))).Unsqueeze(1),
					dy.Number(0), dy)
			}
			w.total().IndexAdd(0, flat, dy)
		}
	}
	return v.twice(func(_, dy *Var) []*Var {
		dy = Reshape(dy, rows.Shape()...)
		for _, p := range padding {
			dy = MaskedFill(dy, tensor.Eq(flat, tensor.Scalar(tensor.Int64, float64(p))).Unsqueeze(1), 0)
		}
		return of(put("Embedding", w.t.Dim(0), flat, dy))
	})
}

// fromBothEnds returns both of the numbers that each row of n has.
func fromBothEnds(padding []int64, n int64) (both []int64) {
	for _, p := range padding {
		if p < -n || p >= n {
			misuse("Embedding with padding %d: there are rows from %d to %d", p, -n, n-1)
		}
		row := (p + n) % n
		both = append(both, row, row-n)
	}
	return both
}
