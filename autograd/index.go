package autograd

import (
	"github.com/shoal-mp/shoal/tensor"
)

// A picker selects elements of t by indices. It must only depend on positions, because it is
// applied both to a value and to the numbers of the value's elements.
type picker func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor

// pickElements returns the elements of x that f selects along dim by the indices. The gradient of
// an element is the sum over all of its copies.
func pickElements(op string, x *Var, f picker, dim int, indices ...*tensor.Tensor) *Var {
	v := x.scope.newVar()
	v.recordOp(op, []*Var{x})
	v.saveTensors(indices...)
	v.t = v.ownTensor(f(x.t, dim, v.saved))
	v.note.pick, v.note.place[0] = f, dim
	if !v.needs {
		v.saved = nil
	}
	return v.setRule(pickedTwice)
}

func pickedTwice(y, dy *Var) derivatives {
	x, n := y.inputs[0], y.inputs[0].t.Numel()
	numbers := Reshape(dy.wrapConst(indexRange(x.t.Device(), n)), x.Shape()...)
	from := Reshape(dy.wrapConst(y.note.pick(numbers.t, y.note.place[0], y.saved)), -1)
	return derivativesOf(Reshape(scatterRows(y.op, n, from.t, Reshape(dy, -1)), x.Shape()...))
}

// scatterRows adds the rows of x to a tensor of n rows of zeros, at the indices idx: the inverse of
// IndexSelect.
func scatterRows(op string, n int, idx *tensor.Tensor, x *Var) *Var {
	var room [2 * maxDims]int
	shape := append(room[:0], x.Shape()...)
	shape[0] = n
	rows := x.t.NewZeros(x.t.DType(), shape...).IndexAddInPlace(0, idx, x.t)
	return wrapOwned(op, rows, x).saveIfNeeded(idx).
		setRule(func(y, dy *Var) derivatives { return derivativesOf(IndexSelect(dy, 0, y.saved[0].t)) })
}

// indexRange returns an Int64 tensor of the numbers 0 to n-1 on dev, or on the heap if dev is
// nil.
func indexRange(dev tensor.Device, n int) *tensor.Tensor {
	if dev == nil {
		return tensor.Arange(tensor.Int64, 0, float64(n), 1)
	}
	t, err := tensor.On(dev).Arange(tensor.Int64, 0, float64(n), 1)
	must(err)
	return t
}

// Gather returns a value of idx's shape. For each element i of idx, which must be Int64, it takes
// the element of x at the same indices, except that the index along dim is i. idx must stay open
// and unchanged until Backward. Gather panics on an invalid index, as [tensor.Gather] does.
func Gather(x *Var, dim int, idx *tensor.Tensor) *Var {
	return pickElements("Gather", x, func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
		return tensor.Gather(t, dim, idx[0].t)
	}, dim, idx)
}

// IndexSelect returns the slices of x along dim that idx lists. idx must be Int64 with one
// dimension, and must stay open and unchanged until Backward. IndexSelect panics on an invalid
// index, as [tensor.IndexSelect] does.
func IndexSelect(x *Var, dim int, idx *tensor.Tensor) *Var {
	return pickElements("IndexSelect", x, func(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
		return tensor.IndexSelect(t, dim, idx[0].t)
	}, dim, idx)
}

// Index returns x[idx[0], idx[1], ...]; see [tensor.Index]. The index tensors must stay open and
// unchanged until Backward.
func Index(x *Var, idx ...*tensor.Tensor) *Var {
	return pickElements("Index", x, func(t *tensor.Tensor, _ int, idx []saved) *tensor.Tensor {
		all := make([]*tensor.Tensor, len(idx))
		for i := range idx {
			all[i] = idx[i].t
		}
		return tensor.Index(t, all...)
	}, 0, idx...)
}

// MaskedSelect returns the elements of x where mask is true, in one dimension. mask must be Bool.
// It must stay open and unchanged until Backward.
func MaskedSelect(x *Var, mask *tensor.Tensor) *Var {
	return pickElements("MaskedSelect", x, func(t *tensor.Tensor, _ int, idx []saved) *tensor.Tensor {
		return tensor.MaskedSelect(t, idx[0].t)
	}, 0, mask)
}

// Max returns the maxima along dim, without this dimension, and their Int64 indices. Only the
// selected elements get the gradient. The caller must not close the indices: they belong to the
// [Scope] of x, or to the garbage collector without one.
func Max(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return selectExtremes("Max", x, dim, x.ownTensor(tensor.Argmax(x.t, dim)))
}

// Min returns the minima along dim, without this dimension, and their Int64 indices. Only the
// selected elements get the gradient. The caller must not close the indices; see [Max].
func Min(x *Var, dim int) (values *Var, indices *tensor.Tensor) {
	return selectExtremes("Min", x, dim, x.ownTensor(tensor.Argmin(x.t, dim)))
}

func selectExtremes(op string, x *Var, dim int, at *tensor.Tensor) (*Var, *tensor.Tensor) {
	if x.t.Dims() == 0 {
		return pickElements(op, x, gatherAlong, dim, at), at
	}
	wide := Unsqueeze(x.scope.Const(at), dim)
	return Reshape(pickElements(op, x, gatherAlong, dim, wide.t), at.Shape()...), at
}

