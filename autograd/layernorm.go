package autograd

import (
	"slices"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// LayerNorm normalizes x over its last dimensions, which must have the given shape, to mean 0 and
// variance 1 (Ba et al., 2016). It returns the result times w plus b, which must have this shape or
// be nil.
func LayerNorm(x *Var, shape []int, w, b *Var, eps float64) *Var {
	if n := len(shape); n == 0 || n > x.t.Dims() || !sameShape(x.Shape()[x.t.Dims()-n:], shape) {
		misuse(tensor.ErrShape, "LayerNorm: got shape %v, want one that ends in %v", x.Shape(), slices.Clone(shape))
	}
	cols := product(shape)
	checkAffine("LayerNorm", w, b, shape...)
	n := kernel.Norm{Rows: x.t.Numel() / max(1, cols), Groups: 1, Per: cols, Run: 1, Eps: eps}
	return dispatch("LayerNorm", x, normalize[float32], normalize[float64], normalizeOn)("LayerNorm", n, x, w, b)
}

// GroupNorm divides the channels of x, (N, C, ...), into groupCount groups and normalizes each
// group of each example to mean 0 and variance 1 (Wu and He, 2018). It returns the result times w
// plus b by channel; both must be (C) or nil. groupCount must divide C. If it equals C, this is an
// instance norm.
func GroupNorm(x, w, b *Var, groupCount int, eps float64) *Var {
	requireChannels("GroupNorm", x)
	c := x.t.Dim(1)
	if groupCount < 1 || c%groupCount != 0 {
		misuse(tensor.ErrShape, "GroupNorm: %d channels are not divisible by %d groups", c, groupCount)
	}
	if x.t.Numel() == groupCount {
		misuse(tensor.ErrShape, "GroupNorm: shape %v with %d groups has 1 element per group, want more",
			x.Shape(), groupCount)
	}
	checkAffine("GroupNorm", w, b, c)
	run := product(x.Shape()[2:])
	n := kernel.Norm{Rows: x.t.Dim(0) * groupCount, Groups: groupCount, Per: c / groupCount, Run: run, Eps: eps}
	return dispatch("GroupNorm", x, normalize[float32], normalize[float64], normalizeOn)("GroupNorm", n, x, w, b)
}

// channelShape returns the shape that broadcasts along the channels of x, (N, C, ...). It uses room
// if the result fits.
func channelShape(room []int, x *Var) []int {
	room = append(room, x.t.Dim(1))
	for range x.t.Dims() - 2 {
		room = append(room, 1)
	}
	return room
}

func checkAffine(op string, w, b *Var, shape ...int) {
	for _, p := range []*Var{w, b} {
		if p != nil && !sameShape(p.Shape(), shape) {
			misuse(tensor.ErrShape, "%s: got a weight or bias of shape %v, want %v",
				op, p.Shape(), slices.Clone(shape))
		}
	}
}

// normalize returns x normalized as n describes, then multiplied by the weight w and shifted by the
// bias b; each may be nil. op is the name of the operation in panics.
func normalize[F kernel.Float](op string, n kernel.Norm, x, w, b *Var) *Var {
	y := newResult(op, x.t.DType(), x.Shape(), x, w, b)
	xt, wt, bt := x.contiguousTensor(), denseOf(w), denseOf(b)
	means, scales := y.scope.newEmpty(nil, tensor.Float64, []int{n.Rows}),
		y.scope.newEmpty(nil, tensor.Float64, []int{n.Rows})
	kernel.Normalize(n, data[F](xt), dataOf[F](wt), dataOf[F](bt), data[F](y.t), tensor.Data[float64](means),
		tensor.Data[float64](scales))
	keepAlive(x, w, b)
	if y.saveIfNeeded(xt, means, scales); wt != nil {
		y.saveIfNeeded(wt)
	}
	y.ensurePlan().norm, y.ensurePlan().weighted = n, w != nil
	return y.setDerivatives(kernelByDType(op, y, normalizeBackward[float32], normalizeBackward[float64]),
		normalizeTwice)
}

// affineParams returns the weight and the bias of a norm, or nil.
func (v *Var) affineParams() (w, b *Var) {
	rest := v.inputs[1:]
	if v.ensurePlan().weighted {
		w, rest = rest[0], rest[1:]
	}
	if len(rest) > 0 {
		b = rest[0]
	}
	return w, b
}

func normalizeBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	w, b := y.affineParams()
	var wt *tensor.Tensor
	if w != nil {
		wt = y.saved[3].t
	}
	y.inputs[0].writeOr(func(dx *tensor.Tensor) {
		scratch := scratches.Get().(*kernel.Scratch)
		defer scratches.Put(scratch)
		kernel.NormalizeBackward(y.ensurePlan().norm, data[F](y.saved[0].t), dataOf[F](wt), data[F](dy),
			tensor.Data[float64](y.saved[1].t), tensor.Data[float64](y.saved[2].t),
			dataOf[F](dx), sumOf[F](w), sumOf[F](b), scratch)
	})
}

