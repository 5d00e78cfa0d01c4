package tensor

import (
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A visitor is shown elements of one tensor together with elements of another. neighbours gets n of
// them with the places of the first ones and the distances of the others, scattered those of the
// first tensor at places from at on. indexed, which may be nil, gets neighbours of the other with
// the distance in the first tensor of one from the next, and of one index from the next, and
// indices that are in range.
type visitor struct {
	neighbours func(at, step, oAt, oStep, n int)
	scattered  func(at int, places []int, oAt, oStep int)
	indexed    func(at, step, stride int, index []int64, oAt int)
}

// placesPool has room for places.
var placesPool = sync.Pool{New: func() any { return new([chunk]int) }}

// along visits, for each element of idx (Int64), the element of t at the same indices but that
// along dim, which idx says, and the element of o at the same indices. Other dimensions of idx are
// at most as large as those of t and o.
func (t *Tensor) along(what string, dim int, idx, o *Tensor, v visitor) {
	dim = t.wantAlong(what, dim, idx, o)
	var few [2 * fewDims]int
	strides := append(few[:0], t.Strides()...)
	strides[dim] = 0
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	frame, flat := o.peek(idx.Shape(), o.Strides(), o.offset), t.peek(idx.Shape(), strides, t.offset)
	w := newWalk(bufs.dims[:], frame, []*Tensor{idx, flat})
	frame.forget()
	flat.forget()
	row := w.dims[len(w.dims)-1]
	index, size, stride := typed[int64](idx.bytes()), t.Shape()[dim], t.Strides()[dim]
	room, known, places := placesPool.Get().(*[chunk]int), -1, []int(nil)
	plain := row.Steps[1] == 0 && stride == 1 && strconv.IntSize == 64 // indices are places
	defer placesPool.Put(room)
	w.rows(func(at, base, _, to int) {
		if row.Steps[0] == 0 { // one index for the whole row
			k := place(int(index[at]), size, what)
			v.neighbours(base+k*stride, row.Steps[1], to, row.Steps[output], row.Size)
			return
		}
		for from := 0; from < row.Size; from += chunk {
			n, first := min(chunk, row.Size-from), at+from*row.Steps[0]
			switch {
			case first == known: // rows may have the same indices
			case row.Steps[0] == 1 && kernel.InRange(index[first:][:n], size):
				few := index[first:][:n]
				if v.indexed != nil && row.Steps[output] == 1 {
					v.indexed(base+from*row.Steps[1], row.Steps[1], stride, few, to+from)
					continue
				}
				known, places = first, room[:n]
				if plain {
					places = typed[int](raw(few))
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
						k = place(k, size, what)
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

// place returns index k of an operation. Negative indices do not count from the end, as PyTorch
// refuses them.
func place(k, n int, what string) int {
	if k < 0 || k >= n {
		misuse(ErrIndex, "%s index %d is out of range of %d: want at least 0", what, k, n)
	}
	return k
}

// line returns t, or a view of a single number in one dimension. It is let go of by unline.
func (t *Tensor) line() *Tensor {
	if len(t.Shape()) > 0 {
		return t
	}
	return t.peek([]int{1}, []int{1}, t.offset)
}

// unline lets go of a line of t.
func (line *Tensor) unline(t *Tensor) {
	if line != t {
		line.forget()
	}
	runtime.KeepAlive(t)
}

// wantAlong refuses indices of another shape or dtype than along takes. It returns the dimension
// counted from the start.
func (t *Tensor) wantAlong(what string, dim int, idx, o *Tensor) int {
	idx.want(Int64)
	dim = t.axis(dim)
	if len(idx.Shape()) != len(t.Shape()) || len(o.Shape()) != len(t.Shape()) {
		misuse(ErrShape, "%s in %v by indices of %v: want as many dimensions", what, t.Shape(), idx.Shape())
	}
	for d, n := range idx.Shape() {
		if d != dim && n > t.Shape()[d] || n > o.Shape()[d] {
			misuse(ErrShape, "%s in %v by indices of %v along dimension %d", what, t.Shape(), idx.Shape(), dim)
		}
	}
	return dim
}

// Gather returns a tensor of idx's shape: for each element i of idx (Int64), the element of t at
// the same indices, except that the index along dim is i. The other dimensions of idx are at most
// as large as t's. A single number counts as one dimension of size 1. Gather panics if an index is
// negative.
func Gather(t *Tensor, dim int, idx *Tensor) *Tensor { return t.gather("Gather", dim, idx) }

func (t *Tensor) gather(what string, dim int, idx *Tensor) *Tensor {
	out := emptyFor(t.dtype, idx.Shape(), t, idx)
	from, at, to := t.line(), idx.line(), out.line()
	if idx.want(Int64); idx.Numel() == 0 { // of any shape, as in PyTorch
		from.axis(dim)
	} else {
		backendOf(t).gather(what, from, dim, at, to)
	}
	from.unline(t)
	at.unline(idx)
	to.unline(out)
	return out
}

// gatherLoops is gather on the host.
func (t *Tensor) gatherLoops(what string, dim int, idx, out *Tensor) {
	size, src, dst, move := t.dtype.Size(), t.bytes(), out.span(), copier(t.dtype.Size())
	gather := bySize(size, gathering[uint8], gathering[uint16], gathering4, gathering[uint64],
		gathering[complex128])
	t.along(what, dim, idx, out, visitor{
		func(at, step, to, toStep, n int) { move(dst[to*size:], toStep, src[at*size:], step, n) },
		func(at int, places []int, to, step int) { gather(dst, src, at, places, to, step) },
		nil,
	})
}

// bySize returns the function for elements of a size.
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

// gathering4 is gathering of elements of four bytes.
func gathering4(dst, src []byte, at int, places []int, to, step int) {
	if step != 1 {
		gathering[uint32](dst, src, at, places, to, step)
		return
	}
	kernel.Gather(places, src[4*at:], dst[4*to:])
}

// gathering sets elements of dst, step apart from to on, to those of src at places from at on.
func gathering[T any](dst, src []byte, at int, places []int, to, step int) {
	d, s := typed[T](dst), typed[T](src)[at:]
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

// Scatter sets an element of t for each element i of idx (Int64): the one at the same indices,
// except that the index along dim is i. The new value is the element of src at the indices of i. If
// idx names an element of t twice, it becomes either value. t and src have the same dtype. A single
// number counts as one dimension of size 1. Scatter panics if an index is negative.
func (t *Tensor) Scatter(dim int, idx, src *Tensor) *Tensor {
	return t.scatter("Scatter", dim, idx, src, copier(t.dtype.Size()))
}

// ScatterAdd adds to the elements that Scatter would set. If idx names an element several times,
// all values are added.
func (t *Tensor) ScatterAdd(dim int, idx, src *Tensor) *Tensor {
	return t.scatter("ScatterAdd", dim, idx, src, nil)
}

// scatter lets move change elements of t by those of src; nil adds.
func (t *Tensor) scatter(what string, dim int, idx, src *Tensor, move castFunc) *Tensor {
	if src.dtype != t.dtype {
		misuse(ErrOperand, "%s of %v into %v: convert it with To first", what, src.dtype, t.dtype)
	}
	t.wantDistinct()
	if t.SameStorage(src) {
		src = src.Clone()
	}
	if t.SameStorage(idx) {
		idx = idx.Clone()
	}
	to, at, from := t.line(), idx.line(), src.line()
	if idx.want(Int64); idx.Numel() == 0 {
		to.axis(dim)
	} else {
		backendOf(t).scatter(what, to, dim, at, from, move)
	}
	to.unline(t)
	at.unline(idx)
	from.unline(src)
	return t
}

// scatterLoops is scatter on the host.
func (t *Tensor) scatterLoops(what string, dim int, idx, src *Tensor, move castFunc) {
	size, from, to := t.dtype.Size(), src.bytes(), t.bytes()
	put := bySize(size, scattering[uint8], scattering[uint16], scattering[uint32], scattering[uint64],
		scattering[complex128])
	set := bySize(size, indexing[uint8], indexing[uint16], indexing[uint32], indexing[uint64], indexing[complex128])
	indexed := func(at, step, stride int, index []int64, srcAt int) { set(to, from, at, step, stride, index, srcAt) }
	if move == nil {
		move, put = t.adding()
		indexed = nil
	}
	t.along(what, dim, idx, src, visitor{
		func(at, step, srcAt, srcStep, n int) { move(to[at*size:], step, from[srcAt*size:], srcStep, n) },
		func(at int, places []int, srcAt, srcStep int) { put(to, from, at, places, srcAt, srcStep) },
		indexed,
	})
	t.Touch()
}

// A placesFunc changes elements of dst, at places from at on, by those of src, which are step apart
// from a place on.
type placesFunc = func(dst, src []byte, at int, places []int, from, step int)

func scattering[T any](dst, src []byte, at int, places []int, from, step int) {
	d, s := typed[T](dst)[at:], typed[T](src)
	for _, p := range places {
		d[p] = s[from]
		from += step
	}
}

// indexing sets elements of dst to neighbours of src, each by its index, in one loop: the memory of
// the elements is what it waits for, and computes places meanwhile.
func indexing[T any](dst, src []byte, at, step, stride int, index []int64, from int) {
	d, s := typed[T](dst)[at:], typed[T](src)[from:][:len(index)]
	for i, k := range index {
		d[i*step+int(k)*stride] = s[i]
	}
}

func addingAt[T ordered | cplx](dst, src []byte, at int, places []int, from, step int) {
	d, s := typed[T](dst)[at:], typed[T](src)
	for _, p := range places {
		d[p] += s[from]
		from += step
	}
}

// orAt is addingAt of truths.
func orAt(dst, src []byte, at int, places []int, from, step int) {
	for _, p := range places {
		dst[at+p] |= src[from]
		from += step
	}
}

// adding returns what adds elements of t's dtype: neighbours, and those at places.
func (t *Tensor) adding() (castFunc, placesFunc) {
	dt := t.dtype.computed()
	n := dt.numeric()
	if dt == t.dtype {
		return n.add, n.addAt
	}
	one, at := addingHalves(MakeF16)
	if t.dtype == BFloat16 {
		one, at = addingHalves(MakeBF16)
	}
	up, down := caster(dt, t.dtype), caster(t.dtype, dt)
	return func(dst []byte, ds int, src []byte, ss, m int) {
		if ds != 1 || ss != 1 { // elements of dst may be one
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

// addingHalves adds numbers as float32: one, and as addingAt.
func addingHalves[H interface {
	F16 | BF16
	Float32() float32
}](round func(float32) H) (one func(dst, src []byte), at placesFunc) {
	one = func(dst, src []byte) {
		d, s := typed[H](dst[:2]), typed[H](src[:2])
		d[0] = round(d[0].Float32() + s[0].Float32())
	}
	return one, func(dst, src []byte, at int, places []int, from, step int) {
		d, s := typed[H](dst)[at:], typed[H](src)
		for _, p := range places {
			d[p] = round(d[p].Float32() + s[from].Float32())
			from += step
		}
	}
}

// accumulate makes of f a function that changes elements by others, and rows by row.
func accumulate[T any](row rowFunc, f func(a, b T) T) castFunc {
	return func(dst []byte, ds int, src []byte, ss, n int) {
		d, s := typed[T](dst), typed[T](src)
		if ds == 1 && ss == 1 {
			row(raw(d[:n]), raw(d[:n]), raw(s[:n]), nil)
			return
		}
		for i := range n {
			d[i*ds] = f(d[i*ds], s[i*ss])
		}
	}
}

// IndexSelect returns the slices of t along dim that idx (Int64, one dimension or a single number)
// lists. It panics if an index is negative. Of a single number, idx lists one slice.
func IndexSelect(t *Tensor, dim int, idx *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		if idx.Numel() != 1 {
			misuse(ErrShape, "IndexSelect of a single number by %d indices", idx.Numel())
		}
		line := t.line()
		defer line.unline(t)
		return IndexSelect(line, dim, idx).shaped()
	}
	if len(idx.Shape()) == 0 {
		line := idx.line()
		defer line.unline(idx)
		return IndexSelect(t, dim, line)
	}
	wide := t.widened("IndexSelect", dim, idx)
	defer wide.forget()
	if out := t.selectPieces(t.axis(dim), idx, wide.Shape()); out != nil {
		return out
	}
	return t.gather("IndexSelect", dim, wide)
}

// selectPieces is IndexSelect of what is contiguous, where an index takes more of it than copying
// element by element does well. Otherwise it returns nil.
func (t *Tensor) selectPieces(dim int, idx *Tensor, shape []int) *Tensor {
	const from = 256 // bytes
	n := product(t.Shape()[dim+1:]) * t.dtype.Size()
	if n < from || idx.dtype != Int64 || !t.IsContiguous() || home([]*Tensor{t, idx}) != nil {
		return nil
	}
	out, size := Empty(t.dtype, shape...), t.Shape()[dim]
	to, src, index := out.span(), t.span(), typed[int64](idx.bytes())
	for range product(t.Shape()[:dim]) {
		for i := range idx.Shape()[0] {
			k := place(int(index[idx.offset+i*idx.Strides()[0]]), size, "IndexSelect")
			to = to[copy(to, src[k*n:][:n]):]
		}
		src = src[size*n:]
	}
	runtime.KeepAlive(t)
	runtime.KeepAlive(idx)
	return out
}

// IndexCopy copies slice i of src along dim to slice idx[i] of t, for each i. idx is Int64 and has
// one dimension, or is a single number. IndexCopy panics if an index is negative.
func (t *Tensor) IndexCopy(dim int, idx, src *Tensor) *Tensor {
	return t.scatterSlices("IndexCopy", dim, idx, src, copier(t.dtype.Size()))
}

// IndexAdd adds slice i of src along dim to slice idx[i] of t, for each i. idx is Int64 and has one
// dimension, or is a single number. If idx names a slice several times, all are added. IndexAdd
// panics if an index is negative.
func (t *Tensor) IndexAdd(dim int, idx, src *Tensor) *Tensor {
	return t.scatterSlices("IndexAdd", dim, idx, src, nil)
}

// scatterSlices is scatter of whole slices. Single numbers have one dimension here.
func (t *Tensor) scatterSlices(what string, dim int, idx, src *Tensor, move castFunc) *Tensor {
	to, at, from := t.line(), idx.line(), src.line()
	wide := to.widened(what, dim, at)
	wide.wantShape(what, from)
	to.scatter(what, dim, wide, from, move)
	wide.forget()
	to.unline(t)
	at.unline(idx)
	from.unline(src)
	return t
}

// widened returns idx, of one dimension, as indices along dim for all elements of t.
func (t *Tensor) widened(what string, dim int, idx *Tensor) *Tensor {
	if len(idx.Shape()) != 1 {
		misuse(ErrShape, "%s by indices of shape %v: want one dimension", what, idx.Shape())
	}
	dim = t.axis(dim)
	var room [2][2 * fewDims]int
	shape := append(room[0][:0], t.Shape()...)
	strides := slices.Grow(room[1][:0], len(shape))[:len(shape)]
	shape[dim], strides[dim] = idx.Shape()[0], idx.Strides()[0]
	return idx.peek(shape, strides, idx.offset)
}

func (t *Tensor) wantShape(what string, src *Tensor) {
	if !slices.Equal(t.Shape(), src.Shape()) {
		misuse(ErrShape, "%s of shape %v: want %v", what, src.Shape(), t.Shape())
	}
}

// Index returns the elements of t at the places that the index tensors (Int64) name together, as
// t[i, j] does in PyTorch. There is one index tensor for each of t's first dimensions. They are
// broadcast to one shape. The result has this shape, followed by t's other dimensions.
func Index(t *Tensor, idx ...*Tensor) *Tensor {
	if len(idx) == 0 || len(idx) > len(t.Shape()) {
		misuse(ErrShape, "Index of %d dimensions by %d tensors", len(t.Shape()), len(idx))
	}
	var few [2 * fewDims][]int
	shapes := few[:0]
	for _, i := range idx {
		i.want(Int64)
		shapes = append(shapes, i.Shape())
	}
	var room [2 * fewDims]int
	shape := broadcastInto(room[:0], shapes...)
	line := t.flattened(shape, idx).shaped(product(shape))
	defer line.release()
	rest := t.Shape()[len(idx):]
	var wide [2][2 * fewDims]int
	rows := append(append(wide[0][:0], product(t.Shape()[:len(idx)])), rest...)
	var picked *Tensor
	if strides, ok := t.restride(wide[1][:0], rows); ok {
		seen := t.peek(rows, strides, t.offset)
		defer seen.forget()
		picked = IndexSelect(seen, 0, line)
	} else {
		own := t.Clone().shaped(rows...)
		defer own.release()
		picked = IndexSelect(own, 0, line)
	}
	return picked.shaped(append(shape, rest...)...)
}

// flattened returns the places that indices name in t's first dimensions as if these were one.
func (t *Tensor) flattened(shape []int, idx []*Tensor) *Tensor {
	flat := idx[0].NewEmpty(Int64, shape...)
	if !backendOf(idx...).fuses() {
		flat.Zero()
	}
	for d, i := range idx {
		size, ok := t.Shape()[d], true
		if backendOf(idx...).fuses() {
			ok = flat.nextPlaces(i, size, d == 0)
		} else {
			n := Scalar(Int64, float64(size))
			if ok = Any(Or(Ge(i, n), Lt(i, Neg(n)))).Item() == 0; ok {
				flat.Mul(n).Add(Remainder(i, Maximum(n, Scalar(Int64, 1))))
			}
		}
		if !ok {
			misuse(ErrIndex, "Index %v is out of range of dimension %d of %v", i, d, t.Shape())
		}
	}
	return flat
}

// nextPlaces goes on from places in the dimensions before, unless there are none, to those by
// indices in one more of a size. It reports whether all indices are in range.
func (flat *Tensor) nextPlaces(idx *Tensor, size int, first bool) bool {
	ok := true
	rows{in: [3]DType{Int64, Int64}, out: Int64, run: func(out, x, y, _ []byte) {
		to, before, index := typed[int64](out), typed[int64](x), typed[int64](y)
		n, factor := int64(size), int64(size)
		if first {
			factor, before = 0, index
		}
		for i, k := range index[:len(to)] {
			k += k >> 63 & n
			ok = ok && uint64(k) < uint64(n)
			to[i] = before[i]*factor + k
		}
	}}.apply(flat, flat, idx)
	return ok
}
