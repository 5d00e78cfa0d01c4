package tensor

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A visitor receives pairs of elements of two tensors. For both tensors, at and oAt are the
// positions of the first elements, and step and oStep the distances between elements.
//
//   - neighbours receives n elements at regular distances in both tensors.
//   - scattered receives elements of the first tensor at the given positions relative to at.
//   - indexed, which may be nil, receives adjacent elements of the other tensor, and in-range
//     indices of the first: the element for index[i] is at at + i*step + index[i]*stride.
type visitor struct {
	neighbours func(at, step, oAt, oStep, n int)
	scattered  func(at int, places []int, oAt, oStep int)
	indexed    func(at, step, stride int, index []int64, oAt int)
}

// placesPool contains buffers for positions.
var placesPool = sync.Pool{New: func() any { return new([chunk]int) }}

// eachIndex calls v for each element of idx, which must be Int64. It pairs the element of o at the
// same indices with the element of t at these indices, with the index along dim replaced by the
// element of idx. The other dimensions of idx must not be larger than the dimensions of t and o.
func (t *Tensor) eachIndex(what string, dim int, idx, o *Tensor, v visitor) {
	dim = t.requireAlong(what, dim, idx, o)
	var few [2 * fewDims]int
	strides := append(few[:0], t.Strides()...)
	strides[dim] = 0
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	frame, flat := o.borrowView(idx.Shape(), o.Strides(), o.offset), t.borrowView(idx.Shape(), strides, t.offset)
	w := newWalk(bufs.dims[:], frame, []*Tensor{idx, flat})
	frame.releaseView()
	flat.releaseView()
	row := w.dims[len(w.dims)-1]
	index, size, stride := bytesAs[int64](idx.bytes()), t.Shape()[dim], t.Strides()[dim]
	room, known, places := placesPool.Get().(*[chunk]int), -1, []int(nil)
	plain := row.Steps[1] == 0 && stride == 1 && strconv.IntSize == 64 // indices are positions
	defer placesPool.Put(room)
	w.eachRow(func(at, base, _, to int) {
		if row.Steps[0] == 0 { // one index for the whole row
			k := resolveIndex(int(index[at]), size, what)
			v.neighbours(base+k*stride, row.Steps[1], to, row.Steps[output], row.Size)
			return
		}
		for from := 0; from < row.Size; from += chunk {
			n, first := min(chunk, row.Size-from), at+from*row.Steps[0]
			switch {
			case first == known: // same indices as in the previous row
			case row.Steps[0] == 1 && kernel.InRange(index[first:][:n], size):
				few := index[first:][:n]
				if v.indexed != nil && row.Steps[output] == 1 {
					v.indexed(base+from*row.Steps[1], row.Steps[1], stride, few, to+from)
					continue
				}
				known, places = first, room[:n]
				if plain {
					places = bytesAs[int](rawBytes(few))
					break
				}
				for i, k := range few {
					places[i] = i*row.Steps[1] + int(k)*stride
				}
			default:
				known, places = first, room[:n]
				for i := range places {
					k := int(index[first+i*row.Steps[0]])
					if uint(k) >= uint(size) {
						k = resolveIndex(k, size, what)
					}
					places[i] = i*row.Steps[1] + k*stride
				}
			}
			v.scattered(base+from*row.Steps[1], places, to+from*row.Steps[output], row.Steps[output])
		}
	})
	runtime.KeepAlive(t)
	runtime.KeepAlive(idx)
	runtime.KeepAlive(o)
}

// resolveIndex returns index k, or panics if it is out of range. Negative indices are out of
// range, as in PyTorch. what is the name of the operation in the error.
func resolveIndex(k, n int, what string) int {
	if k < 0 || k >= n {
		misuse(ErrIndex, "%s: index %d is out of range [0, %d)", what, k, n)
	}
	return k
}

// asLine returns t, or a one-dimensional view of a scalar. The caller must release it with
// releaseLine.
func (t *Tensor) asLine() *Tensor {
	if len(t.Shape()) > 0 {
		return t
	}
	return t.borrowView([]int{1}, []int{1}, t.offset)
}

