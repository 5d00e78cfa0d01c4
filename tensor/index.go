package tensor

import (
	"math"
	"math/cmplx"
	"runtime"
	"slices"
)

// Cat concatenates the tensors along dim. Their other dimensions must be equal. Their dtypes are
// promoted. Cat ignores tensors of shape (0), as PyTorch does. It panics if there are no tensors.
func Cat(dim int, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		misuse(ErrMisuse, "Cat: got no tensors, want at least 1")
	}
	first, dt := ts[0], ts[0].dtype
	for _, t := range ts {
		if dt = Promote(dt, t.dtype); first.isLegacyEmpty() {
			first = t
		}
	}
	dim = first.resolveDim(dim)
	var room [2 * fewDims]int
	shape := append(room[:0], first.Shape()...)
	shape[dim] = 0
	for _, t := range ts {
		if t.isLegacyEmpty() {
			continue
		}
		if !equalExcept(t.Shape(), first.Shape(), dim) {
			misuse(ErrShape, "Cat: shapes %v and %v differ in a dimension other than %d",
				first.Shape(), t.Shape(), dim)
		}
		shape[dim] += t.Shape()[dim]
	}
	out := emptyFor(dt, shape, ts...)
	if canCopyPieces(out, ts) {
		out.catPieces(dim, ts)
		return out
	}
	at := 0
	for _, t := range ts {
		if !t.isLegacyEmpty() {
			part := out.borrowView(t.Shape(), out.Strides(), at*out.Strides()[dim])
			part.CopyFrom(t)
			part.releaseView()
			at += t.Shape()[dim]
		}
	}
	return out
}

// equalExcept reports whether two shapes are equal except for dimension dim.
func equalExcept(a, b []int, dim int) bool {
	return len(a) == len(b) && slices.Equal(a[:dim], b[:dim]) && slices.Equal(a[dim+1:], b[dim+1:])
}

// canCopyPieces reports whether all tensors are on the host, contiguous, and of out's dtype.
func canCopyPieces(out *Tensor, ts []*Tensor) bool {
	return commonDevice(ts) == nil && out.Device() == nil &&
		!slices.ContainsFunc(ts, func(t *Tensor) bool { return t.dtype != out.dtype || !t.IsContiguous() })
}

// catPieces sets the elements of t to the concatenation of ts along dim, in the order of t's
// memory. canCopyPieces must have returned true for t and ts.
func (t *Tensor) catPieces(dim int, ts []*Tensor) {
	to := t.contiguousBytes()
	for i := range product(t.Shape()[:dim]) {
		for _, x := range ts {
			if x.isLegacyEmpty() {
				continue
			}
			n := product(x.Shape()[dim:]) * x.dtype.Size()
			to = to[copy(to, x.contiguousBytes()[i*n:][:n]):]
		}
	}
	for _, x := range ts {
		runtime.KeepAlive(x)
	}
	t.Touch()
}

// isLegacyEmpty reports whether t has the only shape of empty tensors in early versions of PyTorch.
// Cat ignores such tensors, regardless of the other shapes.
func (t *Tensor) isLegacyEmpty() bool { return len(t.Shape()) == 1 && t.Shape()[0] == 0 }

// Stack concatenates the tensors along a new dimension dim. They must have the same shape. Their
// dtypes are promoted. Stack panics if there are no tensors.
func Stack(dim int, ts ...*Tensor) *Tensor {
	if len(ts) == 0 {
		misuse(ErrMisuse, "Stack: got no tensors, want at least 1")
	}
	dim = wrapIndex(dim, len(ts[0].Shape())+1, "dimension")
	dt := ts[0].dtype
	for _, t := range ts {
		dt = Promote(dt, t.dtype)
		if !slices.Equal(t.Shape(), ts[0].Shape()) {
			misuse(ErrShape, "Stack: shapes %v and %v differ", ts[0].Shape(), t.Shape())
		}
	}
	out := emptyFor(dt, slices.Insert(slices.Clone(ts[0].Shape()), dim, len(ts)), ts...)
	for i, t := range ts {
		out.borrowView(t.Shape(), removeAt(nil, out.Strides(), dim), i*out.Strides()[dim]).CopyFrom(t)
	}
	return out
}

