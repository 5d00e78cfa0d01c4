package tensor

import "github.com/shoal-mp/shoal/internal/kernel"

// The cost of an element in operations, for kernel.Workers.
const (
	cheapElement  = 4  // a copy, a conversion or one arithmetic operation
	costlyElement = 16 // an exponential or a similar function
)

// workerCount returns the number of goroutines that should compute w. It is at most 1 if the
// operation is small or serial; then the calling goroutine computes all of it.
func (r rows) workerCount(w *walk) int {
	cost := cheapElement
	if r.op.isCostly() {
		cost = costlyElement
	}
	_, parts := w.dividedDim()
	if r.serial {
		return 1
	}
	return kernel.Workers(parts, w.countElements()*cost)
}

// isCostly reports whether computing an element with o takes longer than loading it from memory.
func (o op) isCostly() bool {
	row := operations[o]
	switch o {
	case opExp, opSigmoid, opTanh, opPower, opRemainder, opFloorDivide:
		return true
	}
	return row.float2 != nil || row.kernel != nil && *row.kernel > kernel.Trunc
}

// countElements returns the number of elements of w.
func (w *walk) countElements() int {
	n := 1
	for _, d := range w.dims {
		n *= d.Size
	}
	return n
}

// dividedDim returns the dimension along which goroutines divide w, and the maximum number of
// parts. Elements of a row are divided only at multiples of chunk, so that vector instructions
// process the same elements together for any number of goroutines.
func (w *walk) dividedDim() (dim, parts int) {
	last := len(w.dims) - 1
	dim, parts = last, w.dims[last].Size/chunk
	for i, d := range w.dims[:last] {
		if d.Size > parts {
			dim, parts = i, d.Size
		}
	}
	return dim, parts
}

// parallel divides w into parts for the given number of goroutines, calls do for each part with
// buffers of its own, and returns when all calls have returned. part and bufs are only valid
// during the call. w is a copy, because it escapes to the heap.
func (w walk) parallel(workers int, do func(part *walk, bufs *buffers)) {
	dim, _ := w.dividedDim()
	align := 1
	if dim == len(w.dims)-1 {
		align = chunk
	}
	kernel.Divide(workers, w.dims[dim].Size, align, func(lo, hi int) {
		bufs := bufferPool.Get().(*buffers)
		defer bufferPool.Put(bufs)
		part := walk{dims: append(bufs.dims[:0], w.dims...), at: w.at}
		d := &part.dims[dim]
		d.Size = hi - lo
		for i := range part.at {
			part.at[i] += lo * d.Steps[i]
		}
		do(&part, bufs)
	})
}

// applyParallel computes the elements of a walk on the given number of goroutines, from
// own[:inputs] to out.
func (r rows) applyParallel(workers int, w walk, own [3]*Tensor, inputs int, out *Tensor) {
	w.parallel(workers, func(part *walk, bufs *buffers) { r.applyWalk(part, own[:inputs], out, bufs) })
}