// releaseLine releases line, which t.asLine returned.
func (line *Tensor) releaseLine(t *Tensor) {
	if line != t {
		line.releaseView()
	}
	runtime.KeepAlive(t)
}

// requireAlong panics if eachIndex does not accept the shapes or dtypes. It returns dim counted
// from the start.
func (t *Tensor) requireAlong(what string, dim int, idx, o *Tensor) int {
	idx.requireDType(Int64)
	dim = t.resolveDim(dim)
	if len(idx.Shape()) != len(t.Shape()) || len(o.Shape()) != len(t.Shape()) {
		misuse(ErrShape, "%s: tensor of shape %v and indices of shape %v: want equal numbers of dimensions",
			what, t.Shape(), idx.Shape())
	}
	for d, n := range idx.Shape() {
		if d != dim && n > t.Shape()[d] || n > o.Shape()[d] {
			misuse(ErrShape, "%s: tensor of shape %v and indices of shape %v: want indices no larger than the "+
				"tensor except in dimension %d, nor than the source",
				what, t.Shape(), idx.Shape(), dim)
		}
	}
	return dim
}

// Gather returns a tensor of idx's shape. For each element i of idx, which must be Int64, it takes
// the element of t at the same indices, except that the index along dim is i. The other dimensions
// of idx must not be larger than t's. A scalar counts as one dimension of size 1. Gather panics if
// an index is negative or too large.
func Gather(t *Tensor, dim int, idx *Tensor) *Tensor { return t.gather("Gather", dim, idx) }

func (t *Tensor) gather(what string, dim int, idx *Tensor) *Tensor {
	out := emptyFor(t.dtype, idx.Shape(), t, idx)
	from, at, to := t.asLine(), idx.asLine(), out.asLine()
	if idx.requireDType(Int64); idx.Numel() == 0 { // may have any shape, as in PyTorch
		from.resolveDim(dim)
	} else {
		backendOf(t).gather(what, from, dim, at, to)
	}
	from.releaseLine(t)
	at.releaseLine(idx)
	to.releaseLine(out)
	return out
}

// gatherLoops implements gather on the host. It sets the elements of out, which must be
// contiguous.
func (t *Tensor) gatherLoops(what string, dim int, idx, out *Tensor) {
	size, src, dst, move := t.dtype.Size(), t.bytes(), out.contiguousBytes(), copyFunc(t.dtype.Size())
	gather := bySize(size, gatherElements[uint8], gatherElements[uint16], gatherFour, gatherElements[uint64],
		gatherElements[complex128])
	t.eachIndex(what, dim, idx, out, visitor{
		func(at, step, to, toStep, n int) { move(dst[to*size:], toStep, src[at*size:], step, n) },
		func(at int, places []int, to, step int) { gather(dst, src, at, places, to, step) },
		nil,
	})
}

// bySize returns the function for an element size in bytes.
func bySize[F any](size int, one, two, four, eight, sixteen F) F {
	switch size {
	case 1:
		return one
	case 2:
		return two
	case 4:
		return four
	case 8:
		return eight
	}
	return sixteen
}

// gatherFour is gatherElements for elements of four bytes, with a kernel for adjacent results.
func gatherFour(dst, src []byte, at int, places []int, to, step int) {
	if step != 1 {
		gatherElements[uint32](dst, src, at, places, to, step)
		return
	}
	kernel.Gather(places, src[4*at:], dst[4*to:])
}

// gatherElements copies elements of src at the positions in places, relative to at, to dst, from
// index to on with distance step.
func gatherElements[T any](dst, src []byte, at int, places []int, to, step int) {
	d, s := bytesAs[T](dst), bytesAs[T](src)[at:]
	if step == 1 {
		d := d[to:][:len(places)]
		for i, p := range places {
			d[i] = s[p]
		}
		return
	}
	for _, p := range places {
		d[to] = s[p]
		to += step
	}
}

