package tensor

import "math"

// Keep returns f(t, dims...) with the dimensions that f reduces kept, with size 1, as keepdim=True
// does in PyTorch.
//
//	centred := tensor.Sub(x, tensor.Keep(tensor.Mean, x, 1))
func Keep(f func(t *Tensor, dims ...int) *Tensor, t *Tensor, dims ...int) *Tensor {
	shape := make([]int, len(t.shape))
	for i, reduced := range t.mark(dims) {
		shape[i] = t.shape[i]
		if reduced {
			shape[i] = 1
		}
	}
	r := f(t, dims...)
	return r.become(r.View(shape...))
}

// Sum adds up over dimensions, by default all. Sums of integers and booleans are Int64; those of
// floats are added up in float64.
func Sum(t *Tensor, dims ...int) *Tensor { return t.total(redSum, dims) }

// Prod multiplies over dimensions, by default all, as Sum adds up.
func Prod(t *Tensor, dims ...int) *Tensor { return t.total(redProd, dims) }

func (t *Tensor) total(r reduction, dims []int) *Tensor {
	total := r.of(t, dims)
	if t.dtype.category() < 2 {
		return total // Int64
	}
	return total.become(total.To(t.dtype))
}

// Mean returns the averages over dimensions, by default all, of floats or complex numbers.
func Mean(t *Tensor, dims ...int) *Tensor {
	t.wantFractions("Mean")
	total := redSum.of(t, dims)
	total.Div(total.Number(float64(t.count(dims))))
	return total.become(total.To(t.dtype))
}

func (t *Tensor) wantFractions(what string) {
	if t.dtype.category() < 2 {
		misuse("%s of a tensor of %v: convert it with To first", what, t.dtype)
	}
}

// Var returns the variances over dimensions, by default all, of floats, with Bessel's correction
// (division by n-1).
func Var(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims)
	return v.become(v.To(t.dtype))
}

// Std returns the standard deviations, the roots of Var.
func Std(t *Tensor, dims ...int) *Tensor {
	v := redVar.of(t, dims).Sqrt()
	return v.become(v.To(t.dtype))
}

// All reports, as Bool, where all elements along dimensions, by default all, are other than 0. Of a
// Uint8 tensor, which stood for truths before there was Bool, it is Uint8, as in PyTorch.
func All(t *Tensor, dims ...int) *Tensor { return t.truth(redMin, 1, dims) }

// Any reports, as All does, where an element along dimensions, by default all, is other than 0.
func Any(t *Tensor, dims ...int) *Tensor { return t.truth(redMax, 0, dims) }

func (t *Tensor) truth(r reduction, empty float64, dims []int) *Tensor {
	truth := truthful(r, empty, t, dims)
	if t.dtype == Uint8 {
		return truth.become(truth.To(Uint8))
	}
	return truth
}

// truthful reduces t as Bool; of nothing it makes empty.
func truthful(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	return backendOf(t).truth(r, empty, t, dims)
}

// truthLoops is truthful on the host.
func truthLoops(r reduction, empty float64, t *Tensor, dims []int) *Tensor {
	f := r.on(Bool)
	some := f.run
	f.run = func(out, rows []byte, n int) {
		if n > 0 {
			some(out, rows, n)
			return
		}
		for i := range out {
			out[i] = byte(empty)
		}
	}
	return f.over(t, dims)
}

// Amax returns the greatest elements over dimensions, by default all; NaN where there is one.
func Amax(t *Tensor, dims ...int) *Tensor { return t.extreme(redMax, dims) }

// Amin returns the least elements over dimensions, by default all; NaN where there is one.
func Amin(t *Tensor, dims ...int) *Tensor { return t.extreme(redMin, dims) }

// Argmax returns the index (Int64) of the greatest element along a dimension, the first if there
// are several. NaN is greater than everything. Of all elements it is Argmax(t.Reshape(-1), 0).
func Argmax(t *Tensor, dim int) *Tensor { return t.place(redArgmax, dim) }

// Argmin returns the index (Int64) of the least element along a dimension, as Argmax does. NaN is
// less than everything.
func Argmin(t *Tensor, dim int) *Tensor { return t.place(redArgmin, dim) }

func (t *Tensor) place(r reduction, dim int) *Tensor {
	if t.dtype == Bool {
		misuse("%v of a tensor of %v: it takes numbers", r, t.dtype)
	}
	return t.extreme(r, []int{dim})
}

// Max returns the greatest elements along a dimension and their indices, see Argmax.
func Max(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmax, []int{dim})
	return t.pickAlong(dim, indices), indices
}

// Min returns the least elements along a dimension and their indices, see Argmin.
func Min(t *Tensor, dim int) (values, indices *Tensor) {
	indices = t.extreme(redArgmin, []int{dim})
	return t.pickAlong(dim, indices), indices
}

func (t *Tensor) extreme(r reduction, dims []int) *Tensor {
	if t.count(dims) == 0 {
		misuse("%v along dimensions %v of shape %v, which have no elements", r, dims, t.shape)
	}
	v := r.of(t, dims)
	if v.dtype != Int64 && v.dtype != t.dtype {
		v = v.become(v.To(t.dtype))
	}
	return v
}

// pickAlong returns the elements at one index of a dimension for each of the others.
func (t *Tensor) pickAlong(dim int, indices *Tensor) *Tensor {
	if len(t.shape) == 0 {
		return t.Clone()
	}
	dim = t.axis(dim)
	along := indices.Unsqueeze(dim)
	defer along.release()
	picked := Gather(t, dim, along)
	return picked.become(picked.Squeeze(dim))
}

// Sum returns the sum of all elements; of complex numbers, its real part.
func (t *Tensor) Sum() float64 { return redSum.of(t, nil).Item() }

// Mean returns the average of all elements; of none, NaN.
func (t *Tensor) Mean() float64 {
	if t.Numel() == 0 {
		return math.NaN()
	}
	return t.Sum() / float64(t.Numel())
}
