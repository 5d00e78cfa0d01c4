package tensor

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// A reduction reduces a row of elements to one.
type reduction device.Reduction

const (
	redSum    = reduction(device.Sum)
	redProd   = reduction(device.Prod)
	redMax    = reduction(device.Max)
	redMin    = reduction(device.Min)
	redArgmax = reduction(device.Argmax)
	redArgmin = reduction(device.Argmin)
	redVar    = reduction(device.Var)

	reductions = device.Reductions
)

// String returns the name of the function that applies the reduction. It is Var for both Var and
// Std.
func (r reduction) String() string { return device.Reduction(r).String() }

// A foldFunc sets each element of out to the reduction of one row of n elements.
type foldFunc = func(out, rows []byte, n int)

func rowFold[T, R any](f func(row []T) R) foldFunc {
	return func(out, rows []byte, n int) {
		r, x := bytesAs[R](out), bytesAs[T](rows)
		for i := range r {
			r[i] = f(x[i*n : (i+1)*n])
		}
	}
}

// A columnsFunc reduces the columns of x, which has rows ld elements apart, and combines the
// results with the elements of to. A sum is accumulated only in double precision if exact is
// true, which is slower.
type columnsFunc = func(rows, cols int, x []byte, ld int, to []byte, exact bool)

func columnFold[T any](f func(rows, cols int, x []T, ld int, to []T)) columnsFunc {
	return func(rows, cols int, x []byte, ld int, to []byte, _ bool) {
		f(rows, cols, bytesAs[T](x), ld, bytesAs[T](to))
	}
}

// A fold is the implementation on the host of a reduction, from elements of dtype in to a result
// of dtype out. foldFor returns it.
type fold struct {
	in, out DType
	run     foldFunc
	sums    bool     // whether the reduction is a sum
	again   foldFunc // reduces the results of parts of a row; may be nil
}

// foldFor returns the fold for elements of dt. It panics if r is not defined for dt.
func (r reduction) foldFor(dt DType) fold {
	in := dt.computeDType()
	n := in.numericLoops()
	f := fold{in: in, out: in, run: n.folds[r], sums: r == redSum}
	switch r {
	case redSum, redProd, redVar:
		f.out = n.total
	case redArgmax, redArgmin:
		f.out = Int64
	}
	if _, ok := combines[r]; ok {
		f.again = f.out.numericLoops().folds[r]
	}
	if f.run == nil {
		misuse(ErrOperand, "%v is not defined for a tensor of %v: convert it with To first", r, dt)
	}
	return f
}

// combines maps a reduction to the operation that combines the results of two parts of a row.
var combines = map[reduction]op{redSum: opAdd, redProd: opMul, redMax: opMaximum, redMin: opMinimum}

// wideRow is the minimum number of elements for which adding whole rows is faster than copying
// columns into rows.
const wideRow = 64

// reduceDims returns a new tensor without the given dimensions of t, which it reduces. It reduces
// all dimensions if there are none.
func (r reduction) reduceDims(t *Tensor, dims []int) *Tensor { return backendOf(t).reduce(r, t, dims) }

// reduceLoops implements reduceDims on the host. If partial results can be combined, it reduces
// the last dimensions first, because their elements are often adjacent and the intermediate
// result is small.
func (r reduction) reduceLoops(t *Tensor, reduced axes) *Tensor {
	f := r.foldFor(t.dtype)
	combine, ok := combines[r]
	first, last := bits.TrailingZeros64(uint64(reduced)), len(t.Shape())
	for last > 0 && reduced.has(last-1) {
		last--
	}
	switch {
	case r.isIdempotent() && t.repeatsAlong(reduced):
		once := t.withoutRepeats(reduced)
		defer once.releaseView()
		return r.reduceLoops(once, reduced)
	case ok && last < len(t.Shape()) && t.Numel() > 0 && t.hasWideRow(reduced):
		return r.firstDims(t, reduced)
	case !ok || first >= last || t.Numel() == 0: // only last dimensions are reduced
	case t.hasGaps() && t.Numel() > chunk: // an ordered copy is faster than a copy of columns as rows
		dense := Empty(t.dtype, t.Shape()...).CopyFrom(t)
		defer dense.release()
		return r.reduceLoops(dense, reduced)
	case last < len(t.Shape()):
		part := f.reduceRows(t, reduced>>last<<last)
		return part.replaceWith(r.reduceLoops(part, reduced&(1<<last-1)))
	case t.hasWideRow(reduced) && slices.Min(t.Strides()) > 0:
		part := f.combineSlices(r, combine, t, first)
		if rest := reduced >> (first + 1) << first; rest != 0 {
			return part.replaceWith(r.reduceLoops(part, rest))
		}
		return part
	}
	return f.reduceRows(t, reduced)
}

