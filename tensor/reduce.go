package tensor

import (
	"math"
	"slices"
)

// Keep returns f(t, dims...) with each reduced dimension kept at size 1, like keepdim=True in
// PyTorch.
//
//	centred := tensor.Sub(x, tensor.Keep(tensor.Mean, x, 1))
func Keep(f func(t *Tensor, dims ...int) *Tensor, t *Tensor, dims ...int) *Tensor {
	var room [2 * fewDims]int
	shape, reduced := append(room[:0], t.Shape()...), t.mark(dims)
	for i := range shape {
		if reduced.has(i) {
			shape[i] = 1
		}
	}
	r := f(t, dims...)
	return r.become(r.View(shape...))
}

// Sum returns the sums along dims, or the sum of all elements if dims is empty. Sums of integers
// and booleans are Int64. Sums of floats have the dtype of t. They are computed in float64, but
// sums of up to four float32 numbers are first rounded to float32. Therefore a float32 sum has an
// error of at most 2⁻²³ times the sum of the magnitudes, besides the final rounding. It is the same
// on each run.
func Sum(t *Tensor, dims ...int) *Tensor { return t.total(redSum, dims) }

// Prod returns the products along dims, or the product of all elements if dims is empty. Its dtypes
// are the same as for [Sum].
func Prod(t *Tensor, dims ...int) *Tensor { return t.total(redProd, dims) }

func (t *Tensor) total(r reduction, dims []int) *Tensor {
	if t.dtype.category() < 2 {
		return r.of(t, dims) // Int64
	}
	return backendOf(t).total(r, t, dims)
}

// Mean returns the averages along dims, or the average of all elements if dims is empty. t must
// have a floating-point or complex dtype.
func Mean(t *Tensor, dims ...int) *Tensor {
	t.wantFractions("Mean")
	total := redSum.of(t, dims)
	return opDiv.by(total, float64(t.count(dims))).as(t.dtype)
}

func (t *Tensor) wantFractions(what string) {
	if t.dtype.category() < 2 {
		misuse(ErrOperand, "%s is not defined for a tensor of %v: convert it with To first", what, t.dtype)
	}
}

// Var returns the variances along dims, or the variance of all elements if dims is empty. It
// divides by n-1 (Bessel's correction). t must have a floating-point dtype.
func Var(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims)
	return v.as(t.dtype)
}

// Std returns the standard deviations along dims, the square roots of [Var].
func Std(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims).Sqrt()
	return v.as(t.dtype)
}

// All returns a Bool tensor that is true where all elements along dims are nonzero. If dims is
// empty, it reduces all dimensions. The result is Uint8 if t is Uint8, as in PyTorch.
func All(t *Tensor, dims ...int) *Tensor { return t.truth(redMin, 1, dims) }

// Any returns a Bool tensor that is true where at least one element along dims is nonzero. If dims
// is empty, it reduces all dimensions. The result is Uint8 if t is Uint8, as in PyTorch.
func Any(t *Tensor, dims ...int) *Tensor { return t.truth(redMax, 0, dims) }

func (t *Tensor) truth(r reduction, empty float64, dims []int) *Tensor {
	truth := truthful(r, empty, t, dims)
	if t.dtype == Uint8 {
		return truth.as(Uint8)
	}
	return truth
}

// truthful reduces t's elements converted to Bool. empty is the result for no elements.
func truthful(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	return backendOf(t).truth(r, empty, t, dims)
}

// truthLoops implements truthful on the host. For unsigned dtypes it reduces without conversion:
// all elements are nonzero if the minimum is, and some are if the maximum is.
func truthLoops(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	if t.Numel() > 0 && (t.dtype == Bool || t.dtype == Uint8) {
		return r.loops(t, t.mark(dims)).as(Bool)
	}
	f := r.on(Bool)
	if t.Numel() == 0 {
		f.run = func(out, _ []byte, _ int) {
			for i := range out {
				out[i] = byte(empty)
			}
		}
	}
	reduced := t.mark(dims)
	once := t.once(reduced)
	defer once.forget()
	return f.over(once, reduced)
}

// Amax returns the maxima along dims, or the maximum of all elements if dims is empty. The result
// is NaN if one of the elements is NaN. Amax panics if there are no elements to reduce.
func Amax(t *Tensor, dims ...int) *Tensor { return t.extreme(redMax, dims) }

// Amin returns the minima along dims, or the minimum of all elements if dims is empty. The result
// is NaN if one of the elements is NaN. Amin panics if there are no elements to reduce.
func Amin(t *Tensor, dims ...int) *Tensor { return t.extreme(redMin, dims) }

// Argmax returns the Int64 index of the maximum along dim, or the first index if several elements
// are equal. NaN counts as the maximum. For the maximum of all elements, call Argmax(t.Reshape(-1),
// 0). Argmax panics if dim has no elements.
func Argmax(t *Tensor, dim int) *Tensor { return t.place(redArgmax, dim) }

// Argmin returns the Int64 index of the minimum along dim, or the first index if several elements
// are equal. NaN counts as the minimum. Argmin panics if dim has no elements.
func Argmin(t *Tensor, dim int) *Tensor { return t.place(redArgmin, dim) }

func (t *Tensor) place(r reduction, dim int) *Tensor {
	if t.dtype == Bool {
		misuse(ErrOperand, "%v is not defined for a tensor of %v: convert it with To first", r, t.dtype)
	}
	return t.extreme(r, []int{dim})
}

// Max returns the maxima along dim, and their Int64 indices as [Argmax] returns them.
func Max(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmax, []int{dim})
	return t.pickAlong(dim, indices), indices
}

// Min returns the minima along dim, and their Int64 indices as [Argmin] returns them.
func Min(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmin, []int{dim})
	return t.pickAlong(dim, indices), indices
}

func (t *Tensor) extreme(r reduction, dims []int) *Tensor {
	if t.count(dims) == 0 {
		misuse(ErrIndex, "%v along dimensions %v of shape %v: no elements", r, slices.Clone(dims), t.Shape())
	}
	v := r.of(t, dims)
	if v.dtype != Int64 && v.dtype != t.dtype {
		v = v.as(t.dtype)
	}
	return v
}

// pickAlong returns the elements at the given indices along dim.
func (t *Tensor) pickAlong(dim int, indices *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		return t.Clone()
	}
	dim = t.axis(dim)
	along := indices.Unsqueeze(dim)
	defer along.release()
	return Gather(t, dim, along).shaped(indices.Shape()...)
}

// Sum returns the sum of all elements, or its real part if they are complex.
func (t *Tensor) Sum() float64 {
	sum := redSum.of(t, nil)
	defer sum.release()
	return sum.Item()
}

// Mean returns the average of all elements, or NaN if there are none.
func (t *Tensor) Mean() float64 {
	if t.Numel() == 0 {
		return math.NaN()
	}
	return t.Sum() / float64(t.Numel())
}
