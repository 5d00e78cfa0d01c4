package nn

import (
	"iter"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// An Embedding layer has a row of learned features for each of n things.
type Embedding struct {
	Weight *autograd.Param // (n, features)
}

// NewEmbedding returns a float32 layer, initialised as PyTorch's with numbers from g, or from the default generator if g
// is nil.
func NewEmbedding(n, features int, g *tensor.Generator) *Embedding {
	checkSizes("NewEmbedding", n, features)
	return &Embedding{autograd.NewParam("weight", tensor.RandN(tensor.Float32, g, n, features))}
}

// Params returns Weight.
func (e *Embedding) Params() iter.Seq[*autograd.Param] { return Params(e) }

// Forward takes the numbers of things, Int64 of any shape, and returns (..., features).
func (e *Embedding) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Embedding(e.Weight.Var(), x)
}