// isIdempotent reports whether duplicates of an element do not change the result.
func (r reduction) isIdempotent() bool {
	return r == redMax || r == redMin || r == redArgmax || r == redArgmin
}

// repeatsAlong reports whether elements repeat along one of the dimensions, as after Expand.
func (t *Tensor) repeatsAlong(dims axes) bool {
	for d, n := range t.Shape() {
		if dims.has(d) && n > 1 && t.Strides()[d] == 0 {
			return true
		}
	}
	return false
}

// withoutRepeats returns a view of t with size 1 in those of the given dimensions along which
// elements repeat. The caller must release it with releaseView.
func (t *Tensor) withoutRepeats(dims axes) *Tensor {
	var room [2 * fewDims]int
	shape := append(room[:0], t.Shape()...)
	for d, n := range shape {
		if dims.has(d) && t.Strides()[d] == 0 {
			shape[d] = min(n, 1)
		}
	}
	return t.borrowView(shape, t.Strides(), t.offset)
}

// hasWideRow reports whether the last dimensions that are not reduced form adjacent rows of at
// least wideRow elements.
func (t *Tensor) hasWideRow(reduced axes) bool {
	n := 1
	for d := len(t.Shape()) - 1; d >= 0; d-- {
		if reduced.has(d) {
			if n > 1 {
				break
			}
			continue
		}
		if t.Shape()[d] != 1 && t.Strides()[d] != n {
			break
		}
		n *= t.Shape()[d]
	}
	return n >= wideRow
}

// hasGaps reports whether no two elements are adjacent in memory.
func (t *Tensor) hasGaps() bool {
	for d, step := range t.Strides() {
		if step <= 1 && t.Shape()[d] > 1 {
			return false
		}
	}
	return true
}

// firstDims implements reduceLoops by a permutation of t's dimensions: the reduced ones come
// first.
func (r reduction) firstDims(t *Tensor, reduced axes) *Tensor {
	var room [3][2 * fewDims]int
	order, n := room[0][:0], bits.OnesCount64(uint64(reduced))
	for _, gone := range []bool{true, false} {
		for d := range t.Shape() {
			if reduced.has(d) == gone {
				order = append(order, d)
			}
		}
	}
	turned := t.borrowView(appendPicked(room[1][:0], t.Shape(), order),
		appendPicked(room[2][:0], t.Strides(), order), t.offset)
	defer turned.releaseView()
	return r.reduceLoops(turned, 1<<n-1)
}

// axes is a bit set of dimensions.
type axes uint64

func (a axes) has(i int) bool { return a>>i&1 != 0 }

