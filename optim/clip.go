package optim

import (
	"iter"
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// ClipGradNorm scales the gradients of params so that their Euclidean norm, as of one vector, is
// at most limit. It returns the norm before scaling. The caller should check it: if the norm is
// NaN or infinite, the scaled gradients are useless, as in PyTorch. ClipGradNorm panics with an
// error that wraps [tensor.ErrMisuse] if limit is negative or NaN, or if a gradient on the host
// is neither Float32 nor Float64.
func ClipGradNorm(params iter.Seq[*autograd.Param], limit float64) float64 {
	if !(limit >= 0) {
		misuse("ClipGradNorm: got limit %v, want at least 0", limit)
	}
	squares := 0.0
	for p := range params {
		switch {
		case p.Grad == nil:
		case p.Grad.Device() != nil:
			all := tensor.Mul(p.Grad, p.Grad)
			squares += all.Sum()
			all.Close()
		default:
			squares += applyTyped(p.Grad, squaresOf[float32], squaresOf[float64])
		}
	}
	norm := math.Sqrt(squares)
	factor := limit / (norm + 1e-6)
	if factor >= 1 {
		return norm
	}
	for p := range params {
		if p.Grad != nil {
			p.Grad.MulScalarInPlace(factor)
		}
	}
	return norm
}

// squaresOf returns the sum of squares. It uses four accumulators, because additions to a single
// one would have to wait for each other.
func squaresOf[F kernel.Float](x []F) float64 {
	var a, b, c, d float64
	for ; len(x) >= 4; x = x[4:] {
		a += float64(x[0]) * float64(x[0])
		b += float64(x[1]) * float64(x[1])
		c += float64(x[2]) * float64(x[2])
		d += float64(x[3]) * float64(x[3])
	}
	for _, v := range x {
		a += float64(v) * float64(v)
	}
	return (a + b) + (c + d)
}

// applyTyped applies f32 or f64 to the elements of t, by its dtype. It panics with
// [tensor.ErrMisuse] for other dtypes.
func applyTyped(t *tensor.Tensor, f32 func([]float32) float64, f64 func([]float64) float64) float64 {
	switch dt := t.DType(); dt {
	case tensor.Float32:
		return f32(tensor.Data[float32](t))
	case tensor.Float64:
		return f64(tensor.Data[float64](t))
	default:
		misuse("got a gradient of %v, want float32 or float64", dt)
		return 0
	}
}
