package autograd

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// groups describes the elements of a tensor that are normalized together. Each of n groups consists
// of parts runs of width elements, and run p of all groups precedes run p+1. The groups are
// channels in a batch of images, or rows if there is one part.
type groups struct{ n, parts, width int }

// BatchNorm normalizes each channel of x, (N, C, ...), to mean 0 and variance 1, and returns the
// result times w plus b, which must be (C) or nil (Ioffe and Szegedy, 2015).
//
// If mean and variance are nil, as in training, BatchNorm uses the statistics of the batch and
// returns them, (C), for running statistics; v is the unbiased variance. In a Scope they are valid
// until Reset. Otherwise, as in evaluation, BatchNorm uses mean and variance, which must both be
// (C), and returns them.
func BatchNorm(x, w, b *Var, mean, variance *tensor.Tensor, eps float64) (y *Var, m, v *tensor.Tensor) {
	if mean == nil && variance == nil {
		return batchNorm("BatchNorm", x, w, b, eps)
	}
	return batchNormBy("BatchNorm", mean, variance, x, w, b, eps), mean, variance
}

func batchNorm(op string, x, w, b *Var, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	requireChannels(op, x)
	s := groups{n: x.t.Dim(1), parts: x.t.Dim(0), width: product(x.Shape()[2:])}
	if s.parts*s.width < 2 {
		misuse(tensor.ErrShape, "%s: shape %v has at most 1 element per channel, want more in training",
			op, x.Shape())
	}
	y, mean, variance = dispatchStandardize(op, x, s, eps)
	var room [2 * maxDims]int
	return applyAffine(op, y, w, b, s.n, channelShape(room[:0], x)), mean, variance
}

func batchNormBy(op string, mean, variance *tensor.Tensor, x, w, b *Var, eps float64) *Var {
	requireChannels(op, x)
	var room [2 * maxDims]int
	c, shape := x.t.Dim(1), channelShape(room[:0], x)
	checkChannels(op, mean, c)
	checkChannels(op, variance, c)
	scale := Reshape(x.wrapConst(addNumber(variance, eps).PowInPlace(-0.5)), shape...)
	y := Mul(Sub(x, Reshape(x.wrapConst(mean.Clone()), shape...)), scale)
	return applyAffine(op, y, w, b, c, shape)
}

func requireChannels(op string, x *Var) {
	if x.t.Dims() < 2 {
		misuse(tensor.ErrShape, "%s: got shape %v, want (N, C, ...)", op, x.Shape())
	}
}

func checkChannels(op string, t *tensor.Tensor, n int) {
	if t == nil {
		misuse(tensor.ErrMisuse, "%s: mean and variance must be set together", op)
	}
	if t.Dims() != 1 || t.Dim(0) != n {
		misuse(tensor.ErrShape, "%s: got statistics or parameters of shape %v, want (%d)", op, t.Shape(), n)
	}
}

// applyAffine returns y·w + b. w and b must have n elements, or be nil, and are then left out; they
// are reshaped to shape. It panics with [tensor.ErrShape] for another number of elements, and names
// op in the error.
func applyAffine(op string, y, w, b *Var, n int, shape []int) *Var {
	for i, p := range []*Var{w, b} {
		if p == nil {
			continue
		}
		if p.t.Numel() != n {
			misuse(tensor.ErrShape, "%s: got parameters of shape %v, want %d elements", op, p.Shape(), n)
		}
		if p = Reshape(p, shape...); i == 0 {
			y = Mul(y, p)
		} else {
			y = Add(y, p)
		}
	}
	return y
}

func dispatchStandardize(op string, x *Var, s groups, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	return dispatch(op, x, standardize[float32], standardize[float64], standardizeOn)(op, x, s, eps)
}

// standardize normalizes each group of x to mean 0 and variance 1. mean and variance are the
// statistics of the groups, (s.n); variance is unbiased. They belong to the scope of y.
func standardize[F kernel.Float](op string, x *Var, s groups, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	y = newResult(op, x.t.DType(), x.Shape(), x)
	mean, variance = y.scope.newEmpty(nil, x.t.DType(), []int{s.n}), y.scope.newEmpty(nil, x.t.DType(), []int{s.n})
	factors := y.scope.newEmpty(nil, tensor.Float64, []int{s.n})
	scales := data[float64](factors)
	from, to := data[F](x.contiguousTensor()), data[F](y.t)
	means, variances := data[F](mean), data[F](variance)
	count := float64(s.parts * s.width)
	for g := range s.n {
		var sum, squares float64
		each(s, g, from, func(_ int, v F) { sum += float64(v) })
		m := sum / count
		each(s, g, from, func(_ int, v F) { squares += (float64(v) - m) * (float64(v) - m) })
		scale := 1 / math.Sqrt(squares/count+eps)
		each(s, g, from, func(i int, v F) { to[i] = F((float64(v) - m) * scale) })
		means[g], variances[g], scales[g] = F(m), F(squares/(count-1)), scale
	}
	keepAlive(x)
	y.ensurePlan().groups, y.note.factor = s, eps
	y.saveIfNeeded(y.t, factors).setDerivatives(kernelByDType(op, y, standardizeBackward[float32],
		standardizeBackward[float64]),
		standardizeTwice)
	return y, mean, variance
}

// standardizeBackward is the derivation of standardize. It removes the mean and the projection on
// y from dy, because the normalization removes them from x.
func standardizeBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	y.inputs[0].writeGradient(func(dx *tensor.Tensor) {
		s, to, g, out := y.ensurePlan().groups, data[F](y.t), data[F](dy), data[F](dx)
		count := float64(s.parts * s.width)
		for i, scale := range data[float64](y.saved[1].t) {
			var sum, along float64
			each(s, i, g, func(i int, v F) { sum, along = sum+float64(v), along+float64(v)*float64(to[i]) })
			sum, along = sum/count, along/count
			each(s, i, g, func(i int, v F) { out[i] = F(scale * (float64(v) - sum - along*float64(to[i]))) })
		}
	})
}

// normalizeGroups returns the normalized groups of x, (s.parts, s.n, s.width), and their scales,
// (1, s.n, 1), as differentiable values.
func (s groups) normalizeGroups(x *Var, eps float64) (to, scale *Var) {
	from := Reshape(x, s.parts, s.n, s.width)
	centred := Sub(from, groupMeans(from))
	scale = Pow(AddScalar(groupMeans(Mul(centred, centred)), eps), -0.5)
	return Mul(centred, scale), scale
}

func groupMeans(groups *Var) *Var { return meanKeepDims(groups, 1<<0|1<<2) }

func standardizeTwice(y, dy *Var) derivatives {
	return derivativesOf(y.ensurePlan().groups.standardizeGradient(y.inputs[0], dy, y.note.factor))
}

// standardizeGradient is standardizeBackward for differentiable values, including the means and
// scales.
func (s groups) standardizeGradient(x, dy *Var, eps float64) *Var {
	dy = Reshape(dy, s.parts, s.n, s.width)
	to, scale := s.normalizeGroups(x, eps)
	along := Mul(to, groupMeans(Mul(dy, to)))
	return Reshape(Mul(Sub(Sub(dy, groupMeans(dy)), along), scale), x.Shape()...)
}

// each calls f for the elements of group g with their positions.
func each[F kernel.Float](s groups, g int, x []F, f func(i int, v F)) {
	for p := range s.parts {
		at := (p*s.n + g) * s.width
		for i, v := range x[at : at+s.width] {
			f(at+i, v)
		}
	}
}
