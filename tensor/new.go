package tensor

import (
	"fmt"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
)

// New returns a tensor of zeros on the heap, like torch.zeros.
func New(dt DType, shape ...int) *Tensor {
	return contiguous(newHeap(checkShape(dt, shape)), dt, shape)
}

// contiguous returns the first tensor of a new storage.
func contiguous(s *Storage, dt DType, shape []int) *Tensor {
	s.begin()
	return newContiguous(s, dt, shape)
}

// Empty returns a tensor on the heap with uninitialized elements. The caller should write all
// elements next.
func Empty(dt DType, shape ...int) *Tensor {
	return contiguous(emptyHeap(checkShape(dt, shape)), dt, shape)
}

// Ones returns a tensor of ones on the heap.
func Ones(dt DType, shape ...int) *Tensor { return Full(dt, 1, shape...) }

// wantNumber panics if v overflows an integer dtype. Negative numbers wrap around in unsigned
// dtypes, as in PyTorch.
func (d DType) wantNumber(what string, v float64) {
	if !d.isInteger() {
		return
	}
	least, most := d.limits()
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

// Scalar returns a tensor without dimensions that contains v.
func Scalar(dt DType, v float64) *Tensor {
	t := New(dt)
	switch dt {
	case Float64:
		typed[float64](t.span())[0] = v
	case Float32:
		typed[float32](t.span())[0] = float32(v)
	default:
		caster(dt, Float64)(t.span(), 1, raw([]float64{v}), 1, 1)
	}
	return t
}

// Arange returns a tensor with the numbers start, start+step and so on, up to but excluding end.
// For integer dtypes, start and step are truncated after the numbers have been counted, as in
// PyTorch.
func Arange(dt DType, start, end, step float64) *Tensor {
	return Empty(dt, stepsIn(dt, start, end, step)).arithmetic(start, step)
}

// stepsIn returns the number of elements of Arange, and checks its arguments for the dtype.
func stepsIn(dt DType, start, end, step float64) int {
	if dt.category() == 0 || dt.category() > 2 {
		misuse(ErrOperand, "Arange: got dtype %v, want integers or floats", dt)
	}
	n := steps(start, end, step)
	dt.wantNumber("Arange", start)
	dt.wantNumber("Arange", end)
	dt.wantNumber("Arange", step)
	return n
}

// steps returns the number of elements of Arange.
func steps(start, end, step float64) int {
	n := math.Ceil((end - start) / step)
	if !(n >= 0) || math.IsInf(n, 0) {
		misuse(ErrArgument, "Arange: step from %v to %v by %v never reaches the end", start, end, step)
	}
	return int(n)
}

// arithmetic sets the elements of t, which must have one dimension, to start, start+step and so on.
func (t *Tensor) arithmetic(start, step float64) *Tensor {
	if t.dtype.isInteger() {
		start, step = math.Trunc(start), math.Trunc(step)
	}
	backendOf(t).generate(t, nil, device.Sequence{Kind: device.Arithmetic, A: start, B: step}, func() {
		if t.dtype == Int64 && whole(start) && whole(step) && whole(start+step*float64(t.Numel())) {
			t.count64(int64(start), int64(step))
			return
		}
		t.sequence(func(first int, to []float64) {
			for i := range to {
				to[i] = start + float64(first+i)*step
			}
		})
	})
	return t
}

// whole reports whether v is an integer in the range in which float64 represents all integers.
func whole(v float64) bool { return v == math.Trunc(v) && math.Abs(v) < 1<<53 }

// count64 sets the elements of t, which must be Int64, to start, start+step and so on. It computes
// each piece by adding a constant to the previous one.
func (t *Tensor) count64(start, step int64) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	to, leap := typed[int64](t.span()), typed[int64](bufs.rows[0][:bufferBytes])
	n := min(len(leap), len(to))
	for i := range to[:n] {
		to[i], leap[i] = start+int64(i)*step, int64(n)*step
	}
	for at := n; at < len(to); at += n {
		next := to[at:min(at+n, len(to))]
		opAdd.rows(Int64).run(raw(next), raw(to[at-n:][:len(next)]), raw(leap[:len(next)]), nil)
	}
	t.Touch()
}

// sequence fills t, which must be contiguous, piece by piece. next computes the elements from index
// first on.
func (t *Tensor) sequence(next func(first int, to []float64)) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	size, convert, to := t.dtype.Size(), caster(t.dtype, Float64), t.span()
	piece := typed[float64](bufs.rows[0][:bufferBytes])
	for first := 0; first < t.Numel(); first += len(piece) {
		n := min(len(piece), t.Numel()-first)
		next(first, piece[:n])
		convert(to[first*size:], 1, raw(piece[:n]), 1, n)
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
		dt.wantNumber("Linspace", start)
		dt.wantNumber("Linspace", end)
		start, end = math.Trunc(start), math.Trunc(end)
	}
	t, step := Empty(dt, n), (end-start)/float64(max(1, n-1))
	// count from both ends, so that truncated integers equal PyTorch's
	t.sequence(func(first int, to []float64) {
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
	t.peek([]int{n}, []int{n + 1}, 0).Fill(1)
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
	return contiguous(onHeap(raw(data)), dt, shape)
}

// NewShared returns a tensor of zeros in shared memory. The caller must close the tensor. The error
// wraps shm.ErrNoSpace if the domain is full.
func NewShared(dt DType, shape ...int) (*Tensor, error) {
	t, err := EmptyShared(dt, shape...)
	if err != nil {
		return nil, err
	}
	clear(t.span())
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
	t.describe()
	return t, nil
}
