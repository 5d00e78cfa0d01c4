package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
)

// New returns a tensor of zeros on the heap, like torch.zeros. It panics if dt or shape is
// invalid, and with an error that wraps [ErrMemory] if the tensor exceeds the memory of the
// machine.
func New(dt DType, shape ...int) *Tensor {
	return contiguous(newHeap(checkShape(dt, shape)), dt, shape)
}

// contiguous returns the first tensor of a storage, in row-major order from its first byte. The
// storage must be new and not visible to other goroutines.
func contiguous(s *Storage, dt DType, shape []int) *Tensor {
	s.addFirstView()
	return newContiguous(s, dt, shape)
}

// Empty returns a tensor on the heap with uninitialized elements. The caller should write all
// elements next. Empty panics under the same conditions as [New].
func Empty(dt DType, shape ...int) *Tensor {
	return contiguous(newHeapStorage(checkShape(dt, shape)), dt, shape)
}

// Ones returns a tensor of ones on the heap.
func Ones(dt DType, shape ...int) *Tensor { return Full(dt, 1, shape...) }

// requireNumber panics if v overflows an integer dtype. Negative numbers wrap around in unsigned
// dtypes, as in PyTorch. what is the name of the operation in the error.
func (d DType) requireNumber(what string, v float64) {
	if !d.isInteger() {
		return
	}
	least, most := d.integerRange()
	if least == 0 {
		least = -most
	}
	if !(v >= least && v <= most) {
		misuse(ErrArgument, "%s: %v overflows %v", what, v, d)
	}
}

// Full returns a tensor on the heap with all elements set to v. v must be in the range of an
// integer dtype.
func Full(dt DType, v float64, shape ...int) *Tensor { return Empty(dt, shape...).Fill(v) }

// Scalar returns a tensor without dimensions that contains v, converted to dt as by [Tensor.To].
func Scalar(dt DType, v float64) *Tensor {
	t := New(dt)
	switch dt {
	case Float64:
		bytesAs[float64](t.contiguousBytes())[0] = v
	case Float32:
		bytesAs[float32](t.contiguousBytes())[0] = float32(v)
	default:
		castFuncFor(dt, Float64)(t.contiguousBytes(), 1, rawBytes([]float64{v}), 1, 1)
	}
	return t
}

// Arange returns a tensor with the numbers start, start+step and so on, up to but excluding end.
// For integer dtypes, start and step are truncated after the numbers have been counted, as in
// PyTorch. Arange panics if the steps never reach end.
func Arange(dt DType, start, end, step float64) *Tensor {
	return Empty(dt, checkedStepCount(dt, start, end, step)).fillArithmetic(start, step)
}

// checkedStepCount returns the number of elements of Arange. It panics with ErrOperand or
// ErrArgument if Arange does not accept the arguments.
func checkedStepCount(dt DType, start, end, step float64) int {
	if dt.promotionRank() == 0 || dt.promotionRank() > 2 {
		misuse(ErrOperand, "Arange: got dtype %v, want integers or floats", dt)
	}
	n := stepCount(start, end, step)
	dt.requireNumber("Arange", start)
	dt.requireNumber("Arange", end)
	dt.requireNumber("Arange", step)
	return n
}

// stepCount returns the number of elements of Arange. It panics with ErrArgument if the steps
// never reach end.
func stepCount(start, end, step float64) int {
	n := math.Ceil((end - start) / step)
	away := start < end && step < 0 || start > end && step > 0
	if !(n >= 0) || math.IsInf(n, 0) || away {
		misuse(ErrArgument, "Arange: step from %v to %v by %v never reaches the end", start, end, step)
	}
	return int(n)
}

// fillArithmetic sets the elements of t, which must have one dimension, to start, start+step and
// so on, and returns t.
func (t *Tensor) fillArithmetic(start, step float64) *Tensor {
	if t.dtype.isInteger() {
		start, step = math.Trunc(start), math.Trunc(step)
	}
	backendOf(t).generate(t, nil, device.Sequence{Kind: device.Arithmetic, A: start, B: step}, func() {
		if t.dtype == Int64 && isWhole(start) && isWhole(step) && isWhole(start+step*float64(t.Numel())) {
			t.fillCount64(int64(start), int64(step))
			return
		}
		t.fillPieces(func(first int, to []float64) {
			for i := range to {
				to[i] = start + float64(first+i)*step
			}
		})
	})
	return t
}

