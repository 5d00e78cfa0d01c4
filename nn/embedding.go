package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// An Embedding layer has a row of learned features for each of n things.
type Embedding struct {
	Weight *autograd.Param // (n, features)
	// things that stand for nothing: their rows get no gradient. They count from the end if they
	// are negative
	Padding []int64
}

// NewEmbedding returns a float32 layer, initialised as PyTorch's with numbers from g, or from the
// default generator if g is nil. The rows of what is padding, PyTorch's padding_idx, are zeros and
// stay so.
func NewEmbedding(n, features int, g *tensor.Generator, padding ...int64) *Embedding {
	checkSizes("NewEmbedding", n, features)
	w := tensor.RandN(tensor.Float32, g, n, features)
	for _, p := range padding {
		w.Select(0, int(p)).Zero()
	}
	return &Embedding{autograd.NewParam("weight", w), padding}
}

// Forward takes the numbers of things, Int64 of any shape, and returns (..., features).
func (e *Embedding) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Embedding(e.Weight.Var(), x, e.Padding...)
}
