package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// An Embedding layer has a row of learned features for each number from 0 to n-1.
type Embedding struct {
	Weight *autograd.Param // (n, features)
	// numbers whose rows get no gradient: PyTorch's padding_idx. A negative number counts from the
	// end
	Padding []int64
}

// NewEmbedding returns a Float32 layer, initialised as PyTorch's, with numbers from g, or from the
// default generator if g is nil. The rows of padding, PyTorch's padding_idx, are zeros and stay
// zeros.
func NewEmbedding(n, features int, g *tensor.Generator, padding ...int64) *Embedding {
	checkSizes("NewEmbedding", n, features)
	w := tensor.RandN(tensor.Float32, g, n, features)
	for _, p := range padding {
		w.Select(0, int(p)).Zero()
	}
	return &Embedding{autograd.NewParam("weight", w), padding}
}

// Forward takes numbers, Int64 of any shape (...), and returns their rows, (..., features).
func (e *Embedding) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Embedding(e.Weight.Var(), x, e.Padding...)
}