// Flip returns a copy with the elements in reverse order along dims, like torch.flip. For images in
// (…, H, W), dimension -1 mirrors left and right. Flip panics if a dimension is listed twice.
func Flip(t *Tensor, dims ...int) *Tensor {
	turned := axes(0)
	for _, d := range dims {
		if d = wrapIndex(d, max(len(t.Shape()), 1), "dimension"); turned.has(d) {
			misuse(ErrIndex, "Flip: dimension %d is repeated", d)
		}
		turned |= 1 << d
	}
	if len(t.Shape()) == 0 {
		return t.Clone()
	}
	if !backendOf(t).acceptsAnyLoop() {
		return t.flipSteps(turned)
	}
	out := Empty(t.dtype, t.Shape()...)
	if t.Numel() == 0 {
		return out
	}
	var room [2][2 * fewDims]int
	order := room[0][:0]
	for d := range t.Shape() {
		order = append(order, d)
	}
	x := t.rowsOf(t.dtype, order)
	defer x.releaseRows(t)
	strides, last := append(room[1][:0], x.Strides()...), x.offset
	for d, n := range x.Shape() {
		if turned.has(d) {
			last += (n - 1) * strides[d]
			strides[d] = -strides[d]
		}
	}
	backwards := x.borrowView(x.Shape(), strides, last)
	out.CopyFrom(backwards)
	backwards.releaseView()
	return out
}

// flipSteps implements Flip with index operations, for devices.
func (t *Tensor) flipSteps(turned axes) *Tensor {
	out := t.Clone()
	for d, n := range t.Shape() {
		if turned.has(d) {
			backwards := t.NewEmpty(Int64, n).fillArithmetic(float64(n-1), -1)
			next := IndexSelect(out, d, backwards)
			out.release()
			backwards.release()
			out = next
		}
	}
	return out
}

// Equal reports whether a and b have the same shape and equal elements. The dtypes may differ: the
// elements are compared as by [Eq]. NaN is not equal to anything.
func Equal(a, b *Tensor) bool {
	if !slices.Equal(a.Shape(), b.Shape()) {
		return false
	}
	x, y := withoutSharedRepeats(a, b, a.Shape())
	defer x.releaseView()
	defer y.releaseView()
	defer runtime.KeepAlive(a)
	defer runtime.KeepAlive(b)
	if x.hasRepeats() && y.hasRepeats() { // x and y may have far more elements than fit in memory
		return x.isConstantAlong(y) && y.isConstantAlong(x) && equalPieces(x, y)
	}
	return equalPieces(x, y)
}

// withoutSharedRepeats returns views of a and b broadcast to shape, with size 1 in dimensions
// along which both repeat their elements. The caller must release the views with releaseView.
func withoutSharedRepeats(a, b *Tensor, shape []int) (x, y *Tensor) {
	var room [3][2 * fewDims]int
	own, along, across := append(room[0][:0], shape...), a.appendBroadcastStrides(room[1][:0], shape),
		b.appendBroadcastStrides(room[2][:0], shape)
	for d, n := range own {
		if along[d] == 0 && across[d] == 0 {
			own[d] = min(n, 1)
		}
	}
	return a.borrowView(own, along, a.offset), b.borrowView(own, across, b.offset)
}

// hasRepeats reports whether several indices refer to one element, as after Expand.
func (t *Tensor) hasRepeats() bool {
	for d, n := range t.Shape() {
		if n > 1 && t.Strides()[d] == 0 {
			return true
		}
	}
	return false
}

// isConstantAlong reports whether t is constant along the dimensions in which o repeats its
// elements. It narrows both tensors to the first index of the dimensions that it has compared, so
// both must be borrowed views, of the same shape.
func (t *Tensor) isConstantAlong(o *Tensor) bool {
	for d, n := range t.Shape() {
		if n < 2 || o.Strides()[d] != 0 {
			continue
		}
		var room [2 * fewDims]int
		strides := append(room[:0], t.Strides()...)
		strides[d] = 0
		first := t.borrowView(t.Shape(), strides, t.offset)
		x, y := withoutSharedRepeats(t, first, t.Shape())
		same := equalPieces(x, y)
		x.releaseView()
		y.releaseView()
		first.releaseView()
		if !same {
			return false
		}
		t.Shape()[d], o.Shape()[d] = 1, 1
	}
	return true
}

