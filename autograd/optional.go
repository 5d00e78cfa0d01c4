package autograd

import (
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// Inputs that an operation may lack, such as a bias, are nil, and so is what becomes of them.

func denseOf(v *Var) *tensor.Tensor {
	if v == nil {
		return nil
	}
	return v.dense()
}

func dataOf[F kernel.Float](t *tensor.Tensor) []F {
	if t == nil {
		return nil
	}
	return data[F](t)
}

// sumOf returns what the gradients of v are added up in, or nil if it needs none.
func sumOf[F kernel.Float](v *Var) []F {
	if v == nil || !v.wanted() {
		return nil
	}
	return data[F](v.total())
}

// writeOr is write, for an operation that computes the gradients of others at once: f is also
// called, with nil, if v needs none.
func (v *Var) writeOr(f func(dx *tensor.Tensor)) {
	if v.wanted() {
		v.write(f)
	} else {
		f(nil)
	}
}