// ScatterInPlace sets one element of t for each element i of idx, which must be Int64: the one at
// the same indices, except that the index along dim is i. The new value is the element of src at
// the indices of i. If idx refers to an element of t twice, it gets either value. t and src must
// have the same dtype. A scalar counts as one dimension of size 1. ScatterInPlace panics if an
// index is negative or too large.
func (t *Tensor) ScatterInPlace(dim int, idx, src *Tensor) *Tensor {
	return t.scatter("Scatter", dim, idx, src, copyFunc(t.dtype.Size()))
}

// ScatterAddInPlace adds to the elements that [Tensor.ScatterInPlace] would set. If idx refers to
// an element several times, all values are added.
func (t *Tensor) ScatterAddInPlace(dim int, idx, src *Tensor) *Tensor {
	return t.scatter("ScatterAdd", dim, idx, src, nil)
}

// scatter writes elements of src to t with move, or adds them if move is nil, and returns t; see
// [Tensor.ScatterInPlace]. what is the name of the operation in errors.
func (t *Tensor) scatter(what string, dim int, idx, src *Tensor, move castFunc) *Tensor {
	if src.dtype != t.dtype {
		misuse(ErrOperand, "%s: cannot write %v to a tensor of %v: convert it with To first",
			what, src.dtype, t.dtype)
	}
	t.requireDistinct()
	if t.SameStorage(src) {
		src = src.Clone()
	}
	if t.SameStorage(idx) {
		idx = idx.Clone()
	}
	to, at, from := t.asLine(), idx.asLine(), src.asLine()
	if idx.requireDType(Int64); idx.Numel() == 0 {
		to.resolveDim(dim)
	} else {
		backendOf(t).scatter(what, to, dim, at, from, move)
	}
	to.releaseLine(t)
	at.releaseLine(idx)
	from.releaseLine(src)
	return t
}

// scatterLoops implements scatter on the host.
func (t *Tensor) scatterLoops(what string, dim int, idx, src *Tensor, move castFunc) {
	size, from, to := t.dtype.Size(), src.bytes(), t.bytes()
	put := bySize(size, scatterElements[uint8], scatterElements[uint16], scatterElements[uint32],
		scatterElements[uint64],
		scatterElements[complex128])
	set := bySize(size, setIndexed[uint8], setIndexed[uint16], setIndexed[uint32], setIndexed[uint64],
		setIndexed[complex128])
	indexed := func(at, step, stride int, index []int64, srcAt int) { set(to, from, at, step, stride, index, srcAt) }
	if move == nil {
		move, put = t.addFuncs()
		indexed = nil
	}
	t.eachIndex(what, dim, idx, src, visitor{
		func(at, step, srcAt, srcStep, n int) { move(to[at*size:], step, from[srcAt*size:], srcStep, n) },
		func(at int, places []int, srcAt, srcStep int) { put(to, from, at, places, srcAt, srcStep) },
		indexed,
	})
	t.Touch()
}

// A placesFunc writes elements of src to dst. It writes to the given positions relative to at, and
// reads from index from on with distance step.
type placesFunc = func(dst, src []byte, at int, places []int, from, step int)

func scatterElements[T any](dst, src []byte, at int, places []int, from, step int) {
	d, s := bytesAs[T](dst)[at:], bytesAs[T](src)
	for _, p := range places {
		d[p] = s[from]
		from += step
	}
}

// setIndexed sets the element of dst at at + i*step + index[i]*stride to the element of src at
// from + i, for each i. It computes positions from indices in the same loop, because the loop is
// bound by memory latency and can compute meanwhile.
func setIndexed[T any](dst, src []byte, at, step, stride int, index []int64, from int) {
	d, s := bytesAs[T](dst)[at:], bytesAs[T](src)[from:][:len(index)]
	for i, k := range index {
		d[i*step+int(k)*stride] = s[i]
	}
}

func addAt[T ordered | cplx](dst, src []byte, at int, places []int, from, step int) {
	d, s := bytesAs[T](dst)[at:], bytesAs[T](src)
	for _, p := range places {
		d[p] += s[from]
		from += step
	}
}

