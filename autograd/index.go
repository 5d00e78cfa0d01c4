package autograd

import (
	"github.com/shoal-mp/shoal/tensor"
)

// A picker selects elements of t by indices. What it does to a value it does to the numbers of the
// value's elements as well.
type picker func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor

// picked returns elements of x that f selects: the gradient of an element is the sum of those of
// the places that it was put into.
func picked(op string, x *Var, f picker, dim int, indices ...*tensor.Tensor) *Var {
	v := x.scope.newVar()
	v.from(op, []*Var{x})
	v.save(indices...)
	v.t = v.own(f(x.t, dim, v.saved))
	v.note.pick, v.note.place[0] = f, dim
	if !v.needs {
		v.saved = nil
	}
	return v.twice(pickedTwice)
}

func pickedTwice(y, dy *Var) derivatives {
	x, n := y.inputs[0], y.inputs[0].t.Numel()
	numbers := Reshape(dy.constant(numbered(x.t.Device(), n)), x.Shape()...)
	from := Reshape(dy.constant(y.note.pick(numbers.t, y.note.place[0], y.saved)), -1)
	return of(Reshape(put(y.op, n, from.t, Reshape(dy, -1)), x.Shape()...))
}

// put returns n rows of zeros to which rows of x are added, each where idx says: the opposite of
// IndexSelect.
func put(op string, n int, idx *tensor.Tensor, x *Var) *Var {
	var room [2 * maxDims]int
	shape := append(room[:0], x.Shape()...)
	shape[0] = n
	rows := x.t.NewZeros(x.t.DType(), shape...).IndexAdd(0, idx, x.t)
	return made(op, rows, x).reads(idx).
		twice(func(y, dy *Var) derivatives { return of(IndexSelect(dy, 0, y.saved[0].t)) })
}

// numbered returns the numbers 0 to n-1.
func numbered(dev tensor.Device, n int) *tensor.Tensor {
	if dev == nil {
		return tensor.Arange(tensor.Int64, 0, float64(n), 1)
	}
	t, err := tensor.On(dev).Arange(tensor.Int64, 0, float64(n), 1)
	must(err)
	return t
}

// Gather returns a value of idx's shape: for each element i of idx (Int64), the element of x at the
// same indices, except that the index along dim is i.
func Gather(x *Var, dim int, idx *tensor.Tensor) *Var {
	return picked("Gather", x, func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
		return tensor.Gather(t, dim, idx[0].t)
	}, dim, idx)
}

// IndexSelect returns the slices of x along dim that idx (Int64, one dimension) lists.
func IndexSelect(x *Var, dim int, idx *tensor.Tensor) *Var {
	return picked("IndexSelect", x, func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
		return tensor.IndexSelect(t, dim, idx[0].t)
	}, dim, idx)
}

// Index returns x[idx[0], idx[1], ...], as [tensor.Index] does.
func Index(x *Var, idx ...*tensor.Tensor) *Var {
	return picked("Index", x, func(t *tensor.Tensor, _ int, idx []saved) *tensor.Tensor {
		all := make([]*tensor.Tensor, len(idx))
		for i := range idx {
			all[i] = idx[i].t
		}
		return tensor.Index(t, all...)
	}, 0, idx...)
}

// MaskedSelect returns the elements of x where mask (Bool) is true, in one dimension.
func MaskedSelect(x *Var, mask *tensor.Tensor) *Var {
	return picked("MaskedSelect", x, func(t *tensor.Tensor, _ int, idx []saved) *tensor.Tensor {
		return tensor.MaskedSelect(t, idx[0].t)
	}, 0, mask)
}

// Max returns the greatest elements along dim, without this dimension, and their indices (Int64).
// Only these elements get the gradient.
func Max(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return extreme("Max", x, dim, x.own(tensor.Argmax(x.t, dim)))
}

// Min returns the least elements along dim, without this dimension, and their indices (Int64). Only
// these elements get the gradient.
func Min(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return extreme("Min", x, dim, x.own(tensor.Argmin(x.t, dim)))
}

func extreme(op string, x *Var, dim int, at *tensor.Tensor) (*Var, *tensor.Tensor) {
	if x.t.Dims() == 0 {
		return picked(op, x, along, dim, at), at
	}
	wide := Unsqueeze(x.scope.Const(at), dim)
	return Reshape(picked(op, x, along, dim, wide.t), at.Shape()...), at
}

// along gathers the elements at indices along a dimension, of which a single number has one here.
func along(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
	if t.Dims() == 0 {
		return t.Clone()
	}
	return tensor.Gather(t, dim, idx[0].t)
}