// gatherAlong gathers elements along a dimension. A scalar has one dimension here.
func gatherAlong(t *tensor.Tensor, dim int, idx []saved) *tensor.Tensor {
	if t.Dims() == 0 {
		return t.Clone()
	}
	return tensor.Gather(t, dim, idx[0].t)
}

// Sort returns the elements sorted along dim, and their original Int64 indices; see
// [tensor.Argsort]. The caller must not close the indices; see [Max].
func Sort(x *Var, dim int, descending bool) (values *Var, indices *tensor.Tensor) {
	at := x.ownTensor(tensor.Argsort(x.t, dim, descending))
	return pickElements("Sort", x, gatherAlong, dim, at), at
}

// TopK returns the k largest elements along dim in descending order, and their Int64 indices. k
// must not be negative or exceed the size of dim. The caller must not close the indices; see
// [Max].
func TopK(x *Var, k, dim int) (values *Var, indices *tensor.Tensor) {
	at := x.ownTensor(tensor.Argsort(x.t, dim, true))
	if n := max(1, x.t.Dims()); k < 0 || k > 1 && x.t.Dims() == 0 || x.t.Dims() == n && k > x.t.Dim(dim) {
		tensor.TopK(x.t, k, dim) // panics
	}
	if x.t.Dims() > 0 {
		at = Narrow(x.scope.NoGrad(at), dim, 0, k).t
	}
	return pickElements("TopK", x, gatherAlong, dim, at), at
}

// ScatterAdd returns x with the elements of src added at the positions in idx, which must be
// Int64; see [tensor.Tensor.ScatterAddInPlace]. idx must stay open and unchanged until Backward.
func ScatterAdd(x *Var, dim int, idx *tensor.Tensor, src *Var) *Var {
	v := wrapOwned("ScatterAdd", x.t.Clone().ScatterAddInPlace(dim, idx, src.t), x, src).saveIfNeeded(idx)
	v.note.place[0] = dim
	return v.setRule(func(y, dy *Var) derivatives {
		idx, src := y.saved[0].t, y.inputs[1]
		return derivativesOf(dy, padToShape(y.op, Gather(dy, y.note.place[0], idx), src.Shape()))
	})
}

// padToShape returns x padded with zeros at the end of each dimension to the given shape.
func padToShape(op string, x *Var, shape []int) *Var {
	for d, n := range shape {
		if n != x.t.Dim(d) {
			var room [2 * maxDims]int
			wide := append(room[:0], x.Shape()...)
			wide[d] = n
			x = embedPart(op, x, wide, slab{dim: d, count: x.t.Dim(d), step: 1})
		}
	}
	return x
}

// Embedding returns the rows of w, (n, features), that idx lists. idx must be Int64, with any
// shape (...) and numbers from 0 to n-1. The result is (..., features). The rows in padding get
// no gradient; a negative number in padding counts from the end. Embedding panics with
// [tensor.ErrIndex] if a number or a padding row is out of range.
func Embedding(w, idx *Var, padding ...int64) *Var {
	requireDims("Embedding", "a weight (n, features)", w, 2)
	v := idx.scope.newVar()
	v.quiet = idx.quiet
	v.recordOp("Embedding", []*Var{w})
	v.ensurePlan().unlearned = indicesFromBothEnds(padding, int64(w.t.Dim(0)))
	rows := v.ownTensor(tensor.IndexSelect(w.t, 0, Reshape(idx, -1).t))
	var room [2 * maxDims]int
	v.t = Reshape(idx.scope.NoGrad(rows), append(append(room[:0], idx.Shape()...), w.t.Dim(1))...).t
	return v.saveIfNeeded(idx.t).setDerivatives(embeddingBackward, embeddingTwice)
}

func embeddingBackward(y *Var, dy *tensor.Tensor) {
	s, w := y.scope, y.inputs[0]
	flat := Reshape(s.NoGrad(y.saved[0].t), -1)
	rows := zeroPaddingRows(y, flat.t, Reshape(s.NoGrad(dy), flat.t.Numel(), w.t.Dim(1)))
	w.gradientSum().IndexAddInPlace(0, flat.t, rows.t)
}

func embeddingTwice(y, dy *Var) derivatives {
	w := y.inputs[0]
	flat := Reshape(dy.scope.NoGrad(y.saved[0].t), -1)
	rows := zeroPaddingRows(y, flat.t, Reshape(dy, flat.t.Numel(), w.t.Dim(1)))
	return derivativesOf(scatterRows("Embedding", w.t.Dim(0), flat.t, rows))
}

// zeroPaddingRows returns the gradients of rows, set to zero for an embedding's padding rows.
func zeroPaddingRows(y *Var, flat *tensor.Tensor, rows *Var) *Var {
	for _, p := range y.ensurePlan().unlearned {
		rows = MaskedFill(rows, applyNumber(tensor.Eq, flat, float64(p)).Unsqueeze(1), 0)
	}
	return rows
}

// indicesFromBothEnds returns both numbers of each padding row of n rows: counted from the start
// and from the end. It panics with [tensor.ErrIndex] if there is no such row.
func indicesFromBothEnds(padding []int64, n int64) (both []int64) {
	for _, p := range padding {
		if p < -n || p >= n {
			misuse(tensor.ErrIndex, "Embedding: got padding row %d, want %d to %d", p, -n, n-1)
		}
		row := (p + n) % n
		both = append(both, row, row-n)
	}
	return both
}