// orAt is addAt for Bool.
func orAt(dst, src []byte, at int, places []int, from, step int) {
	for _, p := range places {
		dst[at+p] |= src[from]
		from += step
	}
}

// addFuncs returns functions that add elements of t's dtype: at regular distances, and at a list of
// positions.
func (t *Tensor) addFuncs() (castFunc, placesFunc) {
	dt := t.dtype.computeDType()
	n := dt.numericLoops()
	if dt == t.dtype {
		return n.add, n.addAt
	}
	one, at := addHalfFuncs(MakeF16)
	if t.dtype == BFloat16 {
		one, at = addHalfFuncs(MakeBF16)
	}
	up, down := castFuncFor(dt, t.dtype), castFuncFor(t.dtype, dt)
	return func(dst []byte, ds int, src []byte, ss, m int) {
		if ds != 1 || ss != 1 { // elements of dst may be identical
			for i := range m {
				one(dst[i*ds*2:], src[i*ss*2:])
			}
			return
		}
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		a, b := bufs.rows[0][:], bufs.rows[1][:]
		for i := 0; i < m; i += chunk {
			k := min(chunk, m-i)
			up(a, 1, dst[i*2:], 1, k)
			up(b, 1, src[i*2:], 1, k)
			n.add(a, 1, b, 1, k)
			down(dst[i*2:], 1, a, 1, k)
		}
	}, at
}

// addHalfFuncs returns functions that add in float32: one for a single element, and one for a list
// of positions.
func addHalfFuncs[H interface {
	F16 | BF16
	Float32() float32
}](round func(float32) H) (one func(dst, src []byte), at placesFunc) {
	one = func(dst, src []byte) {
		d, s := bytesAs[H](dst[:2]), bytesAs[H](src[:2])
		d[0] = round(d[0].Float32() + s[0].Float32())
	}
	return one, func(dst, src []byte, at int, places []int, from, step int) {
		d, s := bytesAs[H](dst)[at:], bytesAs[H](src)
		for _, p := range places {
			d[p] = round(d[p].Float32() + s[from].Float32())
			from += step
		}
	}
}

// accumulate returns a function that sets each element of dst to f of itself and an element of src.
// It uses row for adjacent elements.
func accumulate[T any](row rowFunc, f func(a, b T) T) castFunc {
	return func(dst []byte, ds int, src []byte, ss, n int) {
		d, s := bytesAs[T](dst), bytesAs[T](src)
		if ds == 1 && ss == 1 {
			row(rawBytes(d[:n]), rawBytes(d[:n]), rawBytes(s[:n]), nil)
			return
		}
		for i := range n {
			d[i*ds] = f(d[i*ds], s[i*ss])
		}
	}
}

// IndexSelect returns the slices of t along dim that idx lists. idx must be Int64, with one
// dimension or none. IndexSelect panics if an index is negative or too large. If t is a scalar, idx
// must list one slice.
func IndexSelect(t *Tensor, dim int, idx *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		if idx.Numel() != 1 {
			misuse(ErrShape, "IndexSelect: got %d indices for a tensor without dimensions, want 1", idx.Numel())
		}
		line := t.asLine()
		defer line.releaseLine(t)
		return IndexSelect(line, dim, idx).setShape()
	}
	if len(idx.Shape()) == 0 {
		line := idx.asLine()
		defer line.releaseLine(idx)
		return IndexSelect(t, dim, line)
	}
	wide := t.expandIndex("IndexSelect", dim, idx)
	defer wide.releaseView()
	idx.requireIndices("IndexSelect", t.Dim(dim), wide)
	if out := t.selectPieces(t.resolveDim(dim), idx, wide.Shape()); out != nil {
		return out
	}
	return t.gather("IndexSelect", dim, wide)
}