// combineSlices returns a new tensor without dimension dim of t, which it reduces with o, one
// slice after the other. f must be the fold of r, and o the operation of r in combines.
func (f fold) combineSlices(r reduction, o op, t *Tensor, dim int) *Tensor {
	var room [4][2 * fewDims]int
	shape := slices.Delete(append(room[0][:0], t.Shape()...), dim, dim+1)
	strides := slices.Delete(append(room[1][:0], t.Strides()...), dim, dim+1)
	begin := t.borrowView(shape, strides, t.offset)
	defer begin.releaseView()
	out := Empty(f.out, shape...)
	start := func() { out.CopyFrom(begin) }
	skip := 1 // the initial value of out
	if r == redSum && f.in.numericLoops().columns[r] != nil {
		start, skip = func() { out.Zero() }, 0
	}
	start()
	if t.Shape()[dim] == skip {
		return out
	}
	rest := append(room[2][:0], t.Shape()...)
	over := slices.Insert(append(room[3][:0], out.Strides()...), dim, 0)
	rest[dim] -= skip
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	from, to := t.borrowView(rest, t.Strides(), t.offset+skip*t.Strides()[dim]), out.borrowView(rest, over, 0)
	w := newWalk(bufs.dims[:], from, []*Tensor{to})
	from.releaseView()
	to.releaseView()
	row := w.dims[len(w.dims)-1]
	sums, size := out.contiguousBytes(), f.out.Size()
	defer runtime.KeepAlive(t)
	if do := f.in.numericLoops().columns[r]; do != nil && t.dtype == f.in && row.Steps[output] == 1 &&
		row.Steps[0] == 1 {
		from, rows, ld := t.bytes(), 1, 0
		if d := len(w.dims) - 2; d >= 0 && w.dims[d].Steps[0] == 0 { // rows with common sums
			rows, ld = w.dims[d].Size, w.dims[d].Steps[output]
			w.dims = slices.Delete(w.dims, d, d+1)
		}
		add := func(exact bool) {
			w.eachRow(func(to, _, _, at int) {
				do(rows, row.Size, from[at*t.dtype.Size():], ld, sums[to*size:], exact)
			})
		}
		if add(false); r == redSum && !kernel.Finite(bytesAs[float64](sums)) {
			start()
			add(true)
		}
		return out
	}
	x := newOperand(t, f.out, row.Steps[output], bufs.rows[0][:chunk*size], false)
	step := o.loopsFor(f.out).run
	w.eachRow(func(to, _, _, at int) {
		for from := 0; from < row.Size; from += chunk {
			n := min(chunk, row.Size-from)
			sum := sums[(to+from)*size:][:n*size]
			step(sum, sum, x.load(at, from, n), nil)
		}
	})
	return out
}

// reduceRows returns a new tensor without the reduced dimensions of t. It arranges the dimensions
// as rows, which costs a copy unless they are rows already, and reduces the rows. Reduced
// dimensions may have any order, so it uses their memory order.
func (f fold) reduceRows(t *Tensor, reduced axes) *Tensor {
	var room [2][2 * fewDims]int
	order, shape := room[0][:0], room[1][:0]
	n := 1
	for i, size := range t.Shape() {
		if !reduced.has(i) {
			order, shape = append(order, i), append(shape, size)
		}
	}
	for i, size := range t.Shape() {
		if reduced.has(i) {
			order = append(order, i)
			n *= size
		}
	}
	slices.SortStableFunc(order[len(shape):], func(a, b int) int { return cmp.Compare(t.Strides()[b], t.Strides()[a]) })
	out := Empty(f.out, shape...)
	if t.dtype != f.in && (n <= pieceOf(f.in) || f.again != nil) {
		rows := t.rowsOf(t.dtype, order)
		if !f.sums || !shortSums(out, rows, n) {
			f.reducePieces(out, rows, n)
		}
		rows.releaseRows(t)
		return out
	}
	if t.dtype == f.in && f.reduceInPlace(out, t, order, n) {
		return out
	}
	rows := t.rowsOf(f.in, order)
	f.reduceContiguous(out.contiguousBytes(), rows.contiguousBytes(), n)
	rows.releaseRows(t)
	return out
}

// reduceContiguous sets each element of out to the reduction of one of the contiguous rows of n
// elements. Goroutines divide the rows.
func (f fold) reduceContiguous(out, rows []byte, n int) {
	count, wide, size := len(out)/f.out.Size(), f.out.Size(), f.in.Size()
	if workers := kernel.Workers(count, count*n*cheapElement); workers > 1 {
		kernel.Divide(workers, count, 1, func(lo, hi int) { f.run(out[lo*wide:hi*wide], rows[lo*n*size:hi*n*size], n) })
	} else {
		f.run(out, rows, n)
	}
}

// reduceInPlace reduces rows of n elements without a copy, one by one, if each row is contiguous.
// order lists the dimensions of t: first the dimensions of out, and then the reduced ones.
// reduceInPlace does nothing and returns false if rows are not contiguous, or if they are short
// or adjacent, because such rows should be reduced together.
func (f fold) reduceInPlace(out, t *Tensor, order []int, n int) bool {
	var room [2][2 * fewDims]int
	rows := t.borrowView(appendPicked(room[0][:0], t.Shape(), order), appendPicked(room[1][:0], t.Strides(), order),
		t.offset)
	defer rows.releaseView()
	kept := len(out.Shape())
	row := rows.borrowView(rows.Shape()[kept:], rows.Strides()[kept:], 0)
	defer row.releaseView()
	if n <= shortRow || rows.IsContiguous() || !row.IsContiguous() || out.Numel() == 0 {
		return false
	}
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	begins := rows.borrowView(rows.Shape()[:kept], rows.Strides()[:kept], t.offset)
	defer begins.releaseView()
	w := newWalk(bufs.dims[:], out, []*Tensor{begins})
	from, to, size, wide := t.bytes(), out.contiguousBytes(), t.dtype.Size(), f.out.Size()
	w.visit(len(w.dims), func(at, _, _, sum int) { f.run(to[sum*wide:][:wide], from[at*size:][:n*size], n) })
	runtime.KeepAlive(t)
	return true
}

