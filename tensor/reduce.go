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
	shape, reduced := append(room[:0], t.Shape()...), t.dimSet(dims)
	for i := range shape {
		if reduced.has(i) {
			shape[i] = 1
		}
	}
	r := f(t, dims...)
	return r.replaceWith(r.View(shape...))
}

// Sum returns the sums along dims, or the sum of all elements if dims is empty. Sums of integers
// and booleans are Int64. Sums of floats have the dtype of t. They are computed in float64, but
// sums of up to four float32 numbers are first rounded to float32. Therefore a float32 sum has an
// error of at most 2⁻²³ times the sum of the magnitudes, besides the final rounding. It is the same
// on each run.
func Sum(t *Tensor, dims ...int) *Tensor { return t.reduceSameDType(redSum, dims) }

// Prod returns the products along dims, or the product of all elements if dims is empty. Its dtypes
// are the same as for [Sum].
func Prod(t *Tensor, dims ...int) *Tensor { return t.reduceSameDType(redProd, dims) }

func (t *Tensor) reduceSameDType(r reduction, dims []int) *Tensor {
	if t.dtype.promotionRank() < 2 {
		return r.reduceDims(t, dims) // Int64
	}
	return backendOf(t).reduceSameDType(r, t, dims)
}

// Mean returns the averages along dims, or the average of all elements if dims is empty. t must
// have a floating-point or complex dtype.
func Mean(t *Tensor, dims ...int) *Tensor {
	t.requireFloat("Mean")
	total := redSum.reduceDims(t, dims)
	return opDiv.applyNumber(total, float64(t.countReduced(dims))).convertOwned(t.dtype)
}

func (t *Tensor) requireFloat(what string) {
	if t.dtype.promotionRank() < 2 {
		misuse(ErrOperand, "%s is not defined for a tensor of %v: convert it with To first", what, t.dtype)
	}
}

// Var returns the variances along dims, or the variance of all elements if dims is empty. It
// divides by n-1 (Bessel's correction). The variance of fewer than two elements is NaN. t must
// have a floating-point dtype.
func Var(t *Tensor, dims ...int) *Tensor {
	v := redVar.reduceDims(t, dims)
	return v.convertOwned(t.dtype)
}

// Std returns the standard deviations along dims, the square roots of [Var].
func Std(t *Tensor, dims ...int) *Tensor {
	v := redVar.reduceDims(t, dims).SqrtInPlace()
	return v.convertOwned(t.dtype)
}

// All returns a Bool tensor that is true where all elements along dims are nonzero. If dims is
// empty, it reduces all dimensions. The result is Uint8 if t is Uint8, as in PyTorch.
func All(t *Tensor, dims ...int) *Tensor { return t.reduceBool(redMin, 1, dims) }

// Any returns a Bool tensor that is true where at least one element along dims is nonzero. If dims
// is empty, it reduces all dimensions. The result is Uint8 if t is Uint8, as in PyTorch.
func Any(t *Tensor, dims ...int) *Tensor { return t.reduceBool(redMax, 0, dims) }

func (t *Tensor) reduceBool(r reduction, empty float64, dims []int) *Tensor {
	truth := reduceAsBool(r, empty, t, dims)
	if t.dtype == Uint8 {
		return truth.convertOwned(Uint8)
	}
	return truth
}

// reduceAsBool reduces t's elements converted to Bool, and returns a Bool tensor. r must be
// redMin or redMax. empty, which must be 0 or 1, is the result for no elements.
func reduceAsBool(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	return backendOf(t).reduceBool(r, empty, t, dims)
}

// reduceBoolLoops implements reduceAsBool on the host. For unsigned dtypes it reduces without
// conversion: all elements are nonzero if the minimum is, and some are if the maximum is.
func reduceBoolLoops(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	if t.Numel() > 0 && (t.dtype == Bool || t.dtype == Uint8) {
		return r.reduceLoops(t, t.dimSet(dims)).convertOwned(Bool)
	}
	f := r.foldFor(Bool)
	if t.Numel() == 0 {
		f.run = func(out, _ []byte, _ int) {
			for i := range out {
				out[i] = byte(empty)
			}
		}
	}
	reduced := t.dimSet(dims)
	once := t.withoutRepeats(reduced)
	defer once.releaseView()
	return f.reduceRows(once, reduced)
}

// Amax returns the maxima along dims, or the maximum of all elements if dims is empty. The result
// is NaN if one of the elements is NaN. Amax panics if there are no elements to reduce.
func Amax(t *Tensor, dims ...int) *Tensor { return t.reduceExtreme(redMax, dims) }

// Amin returns the minima along dims, or the minimum of all elements if dims is empty. The result
// is NaN if one of the elements is NaN. Amin panics if there are no elements to reduce.
func Amin(t *Tensor, dims ...int) *Tensor { return t.reduceExtreme(redMin, dims) }

// Argmax returns the Int64 index of the maximum along dim, or the first index if several elements
// are equal. NaN counts as the maximum. For the maximum of all elements, call Argmax(t.Reshape(-1),
// 0). Argmax panics if dim has no elements.
func Argmax(t *Tensor, dim int) *Tensor { return t.extremeIndex(redArgmax, dim) }

// Argmin returns the Int64 index of the minimum along dim, or the first index if several elements
// are equal. NaN counts as the minimum. Argmin panics if dim has no elements.
func Argmin(t *Tensor, dim int) *Tensor { return t.extremeIndex(redArgmin, dim) }

func (t *Tensor) extremeIndex(r reduction, dim int) *Tensor {
	if t.dtype == Bool {
		misuse(ErrOperand, "%v is not defined for a tensor of %v: convert it with To first", r, t.dtype)
	}
	return t.reduceExtreme(r, []int{dim})
}

// Max returns the maxima along dim, and their Int64 indices as [Argmax] returns them.
func Max(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.reduceExtreme(redArgmax, []int{dim})
	return t.pickAlong(dim, indices), indices
}

// Min returns the minima along dim, and their Int64 indices as [Argmin] returns them.
func Min(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.reduceExtreme(redArgmin, []int{dim})
	return t.pickAlong(dim, indices), indices
}

func (t *Tensor) reduceExtreme(r reduction, dims []int) *Tensor {
	if t.countReduced(dims) == 0 {
		misuse(ErrIndex, "%v along dimensions %v of shape %v: no elements", r, slices.Clone(dims), t.Shape())
	}
	v := r.reduceDims(t, dims)
	if v.dtype != Int64 && v.dtype != t.dtype {
		v = v.convertOwned(t.dtype)
	}
	return v
}

// pickAlong returns the elements at the given indices along dim. indices must have t's shape
// without dim, and so has the result.
func (t *Tensor) pickAlong(dim int, indices *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		return t.Clone()
	}
	dim = t.resolveDim(dim)
	along := indices.Unsqueeze(dim)
	defer along.release()
	return Gather(t, dim, along).setShape(indices.Shape()...)
}

// Sum returns the sum of all elements, or its real part if they are complex.
func (t *Tensor) Sum() float64 {
	sum := redSum.reduceDims(t, nil)
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