// requireIndices panics if an element of t, a list of indices, is out of range for a dimension of
// the given size. It does nothing if wide, the result of expandIndex, is not empty: then the
// operation checks the indices. what is the name of the operation in the error.
func (t *Tensor) requireIndices(what string, size int, wide *Tensor) {
	if wide.Numel() > 0 || t.Numel() == 0 || t.dtype != Int64 {
		return
	}
	host, err := t.CPU()
	if err != nil {
		panic(err)
	}
	defer host.Close()
	for i := range host.Shape()[0] {
		resolveIndex(int(At[int64](host, i)), size, what)
	}
}

// selectPieces implements IndexSelect for contiguous tensors with slices that are large enough to
// be copied whole. It returns nil for other tensors. shape is the shape of the result.
func (t *Tensor) selectPieces(dim int, idx *Tensor, shape []int) *Tensor {
	const from = 256 // minimum size in bytes
	n := product(t.Shape()[dim+1:]) * t.dtype.Size()
	if n < from || idx.dtype != Int64 || !t.IsContiguous() || commonDevice([]*Tensor{t, idx}) != nil {
		return nil
	}
	out, size := Empty(t.dtype, shape...), t.Shape()[dim]
	to, src, index := out.contiguousBytes(), t.contiguousBytes(), bytesAs[int64](idx.bytes())
	for range product(t.Shape()[:dim]) {
		for i := range idx.Shape()[0] {
			k := resolveIndex(int(index[idx.offset+i*idx.Strides()[0]]), size, "IndexSelect")
			to = to[copy(to, src[k*n:][:n]):]
		}
		src = src[size*n:]
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(idx)
	return out
}

// IndexCopyInPlace copies slice i of src along dim to slice idx[i] of t, for each i. idx must be
// Int64, with one dimension or none. IndexCopyInPlace panics if an index is negative or too
// large.
func (t *Tensor) IndexCopyInPlace(dim int, idx, src *Tensor) *Tensor {
	return t.scatterSlices("IndexCopy", dim, idx, src, copyFunc(t.dtype.Size()))
}

// IndexAddInPlace adds slice i of src along dim to slice idx[i] of t, for each i. idx must be
// Int64, with one dimension or none. If idx lists a slice several times, all values are added.
// IndexAddInPlace panics if an index is negative or too large.
func (t *Tensor) IndexAddInPlace(dim int, idx, src *Tensor) *Tensor {
	return t.scatterSlices("IndexAdd", dim, idx, src, nil)
}

// scatterSlices is scatter for whole slices: slice i of src goes to slice idx[i] of t. Scalars
// count as one dimension here. The size of src along dim must be the length of idx, and the other
// sizes must be t's.
func (t *Tensor) scatterSlices(what string, dim int, idx, src *Tensor, move castFunc) *Tensor {
	to, at, from := t.asLine(), idx.asLine(), src.asLine()
	wide := to.expandIndex(what, dim, at)
	wide.requireShape(what, from)
	at.requireIndices(what, to.Dim(dim), wide)
	to.scatter(what, dim, wide, from, move)
	wide.releaseView()
	to.releaseLine(t)
	at.releaseLine(idx)
	from.releaseLine(src)
	return t
}

// expandIndex returns a view of idx, which must have one dimension, with the shape of t except
// for the length of idx along dim: each element is the index for its position along dim. The
// caller must release the view with releaseView.
func (t *Tensor) expandIndex(what string, dim int, idx *Tensor) *Tensor {
	if len(idx.Shape()) != 1 {
		misuse(ErrShape, "%s: got indices of shape %v, want 1 dimension", what, idx.Shape())
	}
	dim = t.resolveDim(dim)
	var room [2][2 * fewDims]int
	shape := append(room[0][:0], t.Shape()...)
	strides := slices.Grow(room[1][:0], len(shape))[:len(shape)]
	shape[dim], strides[dim] = idx.Shape()[0], idx.Strides()[0]
	return idx.borrowView(shape, strides, idx.offset)
}

func (t *Tensor) requireShape(what string, src *Tensor) {
	if !slices.Equal(t.Shape(), src.Shape()) {
		misuse(ErrShape, "%s: got shape %v, want %v", what, src.Shape(), t.Shape())
	}
}

// Index returns the elements of t at the positions that the index tensors specify together, like
// t[i, j] in PyTorch. The index tensors must be Int64, one for each of t's first dimensions. They
// are broadcast to a common shape. The result has this shape, followed by t's other dimensions. A
// negative index counts from the end. Index panics if an index is out of range.
func Index(t *Tensor, idx ...*Tensor) *Tensor {
	if len(idx) == 0 || len(idx) > len(t.Shape()) {
		misuse(ErrShape, "Index: tensor has %d dimensions: got %d index tensors, want at least 1 and at most one "+
			"for each dimension",
			len(t.Shape()), len(idx))
	}
	var few [2 * fewDims][]int
	shapes := few[:0]
	for _, i := range idx {
		i.requireDType(Int64)
		shapes = append(shapes, i.Shape())
	}
	var room [2 * fewDims]int
	shape := broadcastInto(room[:0], shapes...)
	line := t.flattenIndices(shape, idx).setShape(product(shape))
	defer line.release()
	rest := t.Shape()[len(idx):]
	var wide [2][2 * fewDims]int
	rows := append(append(wide[0][:0], product(t.Shape()[:len(idx)])), rest...)
	var picked *Tensor
	if strides, ok := t.restride(wide[1][:0], rows); ok {
		seen := t.borrowView(rows, strides, t.offset)
		defer seen.releaseView()
		picked = IndexSelect(seen, 0, line)
	} else {
		own := t.Clone().setShape(rows...)
		defer own.release()
		picked = IndexSelect(own, 0, line)
	}
	return picked.setShape(append(shape, rest...)...)
}

// flattenIndices returns a new Int64 tensor of the given shape, the common shape of idx. Its
// elements are the positions that the index tensors specify together, in t's first len(idx)
// dimensions merged into one. It panics with ErrIndex if an index is out of range.
func (t *Tensor) flattenIndices(shape []int, idx []*Tensor) *Tensor {
	flat := idx[0].NewEmpty(Int64, shape...)
	if !backendOf(idx...).acceptsAnyLoop() {
		flat.Zero()
	}
	for d, i := range idx {
		size, ok := t.Shape()[d], true
		if backendOf(idx...).acceptsAnyLoop() {
			ok = flat.nextPlaces(i, size, d == 0)
		} else {
			n := Scalar(Int64, float64(size))
			if ok = Any(Or(Ge(i, n), Lt(i, Neg(n)))).Item() == 0; ok {
				flat.MulInPlace(n).AddInPlace(Remainder(i, Maximum(n, Scalar(Int64, 1))))
			}
		}
		if !ok {
			misuse(ErrIndex, "Index: %v is out of range for dimension %d of shape %v", i, d, t.Shape())
		}
	}
	return flat
}

// nextPlaces replaces the positions in flat by positions that include one more dimension, of the
// given size, with the indices idx. first states that there is no previous dimension, so that
// flat is uninitialized. nextPlaces returns false if an index is out of range.
func (flat *Tensor) nextPlaces(idx *Tensor, size int, first bool) bool {
	factor := size
	if first {
		factor = 0
	}
	rows{in: [3]DType{Int64, Int64}, out: Int64, withNumbers: nextPlacesRow, first: float64(size),
		second: float64(factor)}.apply(flat, flat, idx)
	return kernel.InRange(bytesAs[int64](flat.contiguousBytes()), math.MaxInt64)
}

// nextPlacesRow sets out to x·factor + y, where y counts from the end if it is negative. The result
// is -1 if y is not an index of a dimension of the given size, or if x·factor is negative.
func nextPlacesRow(size, factor float64, out, x, y []byte) {
	to, before, n, f := bytesAs[int64](out), bytesAs[int64](x), int64(size), int64(factor)
	for i, k := range bytesAs[int64](y)[:len(to)] {
		k += k >> 63 & n
		begin := before[i] * f
		to[i] = begin + k
		if uint64(k) >= uint64(n) || begin < 0 {
			to[i] = -1
		}
	}
}
