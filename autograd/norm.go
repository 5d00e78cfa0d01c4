package autograd

import (
	"math"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// groups are the elements of a tensor that are normalised together. Each of n groups is parts runs of width elements, and
// run p of all groups stands before run p+1: channels in a batch of images, or, with one part, rows.
type groups struct{ n, parts, width int }

// BatchNorm2d returns images x, (N, C, H, W), with each channel moved and scaled to mean 0 and variance 1 over the batch,
// then multiplied by w and added to b, which are (C), or nil. It returns the channels' means and variances (of a sample:
// divided by one less than their number), from which running statistics are made.
func BatchNorm2d(x, w, b *Var, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	want("BatchNorm2d", "an image batch (N, C, H, W)", x, 4)
	s := groups{n: x.t.Dim(1), parts: x.t.Dim(0), width: x.t.Dim(2) * x.t.Dim(3)}
	if s.parts*s.width < 2 {
		misuse("BatchNorm2d of shape %v in training: a channel needs more than one element", x.Shape())
	}
	y, mean, variance = standardized("BatchNorm2d", x, s, eps)
	return affine("BatchNorm2d", y, w, b, s.n, []int{s.n, 1, 1}), mean, variance
}

// BatchNorm2dBy is BatchNorm2d by given means and variances, (C), which is what it does outside of training.
func BatchNorm2dBy(mean, variance *tensor.Tensor, x, w, b *Var, eps float64) *Var {
	want("BatchNorm2dBy", "an image batch (N, C, H, W)", x, 4)
	c := x.t.Dim(1)
	checkChannels("BatchNorm2dBy", mean, c)
	checkChannels("BatchNorm2dBy", variance, c)
	scale := plus(variance, eps).Pow(-0.5)
	y := Mul(Sub(x, Const(mean.Clone().Reshape(c, 1, 1))), Const(scale.Reshape(c, 1, 1)))
	return affine("BatchNorm2dBy", y, w, b, c, []int{c, 1, 1})
}

func checkChannels(op string, t *tensor.Tensor, n int) {
	if t.Dims() != 1 || t.Dim(0) != n {
		misuse("%s with statistics or parameters of shape %v: they are (%d)", op, t.Shape(), n)
	}
}

// LayerNorm returns x with the elements of its last dimensions, as many as w has, moved and scaled to mean 0 and
// variance 1, then multiplied by w and added to b, of w's shape, or nil.
func LayerNorm(x, w, b *Var, eps float64) *Var {
	if n := w.t.Dims(); n == 0 || n > x.t.Dims() || !sameShape(x.Shape()[x.t.Dims()-n:], w.Shape()) {
		misuse("LayerNorm of shape %v with a weight of %v: the last dimensions differ", x.Shape(), w.Shape())
	}
	s := groups{n: x.t.Numel() / max(1, w.t.Numel()), parts: 1, width: w.t.Numel()}
	y, _, _ := standardized("LayerNorm", x, s, eps)
	return affine("LayerNorm", y, w, b, w.t.Numel(), w.Shape())
}

// affine returns y·w + b, where both have n elements, or are nil, and are seen in a shape.
func affine(op string, y, w, b *Var, n int, shape []int) *Var {
	for i, p := range []*Var{w, b} {
		if p == nil {
			continue
		}
		if p.t.Numel() != n {
			misuse("%s with parameters of shape %v: they have %d elements", op, p.Shape(), n)
		}
		if p = Reshape(p, shape...); i == 0 {
			y = Mul(y, p)
		} else {
			y = Add(y, p)
		}
	}
	return y
}

func standardized(op string, x *Var, s groups, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	if x.far() {
		return standardizeOn(op, x, s, eps)
	}
	return byType(op, x, standardize[float32], standardize[float64])(op, x, s, eps)
}

// standardize moves and scales each group of x to mean 0 and variance 1.
func standardize[F kernel.Float](op string, x *Var, s groups, eps float64) (y *Var, mean, variance *tensor.Tensor) {
	y = result(op, x.t.DType(), x.Shape(), x)
	mean, variance = tensor.New(x.t.DType(), s.n), tensor.New(x.t.DType(), s.n)
	scales := make([]float64, s.n)
	from, to := data[F](x.dense()), data[F](y.t)
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
	hold(x)
	if y.needs {
		y.save(y.t)
		y.backward = func(dy *tensor.Tensor) {
			x.write(func(dx *tensor.Tensor) { standardizeBackward(s, scales, data[F](y.t), data[F](dy), data[F](dx)) })
		}
		y.again = s.standardizeTwice(eps)
	}
	return y, mean, variance
}

// standardizeBackward takes from dy its mean and its part along y, which moving and scaling have made constant.
func standardizeBackward[F kernel.Float](s groups, scales []float64, y, dy, dx []F) {
	count := float64(s.parts * s.width)
	for g, scale := range scales {
		var sum, along float64
		each(s, g, dy, func(i int, v F) { sum, along = sum+float64(v), along+float64(v)*float64(y[i]) })
		sum, along = sum/count, along/count
		each(s, g, dy, func(i int, v F) { dx[i] = F(scale * (float64(v) - sum - along*float64(y[i]))) })
	}
}

// standardizeTwice is standardizeBackward of values, where the means and the scale are values, too.
func (s groups) standardizeTwice(eps float64) rule {
	average := func(v *Var) *Var { return Keep(Mean, v, 0, 2) }
	return func(y, dy *Var) []*Var {
		x := y.inputs[0]
		dy, from := Reshape(dy, s.parts, s.n, s.width), Reshape(x, s.parts, s.n, s.width)
		centred := Sub(from, average(from))
		scale := Pow(AddScalar(average(Mul(centred, centred)), eps), -0.5)
		to := Mul(centred, scale)
		along := Mul(to, average(Mul(dy, to)))
		return of(Reshape(Mul(Sub(Sub(dy, average(dy)), along), scale), x.Shape()...))
	}
}

// each calls f with the elements of group g and where they are.
func each[F kernel.Float](s groups, g int, x []F, f func(i int, v F)) {
	for p := range s.parts {
		at := (p*s.n + g) * s.width
		for i, v := range x[at : at+s.width] {
			f(at+i, v)
		}
	}
}