// pieceOf returns the number of elements of dt that are converted at a time before they are
// reduced.
func pieceOf(dt DType) int { return chunk * 16 / dt.Size() }

// reducePieces converts and reduces rows of n elements of another dtype. It converts as many
// rows, or as much of one row, as fits in a buffer. f.again must not be nil if n exceeds
// pieceOf(f.in).
func (f fold) reducePieces(out, rows *Tensor, n int) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	from, to, piece := rows.contiguousBytes(), out.contiguousBytes(), pieceOf(f.in)
	convert, size, wide := castFuncFor(f.in, rows.dtype), rows.dtype.Size(), f.out.Size()
	if n <= piece {
		for many := piece / max(n, 1); len(to) > 0; {
			count := min(many, len(to)/wide)
			buf := bufs.rows[0][:count*n*f.in.Size()]
			convert(buf, 1, from, 1, count*n)
			f.run(to[:count*wide], buf, n)
			from, to = from[count*n*size:], to[count*wide:]
		}
		return
	}
	parts := Empty(f.out, (n+piece-1)/piece)
	defer parts.release()
	for ; len(to) > 0; to = to[wide:] {
		for i := 0; i*piece < n; i++ {
			count := min(piece, n-i*piece)
			buf := bufs.rows[0][:count*f.in.Size()]
			convert(buf, 1, from, 1, count)
			f.run(parts.contiguousBytes()[i*wide:][:wide], buf, count)
			from = from[count*size:]
		}
		f.again(to[:wide], parts.contiguousBytes(), parts.Numel())
	}
}

// rowsOf returns a contiguous tensor with the dimensions of t in the given order and dtype dt: a
// view if possible. The caller must release it with releaseRows.
func (t *Tensor) rowsOf(dt DType, order []int) *Tensor {
	var room [2][2 * fewDims]int
	rows := t.borrowView(appendPicked(room[0][:0], t.Shape(), order), appendPicked(room[1][:0], t.Strides(), order),
		t.offset)
	if t.dtype != dt || !rows.IsContiguous() {
		dense := Empty(dt, rows.Shape()...).CopyFrom(rows)
		rows.releaseView()
		return dense
	}
	return rows
}

// releaseRows releases rows, which rowsOf returned for t.
func (rows *Tensor) releaseRows(t *Tensor) {
	if rows.SameStorage(t) {
		rows.releaseView()
	} else {
		rows.release()
	}
	runtime.KeepAlive(t)
}

// appendPicked appends the elements of s at the indices in order to room.
func appendPicked(room, s, order []int) []int {
	for _, i := range order {
		room = append(room, s[i])
	}
	return room
}

// dimSet returns the set of the given dimensions, or of all dimensions if there are none. A scalar
// has a dimension 0 here, as in PyTorch. It panics if a dimension is listed twice.
func (t *Tensor) dimSet(dims []int) (named axes) {
	if len(t.Shape()) == 0 {
		if len(dims) == 1 {
			wrapIndex(dims[0], 1, "dimension")
			dims = nil
		}
	}
	if len(dims) == 0 {
		return 1<<len(t.Shape()) - 1
	}
	for _, d := range dims {
		if d = t.resolveDim(d); named.has(d) {
			misuse(ErrIndex, "dimension %d is repeated in %v", d, slices.Clone(dims))
		}
		named |= 1 << d
	}
	return named
}

// countReduced returns how many elements are reduced to one when dims are reduced.
func (t *Tensor) countReduced(dims []int) int {
	n, named := 1, t.dimSet(dims)
	for i, size := range t.Shape() {
		if named.has(i) {
			n *= size
		}
	}
	return n
}
