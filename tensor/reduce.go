package tensor

import (
	"math"
	"runtime"
	"slices"
)

// A fold makes one element of many.
type fold struct {
	in, out DType
	run     func(out, rows []byte, n int) // out's elements from as many rows of n
}

// folding lets f run over rows.
func folding[T, R any](f func(row []T) R) func(out, rows []byte, n int) {
	return func(out, rows []byte, n int) {
		r, x := typed[R](out), typed[T](rows)
		for i := range r {
			r[i] = f(x[i*n : (i+1)*n])
		}
	}
}

// over reduces dimensions of t, by default all: they are laid out as rows, which costs a copy unless they are there
// already.
func (f fold) over(t *Tensor, dims []int, keep bool) *Tensor {
	reduced := t.mark(dims)
	var order, tail, shape, kept []int
	n := 1
	for i, size := range t.shape {
		if reduced[i] {
			tail, kept = append(tail, i), append(kept, 1)
			n *= size
		} else {
			order, shape, kept = append(order, i), append(shape, size), append(kept, size)
		}
	}
	rows := t.peek(pick(t.shape, order, tail), pick(t.strides, order, tail), t.offset)
	if t.dtype != f.in || !rows.IsContiguous() {
		rows = New(f.in, rows.shape...).CopyFrom(rows)
	}
	out := New(f.out, shape...)
	f.run(out.span(), rows.span(), n)
	runtime.KeepAlive(t)
	if keep {
		return out.become(out.View(kept...))
	}
	return out
}

func pick(s []int, lists ...[]int) []int {
	var out []int
	for _, l := range lists {
		for _, i := range l {
			out = append(out, s[i])
		}
	}
	return out
}

// mark says which dimensions are named; none stands for all.
func (t *Tensor) mark(dims []int) []bool {
	named := make([]bool, len(t.shape))
	for i := range named {
		named[i] = len(dims) == 0
	}
	for _, d := range dims {
		d = t.axis(d)
		if named[d] {
			misuse("dimension %d is named twice in %v", d, dims)
		}
		named[d] = true
	}
	return named
}

// as returns the result in dtype dt.
func (f fold) as(dt DType, t *Tensor, dims []int, keep bool) *Tensor {
	r := f.over(t, dims, keep)
	return r.become(r.To(dt))
}

// summing returns the fold for sums of dt, and the dtype of the result: whole numbers are added up in Int64,
// fractions in float64.
func summing(dt DType) (f fold, result DType) {
	switch {
	case dt == Complex64:
		return fold{Complex64, Complex128, folding(complexSumOf[complex64])}, dt
	case dt == Complex128:
		return fold{Complex128, Complex128, folding(complexSumOf[complex128])}, dt
	case dt == Float64:
		return fold{Float64, Float64, folding(sumOf[float64, float64])}, dt
	case dt.isFloat():
		return fold{Float32, Float64, folding(sumOf[float32, float64])}, dt
	case dt == Int64:
		return fold{Int64, Int64, folding(sumOf[int64, int64])}, Int64
	case dt == Bool, dt == Uint8:
		return fold{dt, Int64, folding(sumOf[uint8, int64])}, Int64
	}
	return fold{Int64, Int64, folding(sumOf[int64, int64])}, Int64
}

// sumOf adds up in four strands, which a processor works on at once.
func sumOf[T int64 | float32 | float64 | uint8, A int64 | float64](row []T) A {
	var a, b, c, d A
	for ; len(row) >= 4; row = row[4:] {
		a += A(row[0])
		b += A(row[1])
		c += A(row[2])
		d += A(row[3])
	}
	for _, v := range row {
		a += A(v)
	}
	return (a + b) + (c + d)
}

func complexSumOf[T cplx](row []T) (sum complex128) {
	for _, v := range row {
		sum += complex128(v)
	}
	return sum
}

// Sum adds up over dimensions, by default all. Sums of integers and booleans are Int64.
func Sum(t *Tensor, dims ...int) *Tensor { return sum(t, dims, false) }

// SumKeep is Sum that keeps the dimensions, with size 1.
func SumKeep(t *Tensor, dims ...int) *Tensor { return sum(t, dims, true) }

func sum(t *Tensor, dims []int, keep bool) *Tensor {
	f, dt := summing(t.dtype)
	return f.as(dt, t, dims, keep)
}

// Mean returns the averages over dimensions, by default all, of floats or complex numbers.
func Mean(t *Tensor, dims ...int) *Tensor { return mean(t, dims, false) }

// MeanKeep is Mean that keeps the dimensions, with size 1.
func MeanKeep(t *Tensor, dims ...int) *Tensor { return mean(t, dims, true) }

func mean(t *Tensor, dims []int, keep bool) *Tensor {
	if t.dtype.category() < 2 {
		misuse("Mean of a tensor of %v: convert it with To first", t.dtype)
	}
	f, dt := summing(t.dtype)
	total := f.over(t, dims, keep)
	total.Div(total.constant(float64(t.count(dims))))
	return total.become(total.To(dt))
}

// count returns how many elements make one when dims are reduced.
func (t *Tensor) count(dims []int) int {
	n := 1
	for i, named := range t.mark(dims) {
		if named {
			n *= t.shape[i]
		}
	}
	return n
}

// Var returns the variances over dimensions, by default all, of floats, with Bessel's correction (division by n-1).
func Var(t *Tensor, dims ...int) *Tensor {
	if !t.dtype.isFloat() {
		misuse("Var of a tensor of %v: convert it with To first", t.dtype)
	}
	return fold{Float64, Float64, folding(varianceOf)}.as(t.dtype, t, dims, false)
}

func varianceOf(row []float64) float64 {
	var mean, squares float64 // Welford's
	for i, v := range row {
		d := v - mean
		mean += d / float64(i+1)
		squares += d * (v - mean)
	}
	if len(row) < 2 {
		return math.NaN()
	}
	return squares / float64(len(row)-1)
}

// All reports, as Bool, where all elements along dimensions, by default all, are other than 0.
func All(t *Tensor, dims ...int) *Tensor {
	return fold{Bool, Bool, folding(func(row []uint8) bool { return !slices.Contains(row, 0) })}.over(t, dims, false)
}

// Any reports, as Bool, where an element along dimensions, by default all, is other than 0.
func Any(t *Tensor, dims ...int) *Tensor {
	return fold{Bool, Bool, folding(func(row []uint8) bool { return slices.Contains(row, 1) })}.over(t, dims, false)
}

// Sum returns the sum of all elements; of complex numbers, its real part.
func (t *Tensor) Sum() float64 {
	f, _ := summing(t.dtype)
	return f.over(t, nil, false).Item()
}

// Mean returns the average of all elements.
func (t *Tensor) Mean() float64 { return t.Sum() / float64(t.Numel()) }
