package tensor

import (
	"math"
	"runtime"
	"slices"
)

// Cat returns the tensors one after another along a dimension. Their dtypes are promoted, and their other dimensions
// are equal.
func Cat(ts []*Tensor, dim int) *Tensor {
	if len(ts) == 0 {
		misuse("Cat of no tensors")
	}
	dim = ts[0].axis(dim)
	shape, dt := slices.Clone(ts[0].shape), ts[0].dtype
	shape[dim] = 0
	for _, t := range ts {
		dt = Promote(dt, t.dtype)
		if len(t.shape) != len(shape) || !slices.Equal(without(t.shape, dim), without(shape, dim)) {
			misuse("Cat of shapes %v and %v along dimension %d", ts[0].shape, t.shape, dim)
		}
		shape[dim] += t.shape[dim]
	}
	out := New(dt, shape...)
	at := 0
	for _, t := range ts {
		out.peek(t.shape, out.strides, at*out.strides[dim]).CopyFrom(t)
		at += t.shape[dim]
	}
	return out
}

// Stack returns the tensors, which are of one shape, along a new dimension.
func Stack(ts []*Tensor, dim int) *Tensor {
	if len(ts) == 0 {
		misuse("Stack of no tensors")
	}
	dim = wrap(dim, len(ts[0].shape)+1, "dimension")
	dt := ts[0].dtype
	for _, t := range ts {
		dt = Promote(dt, t.dtype)
		if !slices.Equal(t.shape, ts[0].shape) {
			misuse("Stack of shapes %v and %v", ts[0].shape, t.shape)
		}
	}
	out := New(dt, slices.Insert(slices.Clone(ts[0].shape), dim, len(ts))...)
	for i, t := range ts {
		out.peek(t.shape, without(out.strides, dim), i*out.strides[dim]).CopyFrom(t)
	}
	return out
}

// Gather returns, for each element of idx (Int64), the element of t at the same indices but that along dim, which the
// element says. Other dimensions of idx are at most as large as t's.
func Gather(t *Tensor, dim int, idx *Tensor) *Tensor {
	idx.want(Int64)
	dim = t.axis(dim)
	if len(idx.shape) != len(t.shape) {
		misuse("Gather from %v by indices of %v: want as many dimensions", t.shape, idx.shape)
	}
	step := t.strides[dim]
	strides := slices.Clone(t.strides)
	strides[dim] = 0
	for d, n := range idx.shape {
		if d != dim && n > t.shape[d] {
			misuse("Gather from %v by indices of %v along dimension %d", t.shape, idx.shape, dim)
		}
	}
	out := New(t.dtype, idx.shape...)
	w := newWalk(out, []*Tensor{idx, t.peek(idx.shape, strides, t.offset)})
	row := w.dims[len(w.dims)-1]
	size, src, dst, index := t.dtype.Size(), t.bytes(), out.bytes(), typed[int64](idx.bytes())
	w.rows(func(at [4]int) {
		for i := range row.size {
			k := wrap(int(index[at[0]+i*row.steps[0]]), t.shape[dim], "Gather index")
			from := at[1] + i*row.steps[1] + k*step
			to := at[output] + i*row.steps[output]
			copy(dst[to*size:(to+1)*size], src[from*size:])
		}
	})
	runtime.KeepAlive(t)
	runtime.KeepAlive(idx)
	return out
}

// IndexSelect returns the indices of a dimension that idx (Int64, one dimension) lists.
func IndexSelect(t *Tensor, dim int, idx *Tensor) *Tensor {
	idx.want(Int64)
	dim = t.axis(dim)
	if len(idx.shape) != 1 {
		misuse("IndexSelect by indices of shape %v: want one dimension", idx.shape)
	}
	shape := slices.Clone(t.shape)
	shape[dim] = idx.shape[0]
	out := New(t.dtype, shape...)
	for i := range idx.shape[0] {
		k := wrap(int(At[int64](idx, i)), t.shape[dim], "IndexSelect index")
		from := t.peek(without(t.shape, dim), without(t.strides, dim), t.offset+k*t.strides[dim])
		out.peek(from.shape, without(out.strides, dim), i*out.strides[dim]).CopyFrom(from)
	}
	runtime.KeepAlive(t)
	return out
}

// Equal reports whether a and b have one shape and equal elements. NaN equals nothing.
func Equal(a, b *Tensor) bool {
	return slices.Equal(a.shape, b.shape) && At[bool](All(Eq(a, b)))
}

// AllClose reports whether all |a-b| <= atol + rtol*|b|. NaN is close to nothing; infinities are close to themselves.
func AllClose(a, b *Tensor, rtol, atol float64) bool {
	dt := Promote(promote(a, b), Float64)
	a, b = a.apartAs(dt), b.apartAs(dt)
	limit := Abs(b).MulScalar(rtol).AddScalar(atol)
	near := Le(Abs(Sub(a, b)), limit)
	finite := Lt(Abs(b), Full(Float64, math.Inf(1)))
	return At[bool](All(Add(Mul(near, finite), Eq(a, b))))
}

// apartAs returns a copy of dtype dt.
func (t *Tensor) apartAs(dt DType) *Tensor { return New(dt, t.shape...).CopyFrom(t) }