// isWhole reports whether v is an integer in the range in which float64 represents all integers.
func isWhole(v float64) bool { return v == math.Trunc(v) && math.Abs(v) < 1<<53 }

// fillCount64 sets the elements of t, which must be Int64, to start, start+step and so on. It
// computes each piece by adding a constant to the previous one.
func (t *Tensor) fillCount64(start, step int64) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	to, leap := bytesAs[int64](t.contiguousBytes()), bytesAs[int64](bufs.rows[0][:bufferBytes])
	n := min(len(leap), len(to))
	for i := range to[:n] {
		to[i], leap[i] = start+int64(i)*step, int64(n)*step
	}
	for at := n; at < len(to); at += n {
		next := to[at:min(at+n, len(to))]
		opAdd.loopsFor(Int64).run(rawBytes(next), rawBytes(to[at-n:][:len(next)]), rawBytes(leap[:len(next)]), nil)
	}
	t.Touch()
}

// fillPieces fills t, which must be contiguous, piece by piece. next computes the elements from
// index first on.
func (t *Tensor) fillPieces(next func(first int, to []float64)) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	size, convert, to := t.dtype.Size(), castFuncFor(t.dtype, Float64), t.contiguousBytes()
	piece := bytesAs[float64](bufs.rows[0][:bufferBytes])
	for first := 0; first < t.Numel(); first += len(piece) {
		n := min(len(piece), t.Numel()-first)
		next(first, piece[:n])
		convert(to[first*size:], 1, rawBytes(piece[:n]), 1, n)
	}
	t.Touch()
}

// Linspace returns n numbers with equal steps between them, from start to end inclusive. For
// integer dtypes, start and end are truncated first, and then the numbers, as in PyTorch.
func Linspace(dt DType, start, end float64, n int) *Tensor {
	switch {
	case n < 0:
		misuse(ErrArgument, "Linspace: got %d numbers, want at least 0", n)
	case dt == Bool:
		misuse(ErrOperand, "Linspace: got dtype %v, want numbers", dt)
	case dt.isInteger():
		dt.requireNumber("Linspace", start)
		dt.requireNumber("Linspace", end)
		start, end = math.Trunc(start), math.Trunc(end)
	}
	t, step := Empty(dt, n), (end-start)/float64(max(1, n-1))
	// count from both ends, so that truncated integers equal PyTorch's
	t.fillPieces(func(first int, to []float64) {
		half := len(to)
		if n > 1 {
			half = min(max(n/2-first, 0), len(to))
		}
		for i := range to[:half] {
			to[i] = start + float64(step*float64(first+i))
		}
		for i := half; i < len(to); i++ {
			to[i] = end - float64(step*float64(n-1-first-i))
		}
	})
	return t
}

// Eye returns the n×n identity matrix.
func Eye(dt DType, n int) *Tensor {
	t := New(dt, n, n)
	t.borrowView([]int{n}, []int{n + 1}, 0).Fill(1)
	return t
}

// FromSlice returns a tensor with data as its storage, without a copy. Writes to one are visible in
// the other until the tensor is shared. FromSlice panics if the number of elements does not match
// the shape.
func FromSlice[T Elem](data []T, shape ...int) *Tensor {
	dt := DTypeOf[T]()
	checkShape(dt, shape)
	if product(shape) != len(data) {
		misuse(ErrShape, "FromSlice: %d elements do not fill shape %v", len(data), slices.Clone(shape))
	}
	return contiguous(newStorageOver(rawBytes(data)), dt, shape)
}

// NewShared returns a tensor of zeros in shared memory. The caller must close the tensor. The error
// wraps shm.ErrNoSpace if the domain is full.
func NewShared(dt DType, shape ...int) (*Tensor, error) {
	t, err := EmptyShared(dt, shape...)
	if err != nil {
		return nil, err
	}
	clear(t.contiguousBytes())
	return t, nil
}

// EmptyShared returns a tensor in shared memory with uninitialized elements. The caller must close
// the tensor. The error wraps shm.ErrNoSpace if the domain is full.
func EmptyShared(dt DType, shape ...int) (*Tensor, error) {
	s, err := newShared(checkShape(dt, shape))
	if err != nil {
		return nil, fmt.Errorf("new shared tensor of %v %v: %w", dt, slices.Clone(shape), err)
	}
	t := newContiguous(s, dt, shape)
	t.describeBlock()
	return t, nil
}
