package tensor

import (
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// copyRows copies the elements of src, which must have t's dtype, in whole rows or by
// transposition. It supports contiguous rows, reversed rows, and rows of one tensor that are
// columns of the other. Otherwise it does nothing and returns false. src must not overlap t.
func (t *Tensor) copyRows(src *Tensor) bool {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	w := newWalk(bufs.dims[:], t, []*Tensor{src})
	last := len(w.dims) - 1
	row, size := w.dims[last], t.dtype.Size()
	if row.Steps[output] != 1 {
		return false
	}
	dst, from := t.bytes(), src.bytes()
	if row.Steps[0] == 1 {
		if row.Size <= shortRow && last > 0 {
			return false
		}
		if workers := kernel.Workers(w.dims[0].Size, w.countElements()*cheapElement); workers > 1 {
			w.copyParallel(workers, size, dst, from)
			return true
		}
		w.eachRow(func(at, _, _, to int) {
			copy(dst[to*size:][:row.Size*size], from[at*size:])
		})
		return true
	}
	if row.Steps[0] == -1 {
		reverse := bySize(size, reverseElements[uint8], reverseElements[uint16], reverseElements[uint32],
			reverseElements[uint64],
			reverseElements[complex128])
		w.eachRow(func(at, _, _, to int) {
			reverse(dst[to*size:][:row.Size*size], from[(at-row.Size+1)*size:])
		})
		return true
	}
	column, ok := w.removeColumn()
	turn := transposerFor(size)
	if !ok || turn == nil {
		return false
	}
	w.eachRow(func(at, _, _, to int) {
		const cost = 8 // operations of an element
		if workers := kernel.Workers(column.Size/transposeBlock, row.Size*column.Size*cost); workers > 1 {
			turnParallel(workers, turn, row, column, size, from[at*size:], dst[to*size:])
		} else {
			turn(row.Size, column.Size, from[at*size:], row.Steps[0], dst[to*size:], column.Steps[output])
		}
	})
	return true
}

// copyParallel copies the rows of w, which are contiguous, on several goroutines.
func (w walk) copyParallel(workers, size int, dst, src []byte) {
	w.parallel(workers, func(part *walk, _ *buffers) {
		n := part.dims[len(part.dims)-1].Size * size
		part.eachRow(func(at, _, _, to int) { copy(dst[to*size:][:n], src[at*size:]) })
	})
}

// transposeBlock is a number of columns. A goroutine transposes a multiple of it.
const transposeBlock = 32

// A transposeFunc transposes rows of src into columns of dst. lds and ldd are the distances between
// the rows of src and of dst, in elements.
type transposeFunc = func(rows, cols int, src []byte, lds int, dst []byte, ldd int)

// turnParallel transposes a matrix on the given number of goroutines. row and column are the
// dimensions of a walk along which elements of dst and of src are adjacent; size is the element
// size in bytes.
func turnParallel(workers int, turn transposeFunc, row, column walkDim, size int, src, dst []byte) {
	kernel.Divide(workers, column.Size, transposeBlock, func(lo, hi int) {
		turn(row.Size, hi-lo, src[lo*size:], row.Steps[0], dst[lo*column.Steps[output]*size:], column.Steps[output])
	})
}

// turnedFrom is the minimum number of rows and columns for which transposition is faster.
const turnedFrom = 4

// removeColumn removes the dimension along which elements of the input are adjacent from w, and
// returns it. It does nothing and returns false if this is the last dimension, along which
// elements of the output are adjacent, or if w is too small to be transposed.
func (w *walk) removeColumn() (walkDim, bool) {
	last := len(w.dims) - 1
	for i, d := range w.dims[:last] {
		if d.Steps[0] == 1 && min(d.Size, w.dims[last].Size) >= turnedFrom && w.dims[last].Steps[0] > 0 {
			w.dims = append(w.dims[:i], w.dims[i+1:]...)
			return d, true
		}
	}
	return walkDim{}, false
}

func transposeFloats[F kernel.Float](rows, cols int, src []byte, lds int, dst []byte, ldd int) {
	kernel.Transpose(rows, cols, bytesAs[F](src), lds, bytesAs[F](dst), ldd)
}

// reverseElements sets dst to the first len(dst) bytes of src with the elements in reverse order.
func reverseElements[T any](dst, src []byte) {
	var one T
	size := int(unsafe.Sizeof(one))
	to, from := bytesAs[T](dst), bytesAs[T](src[:len(dst)])
	for i := kernel.Reverse(size, dst, src) / size; i < len(to); i++ {
		to[i] = from[len(from)-1-i]
	}
}

// transposerFor returns the function that transposes elements of a size in bytes, or nil for 16
// bytes.
func transposerFor(size int) transposeFunc {
	return bySize(size, kernel.TransposeBytes, kernel.TransposePairs, transposeFloats[float32],
		transposeFloats[float64], nil)
}