// equalPieces is like Equal for tensors of one shape. It compares pieces and stops at the first
// difference.
func equalPieces(a, b *Tensor) bool {
	if a.Numel() <= equalPiece || !backendOf(a, b).acceptsAnyLoop() {
		return sameElements(a, b)
	}
	var room [2 * fewDims]int
	piece, n := append(room[:0], a.Shape()...), a.Shape()[0]
	piece[0] = max(equalPiece*n/a.Numel(), 1)
	for at := 0; at < n; at += piece[0] {
		piece[0] = min(piece[0], n-at)
		x := a.borrowView(piece, a.Strides(), a.offset+at*a.Strides()[0])
		y := b.borrowView(piece, b.Strides(), b.offset+at*b.Strides()[0])
		same := sameElements(x, y)
		x.releaseView()
		y.releaseView()
		if !same {
			return false
		}
	}
	return true
}

// equalPiece is the approximate number of elements that Equal compares before it checks the result.
const equalPiece = 1 << 14

// sameElements is like Equal for tensors of one shape.
func sameElements(a, b *Tensor) bool {
	same := Eq(a, b)
	defer same.release()
	return same.allTrue()
}

// allTrue reports whether all elements of t, which must be Bool, are true.
func (t *Tensor) allTrue() bool {
	all := All(t)
	defer all.release()
	return At[bool](all)
}

// AllClose reports whether |a-b| <= atol + rtol*|b| for all elements. The shapes are broadcast.
// NaN is not close to anything. An infinity is close only to itself. rtol and atol may be
// infinite, but must not be negative or NaN.
func AllClose(a, b *Tensor, rtol, atol float64) bool {
	if !(rtol >= 0 && atol >= 0) {
		misuse(ErrArgument, "AllClose: got tolerances %v and %v, want at least 0", rtol, atol)
	}
	dt := Promote(promoteOperands(a, b), Float64)
	var wide [2 * fewDims]int
	x, y := withoutSharedRepeats(a, b, broadcastInto(wide[:0], a.Shape(), b.Shape()))
	defer x.releaseView()
	defer y.releaseView()
	defer runtime.KeepAlive(a)
	defer runtime.KeepAlive(b)
	return allClose(x, y, dt, rtol, atol)
}

// allClose is like AllClose for tensors of one shape, computed in dt.
func allClose(a, b *Tensor, dt DType, rtol, atol float64) bool {
	if backendOf(a, b).acceptsAnyLoop() {
		near := closeRow
		if dt == Complex128 {
			near = closeComplex
		}
		where := emptyLike(Bool, a.Shape(), a, b)
		defer where.release()
		return rows{in: [3]DType{dt, dt}, out: Bool, withNumbers: near, first: rtol,
			second: atol}.apply(where, a, b).allTrue()
	}
	a, b = a.copyAs(dt), b.copyAs(dt)
	limit := Abs(b).MulScalarInPlace(rtol).AddScalarInPlace(atol)
	apart := Abs(Sub(a, b))
	near := Le(apart, limit)
	finite := Lt(apart, Full(Float64, math.Inf(1)))
	return Add(Mul(near, finite), Eq(a, b)).allTrue()
}

// closeRow is the loop of AllClose for floats, and closeComplex the loop for complex numbers.
func closeRow(rtol, atol float64, out, x, y []byte) {
	a, b := bytesAs[float64](x), bytesAs[float64](y)
	a, b = a[:len(out)], b[:len(out)]
	for i := range out {
		x, y := a[i], b[i]
		limit := atol + float64(rtol*math.Abs(y))
		apart := math.Abs(x - y)
		out[i] = boolToUint8(x == y || apart <= limit && apart <= math.MaxFloat64)
	}
}

func closeComplex(rtol, atol float64, out, x, y []byte) {
	a := bytesAs[complex128](x)
	for i, y := range bytesAs[complex128](y) {
		limit, apart := atol+float64(rtol*cmplx.Abs(y)), cmplx.Abs(a[i]-y)
		out[i] = boolToUint8(a[i] == y || apart <= limit && apart <= math.MaxFloat64)
	}
}

// copyAs returns a copy of t with dtype dt.
func (t *Tensor) copyAs(dt DType) *Tensor { return t.NewEmpty(dt, t.Shape()...).CopyFrom(t) }
