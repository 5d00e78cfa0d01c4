package nn

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// A TransformerEncoderLayer has two parts: the attention of a sequence to itself, and two linear
// layers for each element. The output of each part is added to its input (Vaswani and others,
// 2017).
type TransformerEncoderLayer struct {
	SelfAttn                    *MultiheadAttention
	Linear1, Linear2            *Linear
	Norm1, Norm2                *LayerNorm
	Dropout, Dropout1, Dropout2 *Dropout

	NormFirst  bool // normalise the inputs of the two parts, not the outputs
	Activation Func // between the linear layers
}

// NewTransformerEncoderLayer returns a Float32 layer of embed features, with hidden features
// between its linear layers, and dropout of probability p. It is initialised as PyTorch's, with
// numbers from g, or from the default generator if g is nil. Its Activation is ReLU. Set NormFirst,
// Activation and SelfAttn.BatchFirst afterwards. It panics unless heads divides embed.
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

// Forward does what Encode does without a mask: each element sees all others.
func (t *TransformerEncoderLayer) Forward(x *autograd.Var) *autograd.Var {
	return t.Encode(x, AttentionMask{})
}

// Encode takes x and returns a value of the same shape. x is (L, N, embed), or (N, L, embed) with
// SelfAttn.BatchFirst, or (L, embed) without a batch.
func (t *TransformerEncoderLayer) Encode(x *autograd.Var, mask AttentionMask) *autograd.Var {
	attend := func(x *autograd.Var) *autograd.Var {
		return t.Dropout1.Forward(t.SelfAttn.Attend(x, x, x, mask))
	}
	if t.NormFirst {
		x = autograd.Add(x, attend(t.Norm1.Forward(x)))
		return autograd.Add(x, t.feed(t.Norm2.Forward(x)))
	}
	x = t.Norm1.Forward(autograd.Add(x, attend(x)))
	return t.Norm2.Forward(autograd.Add(x, t.feed(x)))
}

// feed passes elements through the linear layers.
func (t *TransformerEncoderLayer) feed(x *autograd.Var) *autograd.Var {
	x = t.Activation.Forward(t.Linear1.Forward(x))
	return t.Dropout2.Forward(t.Linear2.Forward(t.Dropout.Forward(x)))
}

// A TransformerEncoder applies TransformerEncoderLayers one after another.
type TransformerEncoder struct {
	Layers []*TransformerEncoderLayer
	Norm   *LayerNorm // for the output of the last layer, or nil
}

// Forward does what Encode does without a mask: each element sees all others.
func (t *TransformerEncoder) Forward(x *autograd.Var) *autograd.Var {
	return t.Encode(x, AttentionMask{})
}

// Encode passes x through the layers and returns a value of the same shape. x and mask are those of
// TransformerEncoderLayer.Encode.
func (t *TransformerEncoder) Encode(x *autograd.Var, mask AttentionMask) *autograd.Var {
	for _, l := range t.Layers {
		x = l.Encode(x, mask)
	}
	if t.Norm != nil {
		x = t.Norm.Forward(x)
	}
	return x
}
