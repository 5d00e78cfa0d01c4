package tensor

import "github.com/shoal-mp/shoal/internal/kernel"

// shortRow is the maximum length of rows that are computed in blocks, because the overhead of a row
// equals hundreds of elements.
const shortRow = 64

// applyBlocks computes the elements of w, which must have at least two dimensions and rows of at
// most shortRow elements. It computes as many rows at a time as fit in the buffers. It reads
// operands with adjacent rows in place and copies others. inputs is the number of operands before
// the output.
func (r rows) applyBlocks(w *walk, ops *[4]operand, inputs int) {
	last := len(w.dims) - 1
	n, column := w.dims[last].Size, w.dims[last-1]
	for i := range ops {
		ops[i].apart = column.Steps[i]
	}
	w.visit(last-1, func(a, b, c, out int) {
		at := [4]int{a, b, c, out}
		for i := range inputs {
			ops[i].filled = false
		}
		for first := 0; first < column.Size; first += chunk / n {
			count := min(chunk/n, column.Size-first)
			var x [3][]byte
			for i := range inputs {
				x[i] = ops[i].readBlock(at[i]+first*ops[i].apart, count, n)
			}
			o := &ops[output]
			to := at[output] + first*o.apart
			if o.isDense(n) {
				r.run(o.bytesAt(to, count*n), x[0], x[1], x[2])
				continue
			}
			b := o.buf[:count*n*o.width]
			r.run(b, x[0], x[1], x[2])
			for i := range count {
				o.store(to+i*o.apart, b[i*n*o.width:][:n*o.width])
			}
		}
	})
}

// isDense reports whether rows of n elements are adjacent and need no conversion.
func (o *operand) isDense(n int) bool { return o.cast == nil && o.apart == n }

// readBlock returns count rows of n elements, in the dtype of the computation. The first row
// begins at element at. The result is valid until the next call, because it may refer to o.buf.
func (o *operand) readBlock(at, count, n int) []byte {
	if o.isDense(n) {
		return o.bytesAt(at, count*n)
	}
	b := o.buf[:count*n*o.width]
	switch {
	case o.filled:
	case o.apart == 0: // the same row repeated
		row := o.load(at, 0, n)
		kernel.Repeat(o.buf[:chunk/n*n*o.width], row)
		o.filled = true
	case o.step == 0: // each row is one element repeated
		o.cast(b, 1, o.mem[at*o.size:], o.apart, count)
		bySize(o.width, repeatElements[uint8], repeatElements[uint16], repeatElements[uint32],
			repeatElements[uint64], repeatElements[complex128])(b, count, n)
	default:
		for i := range count {
			copy(b[i*n*o.width:], o.readRow(at+i*o.apart, b[i*n*o.width:], n))
		}
	}
	return b
}

// readRow returns n elements from index at on. It converts them into room if necessary.
func (o *operand) readRow(at int, room []byte, n int) []byte {
	if o.cast == nil {
		return o.bytesAt(at, n)
	}
	o.cast(room, 1, o.mem[at*o.size:], o.step, n)
	return room[:n*o.width]
}

// store writes a row, in the dtype of the computation, to the tensor from element at on.
func (o *operand) store(at int, row []byte) {
	if o.cast == nil {
		copy(o.bytesAt(at, len(row)/o.width), row)
		return
	}
	o.cast(o.mem[at*o.size:], o.step, row, 1, len(row)/o.width)
}

// repeatElements repeats each of the first count elements n times. It runs from the last one
// backwards, so that it does not overwrite elements before it reads them.
func repeatElements[T any](b []byte, count, n int) {
	x := bytesAs[T](b)
	for i := count - 1; i >= 0; i-- {
		v, run := x[i], x[i*n:][:n]
		for j := range run {
			run[j] = v
		}
	}
}
