package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// TransformerEncoderLayer consists of self-attention and a feed-forward network of two linear
// layers. Each has a residual connection and a layer norm. See Vaswani et al., Attention Is All You
// Need, 2017, https://arxiv.org/abs/1706.03762.
type TransformerEncoderLayer struct {
	SelfAttn                    *MultiheadAttention
	Linear1, Linear2            *Linear
	Norm1, Norm2                *LayerNorm
	Dropout, Dropout1, Dropout2 *Dropout

	NormFirst  bool // normalise the inputs of both parts instead of the outputs
	Activation Func // between the linear layers
}

// NewTransformerEncoderLayer returns a Float32 layer of embed features, with hidden features
// between its linear layers and dropout probability p. Parameters are initialised as in PyTorch,
// with random numbers from g, or from the default generator if g is nil. Its Activation is ReLU.
// heads must divide embed, and all sizes must be at least 1; otherwise NewTransformerEncoderLayer
// panics with an error that wraps [tensor.ErrArgument]. The caller may set NormFirst, Activation
// and SelfAttn.BatchFirst afterwards.
func NewTransformerEncoderLayer(embed, heads, hidden int, p float64, g *tensor.Generator) *TransformerEncoderLayer {
	t := &TransformerEncoderLayer{
		SelfAttn: NewMultiheadAttention(embed, heads, g), Linear1: NewLinear(embed, hidden, g),
		Linear2: NewLinear(hidden, embed, g),
		Norm1:   NewLayerNorm(embed), Norm2: NewLayerNorm(embed), Dropout: &Dropout{P: p},
		Dropout1: &Dropout{P: p}, Dropout2: &Dropout{P: p},
		Activation: ReLU,
	}
	t.SelfAttn.P = p
	return t
}

// Forward is [TransformerEncoderLayer.Encode] without a mask: each element sees all others.
func (t *TransformerEncoderLayer) Forward(x *autograd.Var) *autograd.Var {
	return t.Encode(x, AttentionMask{})
}

// Encode applies the layer to x with an attention mask. x must be (L, N, embed), or (N, L, embed)
// with SelfAttn.BatchFirst, or (L, embed) if unbatched. The result has the shape of x.
func (t *TransformerEncoderLayer) Encode(x *autograd.Var, mask AttentionMask) *autograd.Var {
	attend := func(x *autograd.Var) *autograd.Var {
		return t.Dropout1.Forward(t.SelfAttn.Attend(x, x, x, mask))
	}
	if t.NormFirst {
		x = autograd.Add(x, attend(t.Norm1.Forward(x)))
		return autograd.Add(x, t.feedForward(t.Norm2.Forward(x)))
	}
	x = t.Norm1.Forward(autograd.Add(x, attend(x)))
	return t.Norm2.Forward(autograd.Add(x, t.feedForward(x)))
}

// feedForward applies the feed-forward network.
func (t *TransformerEncoderLayer) feedForward(x *autograd.Var) *autograd.Var {
	x = t.Activation.Forward(t.Linear1.Forward(x))
	return t.Dropout2.Forward(t.Linear2.Forward(t.Dropout.Forward(x)))
}

// TransformerEncoder applies [TransformerEncoderLayer] layers one after another.
type TransformerEncoder struct {
	Layers []*TransformerEncoderLayer
	Norm   *LayerNorm // applied to the output of the last layer; or nil
}

// Forward is [TransformerEncoder.Encode] without a mask: each element sees all others.
func (t *TransformerEncoder) Forward(x *autograd.Var) *autograd.Var {
	return t.Encode(x, AttentionMask{})
}

// Encode passes x through the layers and returns a value of the same shape. x and mask are as for
// [TransformerEncoderLayer.Encode].
func (t *TransformerEncoder) Encode(x *autograd.Var, mask AttentionMask) *autograd.Var {
	for _, l := range t.Layers {
		x = l.Encode(x, mask)
	}
	if t.Norm != nil {
		x = t.Norm.Forward(x)
	}
	return x
}