// Sort returns the elements sorted along dim, and the indices (Int64) where they were, as
// [tensor.Argsort] has them.
func Sort(x *Var, dim int, descending bool) (values *Var, indices *tensor.Tensor) {
	at := x.own(tensor.Argsort(x.t, dim, descending))
	return picked("Sort", x, along, dim, at), at
}

// TopK returns the k greatest elements along dim, the greatest first, and the indices (Int64) where
// they were.
func TopK(x *Var, k, dim int) (values *Var, indices *tensor.Tensor) {
	at := x.own(tensor.Argsort(x.t, dim, true))
	if n := max(1, x.t.Dims()); k < 0 || k > 1 && x.t.Dims() == 0 || x.t.Dims() == n && k > x.t.Dim(dim) {
		tensor.TopK(x.t, k, dim) // which panics
	}
	if x.t.Dims() > 0 {
		at = Narrow(x.scope.NoGrad(at), dim, 0, k).t
	}
	return picked("TopK", x, along, dim, at), at
}

// ScatterAdd returns x with the elements of src added at the places that idx (Int64) names, as
// [tensor.Tensor.ScatterAdd] does.
func ScatterAdd(x *Var, dim int, idx *tensor.Tensor, src *Var) *Var {
	v := made("ScatterAdd", x.t.Clone().ScatterAdd(dim, idx, src.t), x, src).reads(idx)
	v.note.place[0] = dim
	return v.twice(func(y, dy *Var) derivatives {
		idx, src := y.saved[0].t, y.inputs[1]
		return of(dy, corner(y.op, Gather(dy, y.note.place[0], idx), src.Shape()))
	})
}

// corner returns zeros of a shape, of which the first elements along each dimension are x.
func corner(op string, x *Var, shape []int) *Var {
	for d, n := range shape {
		if n != x.t.Dim(d) {
			var room [2 * maxDims]int
			wide := append(room[:0], x.Shape()...)
			wide[d] = n
			x = whole(op, x, wide, slab{dim: d, count: x.t.Dim(d), step: 1})
		}
	}
	return x
}

// Embedding returns the rows of w, (n, features), that idx lists. idx is Int64 of any shape (...),
// and the result is (..., features). The rows in padding get no gradient. Negative numbers in idx
// and padding count from the end.
func Embedding(w, idx *Var, padding ...int64) *Var {
	want("Embedding", "a weight (n, features)", w, 2)
	v := idx.scope.newVar()
	v.quiet = idx.quiet
	v.from("Embedding", []*Var{w})
	v.plans().unlearned = fromBothEnds(padding, int64(w.t.Dim(0)))
	rows := v.own(tensor.IndexSelect(w.t, 0, Reshape(idx, -1).t))
	var room [2 * maxDims]int
	v.t = Reshape(idx.scope.NoGrad(rows), append(append(room[:0], idx.Shape()...), w.t.Dim(1))...).t
	return v.reads(idx.t).derived(embeddingBackward, embeddingTwice)
}

func embeddingBackward(y *Var, dy *tensor.Tensor) {
	s, w := y.scope, y.inputs[0]
	flat := Reshape(s.NoGrad(y.saved[0].t), -1)
	rows := unpadded(y, flat.t, Reshape(s.NoGrad(dy), flat.t.Numel(), w.t.Dim(1)))
	w.total().IndexAdd(0, flat.t, rows.t)
}

func embeddingTwice(y, dy *Var) derivatives {
	w := y.inputs[0]
	flat := Reshape(dy.scope.NoGrad(y.saved[0].t), -1)
	rows := unpadded(y, flat.t, Reshape(dy, flat.t.Numel(), w.t.Dim(1)))
	return of(put("Embedding", w.t.Dim(0), flat.t, rows))
}

// unpadded returns gradients of rows, with zeros for those in an embedding's padding.
func unpadded(y *Var, flat *tensor.Tensor, rows *Var) *Var {
	for _, p := range y.plans().unlearned {
		rows = MaskedFill(rows, with(tensor.Eq, flat, float64(p)).Unsqueeze(1), 0)
	}
	return rows
}

// fromBothEnds returns both of the numbers that each row of n has.
func fromBothEnds(padding []int64, n int64) (both []int64) {
	for _, p := range padding {
		if p < -n || p >= n {
			misuse(tensor.ErrIndex, "Embedding with padding %d: there are rows from %d to %d", p, -n, n-1)
		}
		row := (p + n) % n
		both = append(both, row, row-n)
	}
	return both
}
