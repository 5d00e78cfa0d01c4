package tensor

import (
	"cmp"
	"runtime"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// A walk iterates over the elements of an output and of up to three inputs with the same shape, row
// by row. Dimensions are sorted by the output's strides, and adjacent dimensions are merged if all
// operands allow it: contiguous tensors are a single row.
type walk struct {
	dims []walkDim
	at   [4]int // offsets of the operands; the output's is last
}

// A walkDim contains the strides of the operands; the output's is last.
type walkDim = device.Dim[[4]int]

const output = 3

// newWalk returns a walk over out and in, with in broadcast to the shape of out. It uses room for
// the dimensions if they fit.
func newWalk(room []walkDim, out *Tensor, in []*Tensor) walk {
	w := walk{dims: slices.Grow(room[:0], len(out.Shape()))}
	for d, n := range out.Shape() {
		if n != 1 {
			w.dims = append(w.dims, walkDim{Size: n, Steps: [4]int{output: out.Strides()[d]}})
		}
	}
	w.at[output] = out.offset
	var few [2 * fewDims]int
	for i, t := range in {
		w.at[i] = t.offset
		k := 0
		for d, step := range t.appendBroadcastStrides(few[:0], out.Shape()) {
			if out.Shape()[d] != 1 {
				w.dims[k].Steps[i] = step
				k++
			}
		}
	}
	slices.SortStableFunc(w.dims, func(a, b walkDim) int { return cmp.Compare(b.Steps[output], a.Steps[output]) })
	if w.dims = device.Merge(w.dims, stepsOf); len(w.dims) == 0 {
		w.dims = append(w.dims, walkDim{Size: 1, Steps: [4]int{1, 1, 1, 1}})
	}
	return w
}

func stepsOf(steps *[4]int) []int { return steps[:] }

// eachRow calls f for each row, with the positions of the row's first elements in the storages of
// the inputs and the output. A row is the last dimension of w.
func (w *walk) eachRow(f func(a, b, c, out int)) { w.visit(len(w.dims)-1, f) }

// visit calls f for each index in the first dims dimensions, with the positions of the operands'
// elements. It passes them one by one, in registers: copying an array would load two numbers at
// once, which stalls until both have been stored, after all stores of the previous row.
func (w *walk) visit(dims int, f func(a, b, c, out int)) {
	outer := w.dims[:dims]
	for _, d := range w.dims {
		if d.Size == 0 {
			return
		}
	}
	var few [2 * fewDims]int
	index := slices.Grow(few[:0], len(outer))[:len(outer)]
	at := w.at
	for {
		f(at[0], at[1], at[2], at[output])
		d := len(outer) - 1
		for ; d >= 0; d-- {
			index[d]++
			for i := range at {
				at[i] += outer[d].Steps[i]
			}
			if index[d] < outer[d].Size {
				break
			}
			for i := range at {
				at[i] -= outer[d].Size * outer[d].Steps[i]
			}
			index[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// A numbersFunc is a [rowFunc] with two numbers for all elements.
type numbersFunc = func(first, second float64, out, x, y []byte)

// rows is an elementwise operation on contiguous rows of the given dtypes. apply implements
// everything else: strides, broadcasting and other dtypes.
type rows struct {
	op  op // for devices
	in  [3]DType
	out DType
	run rowFunc

	// withNumbers is run for operations with two numbers for all elements, which are first and
	// second. A run that captures them would be allocated, because goroutines may call it.
	withNumbers   numbersFunc // nil for other operations
	first, second float64

	byOne  oneFunc // may be nil
	copies bool    // whether out equals the input
	serial bool    // whether run must not be called concurrently
}

// chunk is the number of elements that are converted or gathered at a time.
const chunk = 512

// bufferBytes is the part of a buffer that is used for one row, so that all buffers fit in the L1
// cache.
const bufferBytes = 8 * chunk

// buffers contains the temporary memory of an operation.
type buffers struct {
	rows [4][chunk * 16]byte
	dims [2 * fewDims]walkDim
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

// An operand is a tensor as an input or the output of rows.applyWalk, which reads or writes its
// rows in place, or through buf if they must be converted.
type operand struct {
	mem    []byte
	step   int      // distance between elements of a row
	apart  int      // distance between rows of a block
	size   int      // element size
	width  int      // element size in the computation
	cast   castFunc // nil if rows are used in place
	same   bool     // whether elements need no conversion
	buf    []byte
	filled bool // whether buf contains copies of the row's only element
}

// apply computes out from in and returns out. It copies inputs that the output would overwrite.
// It panics if several indices refer to one element of out.
func (r rows) apply(out *Tensor, in ...*Tensor) *Tensor {
	out.requireDistinct()
	var own [3]*Tensor
	for i, t := range in {
		own[i] = out.copyIfOverlapping(t)
	}
	r.applyApart(out, own, len(in))
	for i, t := range in {
		own[i].replaceWith(t)
	}
	return out
}

// applyApart computes out from own[:inputs] and returns out. The caller must have copied inputs
// that the output would overwrite, as apply does.
func (r rows) applyApart(out *Tensor, own [3]*Tensor, inputs int) *Tensor {
	in := own[:inputs]
	if dev := commonDevice(in); dev != nil || out.Device() != nil {
		return r.applyOnDevice(dev, out, slices.Clone(in))
	}
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	w := newWalk(bufs.dims[:], out, in)
	for i, t := range in {
		if !r.copies && t.dtype == r.in[i] && t.dtype.Size() <= 8 && w.transposedDim(i) >= 0 {
			in[i] = Empty(t.dtype, t.Shape()...).CopyFrom(t)
			defer in[i].release() // rare, and large
			w = newWalk(bufs.dims[:], out, in)
		}
	}
	defer runtime.KeepAlive(own[0]) // one by one: a defer in a loop allocates
	defer runtime.KeepAlive(own[1])
	defer runtime.KeepAlive(own[2])
	if workers := r.workerCount(&w); workers > 1 {
		r.applyParallel(workers, w, own, inputs, out)
	} else {
		r.applyWalk(&w, in, out, bufs)
	}
	return out.Touch()
}

// applyWalk computes the elements of a walk on the calling goroutine. bufs must not have another
// user meanwhile.
func (r rows) applyWalk(w *walk, in []*Tensor, out *Tensor, bufs *buffers) {
	if do := r.withNumbers; do != nil {
		first, second := r.first, r.second
		r.run = func(out, x, y, _ []byte) { do(first, second, out, x, y) }
	}
	row := w.dims[len(w.dims)-1]
	var ops [4]operand
	direct := true
	for i, t := range in {
		ops[i] = newOperand(t, r.in[i], row.Steps[i], bufs.rows[i][:], false)
		direct = direct && ops[i].cast == nil
	}
	ops[output] = newOperand(out, r.out, row.Steps[output], bufs.rows[output][:], true)
	direct = direct && ops[output].cast == nil
	if len(w.dims) > 1 && row.Size <= shortRow {
		r.applyBlocks(w, &ops, len(in))
		return
	}
	if one := r.loneOperand(&ops, row); one >= 0 {
		w.eachRow(func(x, number, _, out int) {
			if one == 0 {
				x, number = number, x
			}
			r.byOne(ops[output].bytesAt(out, row.Size), ops[1-one].bytesAt(x, row.Size), ops[one].bytesAt(number, 1))
		})
		return
	}
	if direct {
		n := row.Size
		w.eachRow(func(a, b, c, out int) {
			var y, z []byte
			if len(in) > 1 {
				y = ops[1].bytesAt(b, n)
			}
			if len(in) > 2 {
				z = ops[2].bytesAt(c, n)
			}
			r.run(ops[output].bytesAt(out, n), ops[0].bytesAt(a, n), y, z)
		})
		return
	}
	length := bufferBytes / max(ops[0].width, ops[1].width, ops[2].width, ops[output].width)
	if ops[output].cast == nil && r.copies {
		length = max(row.Size, 1) // no buffer is needed
	}
	w.eachRow(func(a, b, c, out int) {
		at := [4]int{a, b, c, out}
		for i := range len(in) {
			ops[i].filled = false
		}
		for from := 0; from < row.Size; from += length {
			r.applyChunk(&ops, &at, from, min(length, row.Size-from), len(in))
		}
	})
}

// loneOperand returns the index of the operand that has one element for a whole row, if the
// operation supports this, or -1.
func (r rows) loneOperand(ops *[4]operand, row walkDim) int {
	if r.byOne == nil || ops[output].cast != nil {
		return -1
	}
	for i := range 2 {
		if row.Steps[i] == 0 && ops[i].same && ops[1-i].cast == nil {
			return i
		}
	}
	return -1
}

// transposedDim returns the dimension along which the elements of operand i are adjacent, or -1 if
// this is the last dimension or a transposed copy would not be faster.
func (w *walk) transposedDim(i int) int {
	const from = 4096 // minimum number of elements
	last, n := len(w.dims)-1, 1
	for _, d := range w.dims {
		if d.Steps[i] == 0 {
			return -1 // a copy would be larger, or the rest is small
		}
		n *= d.Size
	}
	if n < from || w.dims[last].Steps[i] <= 1 || w.dims[last].Size < turnedFrom {
		return -1
	}
	return slices.IndexFunc(w.dims[:last], func(d walkDim) bool { return d.Steps[i] == 1 && d.Size >= turnedFrom })
}

func (r rows) applyChunk(ops *[4]operand, at *[4]int, from, n, inputs int) {
	// No buffer is needed.
	if x, o := &ops[0], &ops[output]; r.copies && o.cast == nil && x.cast != nil {
		to := o.bytesAt(at[output]+from, n)
		if x.step != 0 {
			x.readRow(at[0]+from*x.step, to, n)
			return
		}
		x.readRow(at[0], to[:o.width], 1)
		kernel.Repeat(to, to[:o.width])
		return
	}
	var in [3][]byte
	for i := range inputs {
		in[i] = ops[i].load(at[i], from, n)
	}
	o := &ops[output]
	if o.cast == nil {
		r.run(o.bytesAt(at[output]+from, n), in[0], in[1], in[2])
		return
	}
	b := o.buf[:n*o.width]
	r.run(b, in[0], in[1], in[2])
	o.store(at[output]+from*o.step, b)
}

func newOperand(t *Tensor, dt DType, step int, buf []byte, store bool) operand {
	o := operand{mem: t.bytes(), step: step, size: t.dtype.Size(), width: dt.Size(), buf: buf,
		same: dt == t.dtype}
	switch {
	case dt == t.dtype && step == 1:
	case store:
		o.cast = castFuncFor(t.dtype, dt)
	default:
		o.cast = castFuncFor(dt, t.dtype)
	}
	return o
}

func (o *operand) bytesAt(at, n int) []byte { return o.mem[at*o.size : (at+n)*o.size] }

// load returns the elements from to from+n-1 of the row that begins at element at, in the dtype of
// the computation. The result is valid until the next load, because it may refer to o.buf.
func (o *operand) load(at, from, n int) []byte {
	if o.cast == nil {
		return o.bytesAt(at+from, n)
	}
	b := o.buf[:n*o.width]
	if o.filled {
		return b
	}
	if o.step != 0 {
		return o.readRow(at+from*o.step, b, n)
	}
	o.cast(o.buf, 1, o.mem[at*o.size:], 1, 1)
	kernel.Repeat(b, b[:o.width])
	o.filled = true
	return b
}

// requireDistinct panics if several indices refer to one element of t, because t is about to be
// written.
func (t *Tensor) requireDistinct() {
	for i, n := range t.Shape() {
		if n > 1 && t.Strides()[i] == 0 {
			misuse(ErrMisuse, "write to an expanded tensor: Clone it first")
		}
	}
}

// copyIfOverlapping returns src, or a copy if writing to t would change elements of src before
// they are read. The caller must close a copy with replaceWith.
func (t *Tensor) copyIfOverlapping(src *Tensor) *Tensor {
	if !t.SameStorage(src) || t.offset == src.offset && slices.Equal(t.Strides(), src.Strides()) &&
		slices.Equal(t.Shape(), src.Shape()) {
		return src
	}
	lo, hi := t.byteRange()
	from, to := src.byteRange()
	if hi <= from || to <= lo {
		return src
	}
	return src.Clone()
}

// byteRange returns the range of the storage that contains t's elements, in bytes, or 0, 0 if t
// is empty.
func (t *Tensor) byteRange() (lo, hi int) {
	last := t.offset
	for i, n := range t.Shape() {
		if n == 0 {
			return 0, 0
		}
		last += (n - 1) * t.Strides()[i]
	}
	return t.offset * t.dtype.Size(), (last + 1) * t.dtype.Size()
}
