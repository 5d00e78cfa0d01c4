package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// Functions for optional inputs of an operation, such as a bias. They accept nil and return nil for
// it.

func denseOf(v *Var) *tensor.Tensor {
	if v == nil {
		return nil
	}
	return v.contiguousTensor()
}

func dataOf[F kernel.Float](t *tensor.Tensor) []F {
	if t == nil {
		return nil
	}
	return data[F](t)
}

// sumOf returns the elements of v's accumulated gradient, or nil if v needs none.
func sumOf[F kernel.Float](v *Var) []F {
	if v == nil || !v.needsGradient() {
		return nil
	}
	return data[F](v.gradientSum())
}

// writeOr is like writeGradient, for an operation that computes several gradients at once: it also
// calls f, with nil, if v needs none.
func (v *Var) writeOr(f func(dx *tensor.Tensor)) {
	if v.needsGradient() {
		v.writeGradient(f)
	} else {
		f(nil)
	}
}
