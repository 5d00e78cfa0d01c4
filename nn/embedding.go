package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Embedding is a layer that maps each number from 0 to n-1 to a row of learned features.
type Embedding struct {
	Weight *autograd.Param // (n, features)
	// Padding lists rows that get no gradient: PyTorch's padding_idx. A negative number counts from
	// the end.
	Padding []int64
}

// EmbeddingOptions configure [NewEmbeddingWith]. The zero value is valid.
type EmbeddingOptions struct {
	// Padding lists rows that are zeros and get no gradient: PyTorch's padding_idx. A negative
	// number counts from the end.
	Padding []int64
}

// NewEmbedding returns a Float32 layer, initialised as in PyTorch, with random numbers from g, or
// from the default generator if g is nil. NewEmbedding panics with an error that wraps
// [tensor.ErrArgument] if n or features is less than 1.
func NewEmbedding(n, features int, g *tensor.Generator) *Embedding {
	return NewEmbeddingWith(n, features, g, EmbeddingOptions{})
}

// NewEmbeddingWith is like [NewEmbedding] with the given options. It panics with an error that
// wraps [tensor.ErrIndex] if a row in opts.Padding does not exist.
func NewEmbeddingWith(n, features int, g *tensor.Generator, opts EmbeddingOptions) *Embedding {
	checkSizes("NewEmbedding", n, features)
	w := tensor.RandN(tensor.Float32, g, n, features)
	for _, p := range opts.Padding {
		w.Select(0, int(p)).Zero()
	}
	return &Embedding{autograd.NewParam("weight", w), opts.Padding}
}

// Forward returns the rows, (..., features), for the numbers x, which must be Int64 of any shape
// (...) and from 0 to n-1. It panics with an error that wraps [tensor.ErrIndex] if a number is out
// of range, or [tensor.ErrMisuse] if x has another dtype.
func (e *Embedding) Forward(x *autograd.Var) *autograd.Var {
	return autograd.Embedding(e.Weight.Var(), x, e.Padding...)
}