// normalizeOn implements normalize on a device.
func normalizeOn(op string, n kernel.Norm, x, w, b *Var) *Var {
	if op == "LayerNorm" && x.t.Numel() > 0 {
		return layerNormOn(n, x, w, b)
	}
	y, _, _ := standardizeOn(op, x, groupsOf(n), n.Eps)
	var shape []int // broadcast shape of the weight and the bias
	switch {
	case op == "GroupNorm":
		shape = channelShape(nil, x)
	case w != nil:
		shape = w.Shape()
	case b != nil:
		shape = b.Shape()
	}
	return applyAffine(op, y, w, b, product(shape), shape)
}

// layerNormOn implements LayerNorm on a device for an x with elements. It uses one device kernel
// for the rows and one for the gradient of x.
func layerNormOn(n kernel.Norm, x, w, b *Var) *Var {
	forward := device.RowOp{Kind: device.RowNorm, Factor: n.Eps}
	in := []*tensor.Tensor{x.t}
	if w != nil || b != nil {
		in = append(in, paramOrFilled(w, x.t, n.Per, 1), paramOrFilled(b, x.t, n.Per, 0))
	}
	y := wrapOwned("LayerNorm", applyNormOn(forward, n, 1, in...), x, w, b)
	y.ensurePlan().norm, y.ensurePlan().weighted = n, w != nil
	if y.needs {
		if y.saveTensors(x.t); w != nil {
			y.saveTensors(w.t)
		}
		y.backward = func(dy *tensor.Tensor) {
			if x.needsGradient() {
				in := []*tensor.Tensor{x.t, dy}
				if w != nil {
					in = append(in, w.t)
				}
				x.addAndClose(applyNormOn(device.RowOp{Kind: device.RowNormGradient, Factor: n.Eps}, n, 2, in...))
			}
			if w != nil && w.needsGradient() {
				along := applyNormOn(forward, n, 1, x.t).MulInPlace(dy)
				w.addAndClose(columnSums(along, n, w.Shape()))
				along.Close()
			}
			if b != nil && b.needsGradient() {
				b.addAndClose(columnSums(dy, n, b.Shape()))
			}
		}
	}
	return y.setRule(normalizeTwice)
}

// columnSums returns the sum of the rows of t, in the given shape. The caller must close it.
func columnSums(t *tensor.Tensor, n kernel.Norm, shape []int) *tensor.Tensor {
	sums := tensor.Sum(t.Reshape(n.Rows, n.Per), 0)
	defer sums.Close()
	return sums.View(shape...)
}

// paramOrFilled returns the tensor of parameter p in one dimension, or a new tensor of n elements
// v, with the dtype and device of like, if p is nil.
func paramOrFilled(p *Var, like *tensor.Tensor, n int, v float64) *tensor.Tensor {
	if p == nil {
		return like.NewEmpty(like.DType(), n).Fill(v)
	}
	return p.t.Reshape(n)
}

func groupsOf(n kernel.Norm) groups { return groups{n: n.Rows, parts: 1, width: n.Per * n.Run} }

// normalizeTwice is the rule of a norm with an optional weight and bias.
func normalizeTwice(y, dy *Var) derivatives {
	n, x, to, all := y.ensurePlan().norm, y.inputs[0], dy, derivativesOf(nil)
	seen := func(p *Var) []int {
		if y.op == "GroupNorm" {
			return channelShape(dy.scope.copyDims(y.Shape())[:0], y)
		}
		return p.Shape()
	}
	w, b := y.affineParams()
	rest := all.few[1:]
	if w != nil {
		to = Mul(dy, Reshape(w, seen(w)...))
		normal, _ := groupsOf(n).normalizeGroups(x, n.Eps)
		along := Mul(dy, Reshape(normal, y.Shape()...))
		rest[0], rest = Reshape(sumTo(along, prependOnes(seen(w), y)), w.Shape()...), rest[1:]
	}
	if b != nil {
		rest[0] = Reshape(sumTo(dy, prependOnes(seen(b), y)), b.Shape()...)
	}
	all.few[0] = groupsOf(n).standardizeGradient(x, to, n.Eps)
	return all
}

// prependOnes returns shape with ones prepended to y's number of dimensions.
func prependOnes(shape []int, y *Var) []int {
	all := make([]int, y.t.Dims())
	for i := range all {
		all[i] = 1
	}
	copy(all[len(all)-len(shape):], shape)
	return all
}
