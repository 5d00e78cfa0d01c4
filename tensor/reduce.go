package tensor

import (
	"math"
	"slices"
)

// Keep returns f(t, dims...) with each dimension that f reduces kept at size 1: PyTorch's
// keepdim=True.
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

// Sum returns the sums along dims; without dims, of the whole tensor. Sums of integers and booleans
// are Int64. Sums of floats have the dtype of t. They are computed in float64; of float32, sums of
// up to four numbers are rounded to float32 on the way. So a sum of float32 is off by at most 2⁻²³
// of the sum of the magnitudes, beside its own rounding, and the same on each run.
func Sum(t *Tensor, dims ...int) *Tensor { return t.total(redSum, dims) }

// Prod returns the products along dims; without dims, of the whole tensor. Its dtypes are those of
// Sum.
func Prod(t *Tensor, dims ...int) *Tensor { return t.total(redProd, dims) }

func (t *Tensor) total(r reduction, dims []int) *Tensor {
	if t.dtype.category() < 2 {
		return r.of(t, dims) // Int64
	}
	return backendOf(t).total(r, t, dims)
}

// Mean returns the averages along dims; without dims, of the whole tensor. It panics unless t has
// floats or complex numbers.
func Mean(t *Tensor, dims ...int) *Tensor {
	t.wantFractions("Mean")
	total := redSum.of(t, dims)
	return opDiv.by(total, float64(t.count(dims))).as(t.dtype)
}

func (t *Tensor) wantFractions(what string) {
	if t.dtype.category() < 2 {
		misuse(ErrOperand, "%s of a tensor of %v: convert it with To first", what, t.dtype)
	}
}

// Var returns the variances along dims, of floats; without dims, of the whole tensor. It divides by
// n-1 (Bessel's correction).
func Var(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims)
	return v.as(t.dtype)
}

// Std returns the standard deviations along dims, the square roots of Var.
func Std(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims).Sqrt()
	return v.as(t.dtype)
}

// All returns whether all elements along dims are nonzero, as Bool; without dims, of the whole
// tensor. For a Uint8 tensor the result is Uint8, as in PyTorch.
func All(t *Tensor, dims ...int) *Tensor { return t.truth(redMin, 1, dims) }

// Any returns whether an element along dims is nonzero, as Bool; without dims, of the whole tensor.
// For a Uint8 tensor the result is Uint8, as in PyTorch.
func Any(t *Tensor, dims ...int) *Tensor { return t.truth(redMax, 0, dims) }

func (t *Tensor) truth(r reduction, empty float64, dims []int) *Tensor {
	truth := truthful(r, empty, t, dims)
	if t.dtype == Uint8 {
		return truth.as(Uint8)
	}
	return truth
}

// truthful reduces t as Bool; of nothing it makes empty.
func truthful(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	return backendOf(t).truth(r, empty, t, dims)
}

// truthLoops is truthful on the host. Of numbers without a sign all are true if the least one is,
// and some are if the greatest one is.
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

// Amax returns the greatest elements along dims; without dims, of the whole tensor. If one of the
// elements is NaN, the result is NaN.
func Amax(t *Tensor, dims ...int) *Tensor { return t.extreme(redMax, dims) }

// Amin returns the least elements along dims; without dims, of the whole tensor. If one of the
// elements is NaN, the result is NaN.
func Amin(t *Tensor, dims ...int) *Tensor { return t.extreme(redMin, dims) }

// Argmax returns the index (Int64) of the greatest element along dim, the first one if several are
// equal. NaN counts as the greatest. For the greatest of all elements, call Argmax(t.Reshape(-1),
// 0).
func Argmax(t *Tensor, dim int) *Tensor { return t.place(redArgmax, dim) }

// Argmin returns the index (Int64) of the least element along dim, the first one if several are
// equal. NaN counts as the least.
func Argmin(t *Tensor, dim int) *Tensor { return t.place(redArgmin, dim) }

func (t *Tensor) place(r reduction, dim int) *Tensor {
	if t.dtype == Bool {
		misuse(ErrOperand, "%v of a tensor of %v: it takes numbers", r, t.dtype)
	}
	return t.extreme(r, []int{dim})
}

// Max returns the greatest elements along dim and their indices (Int64), as Argmax has them.
func Max(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmax, []int{dim})
	return t.pickAlong(dim, indices), indices
}

// Min returns the least elements along dim and their indices (Int64), as Argmin has them.
func Min(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmin, []int{dim})
	return t.pickAlong(dim, indices), indices
}

func (t *Tensor) extreme(r reduction, dims []int) *Tensor {
	if t.count(dims) == 0 {
		misuse(ErrIndex, "%v along dimensions %v of shape %v, which have no elements", r, slices.Clone(dims), t.Shape())
	}
	v := r.of(t, dims)
	if v.dtype != Int64 && v.dtype != t.dtype {
		v = v.as(t.dtype)
	}
	return v
}

// pickAlong returns the elements at one index of a dimension for each of the others.
func (t *Tensor) pickAlong(dim int, indices *Tensor) *Tensor {
	if len(t.Shape()) == 0 {
		return t.Clone()
	}
	dim = t.axis(dim)
	along := indices.Unsqueeze(dim)
	defer along.release()
	return Gather(t, dim, along).shaped(indices.Shape()...)
}

// Sum returns the sum of all elements; of complex numbers, its real part.
func (t *Tensor) Sum() float64 {
	sum := redSum.of(t, nil)
	defer sum.release()
	return sum.Item()
}

// Mean returns the average of all elements, NaN if there are none.
func (t *Tensor) Mean() float64 {
	if t.Numel() == 0 {
		return math.NaN()
	}
	return t.Sum() / float64(t.Numel())
}
