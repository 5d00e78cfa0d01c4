package nn

import (
	"iter"
	"math"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/wire"
)

// A MultiheadAttention layer has several heads attend to a sequence, each to its part of the projected features.
type MultiheadAttention struct {
	InProjWeight *autograd.Param // (3·embed, embed): of queries, keys and values
	InProjBias   *autograd.Param // (3·embed), or nil
	OutProj      *Linear         // embed to embed
	Heads        int
	BatchFirst   bool    // sequences are (N, L, embed), not (L, N, embed)
	P            float64 // the probability that a weight is dropped in training
	Off          bool    // set by Eval: drop nothing

	Generator *tensor.Generator `wire:"-" torch:"-"` // as that of a Dropout
}

// NewMultiheadAttention returns a float32 layer, initialised as PyTorch's with numbers from g, or from the default generator if g is nil. It panics unless heads divides
// embed.
func NewMultiheadAttention(embed, heads int, g *tensor.Generator) *MultiheadAttention {
	checkSizes("NewMultiheadAttention", embed, heads)
	if embed%heads != 0 {
		misuse("NewMultiheadAttention of %d features in %d heads: they are divided evenly between them", embed, heads)
	}
	bound := math.Sqrt(6 / float64(4*embed))
	out := NewLinear(embed, embed, g)
	out.Bias.T.Zero()
	return &MultiheadAttention{
		InProjWeight: autograd.NewParam("in_proj_weight", tensor.New(tensor.Float32, 3*embed, embed).Uniform(g, -bound, bound)),
		InProjBias:   constant("in_proj_bias", 0, 3*embed), OutProj: out, Heads: heads,
	}
}

// Params returns InProjWeight, InProjBias and those of OutProj.
func (m *MultiheadAttention) Params() iter.Seq[*autograd.Param] { return Params(m) }

// Train switches dropping on or off.
func (m *MultiheadAttention) Train(on bool) { m.Off = !on }

// An AttentionMask says what queries do not see, as in PyTorch: of Bool, that is where it is true.
type AttentionMask struct {
	Mask    *tensor.Tensor // (L, S) or (N·heads, L, S): of Bool, or numbers that are added to products; nil: all is seen
	Padding *tensor.Tensor // (N, S), of the same kinds: keys that no query of an example sees; nil: none
	Causal  bool           // query i sees the keys up to i alone
}

// Forward is the attention of a sequence to itself.
func (m *MultiheadAttention) Forward(x *autograd.Var) *autograd.Var {
	return m.Attend(x, x, x, AttentionMask{})
}

// Attend returns the attention of queries q, (L, N, embed), to keys k and values v, (S, N, embed): (L, N, embed). With BatchFirst the first two dimensions change places;
// without a batch there is no N.
func (m *MultiheadAttention) Attend(q, k, v *autograd.Var, mask AttentionMask) *autograd.Var {
	y, _ := m.attend(q, k, v, mask, false)
	return y
}

// AttendWeights is Attend, and the weights of the keys, (N, L, S), as means over the heads. Nothing is dropped.
func (m *MultiheadAttention) AttendWeights(q, k, v *autograd.Var, mask AttentionMask) (y, weights *autograd.Var) {
	return m.attend(q, k, v, mask, true)
}

func (m *MultiheadAttention) attend(q, k, v *autograd.Var, mask AttentionMask, weigh bool) (y, weights *autograd.Var) {
	m.check(q, k, v)
	single := len(q.Shape()) == 2
	parts := m.project(q, k, v, single)
	n, l, s := parts[0].Shape()[0], parts[0].Shape()[2], parts[1].Shape()[2]
	o := autograd.Attention{Mask: mask.merged(n, m.Heads, l, s, parts[0].T()), Causal: mask.Causal, Generator: m.Generator}
	if weigh {
		w := autograd.AttentionWeights(parts[0], parts[1], o)
		y, weights = autograd.MatMul(w, parts[2]), autograd.Mean(w, 1)
	} else {
		if !m.Off {
			o.Dropout = m.P
		}
		y = autograd.ScaledDotProductAttention(parts[0], parts[1], parts[2], o)
	}
	y = autograd.Reshape(autograd.Permute(y, m.order(0, 2, 1, 3)...), m.leading(n, l, -1)...)
	y = m.OutProj.Forward(y)
	if single {
		y = autograd.Squeeze(y, m.batchDim())
		if weigh {
			weights = autograd.Squeeze(weights, 0)
		}
	}
	return y, weights
}

func (m *MultiheadAttention) check(q, k, v *autograd.Var) {
	embed := m.InProjWeight.T.Dim(1)
	for _, x := range []*autograd.Var{q, k, v} {
		n := len(x.Shape())
		if n != 2 && n != 3 || n != len(q.Shape()) || x.Shape()[n-1] != embed {
			misuse("MultiheadAttention of %v, %v and %v: they are sequences of %d features, with or without a batch", q.Shape(), k.Shape(), v.Shape(), embed)
		}
	}
	if m.Heads < 1 || embed%m.Heads != 0 {
		misuse("MultiheadAttention of %d features in %d heads: they are divided evenly between them", embed, m.Heads)
	}
}

// batchDim is the dimension of the batch.
func (m *MultiheadAttention) batchDim() int {
	if m.BatchFirst {
		return 0
	}
	return 1
}

// leading is a shape whose first two sizes are those of the batch and of a sequence.
func (m *MultiheadAttention) leading(n, l int, rest ...int) []int {
	if m.BatchFirst {
		return append([]int{n, l}, rest...)
	}
	return append([]int{l, n}, rest...)
}

// order is that of the dimensions n, l, ... where they stand as sequences have them.
func (m *MultiheadAttention) order(dims ...int) []int {
	if !m.BatchFirst {
		dims[0], dims[1] = dims[1], dims[0]
	}
	return dims
}

// project returns queries, keys and values as (N, heads, length, features).
func (m *MultiheadAttention) project(q, k, v *autograd.Var, single bool) (parts [3]*autograd.Var) {
	embed := m.InProjWeight.T.Dim(1)
	w, bias := m.InProjWeight.Var(), optional(m.InProjBias)
	back := []int{0, 2, 1, 3}
	if !m.BatchFirst {
		back = []int{1, 2, 0, 3}
	}
	for i, x := range []*autograd.Var{q, k, v} {
		if single {
			x = autograd.Unsqueeze(x, m.batchDim())
		}
		var b *autograd.Var
		if bias != nil {
			b = autograd.Narrow(bias, 0, i*embed, embed)
		}
		x = autograd.Linear(x, autograd.Narrow(w, 0, i*embed, embed), b)
		shape := append(append([]int{}, x.Shape()[:2]...), m.Heads, embed/m.Heads)
		parts[i] = autograd.Permute(autograd.Reshape(x, shape...), back...)
	}
	return parts
}

// merged returns both masks as one that is added, (N or 1, heads or 1, L or 1, S), or nil.
func (a AttentionMask) merged(n, heads, l, s int, like *tensor.Tensor) *autograd.Var {
	var sum *tensor.Tensor
	add := func(t *tensor.Tensor, shape ...int) {
		if t.DType() == tensor.Bool {
			zeros := like.NewZeros(like.DType(), t.Shape()...)
			t = zeros.MaskedFill(t, math.Inf(-1))
		}
		if t = t.To(like.DType()).Reshape(shape...); sum != nil {
			t = tensor.Add(sum, t)
		}
		sum = t
	}
	if t := a.Mask; t != nil {
		switch shape := t.Shape(); {
		case len(shape) == 2 && shape[0] == l && shape[1] == s:
			add(t, 1, 1, l, s)
		case len(shape) == 3 && shape[0] == n*heads && shape[1] == l && shape[2] == s:
			add(t, n, heads, l, s)
		default:
			misuse("an attention with a mask of %v: it is %v or %v", shape, []int{l, s}, []int{n * heads, l, s})
		}
	}
	if t := a.Padding; t != nil {
		if t.Numel() != n*s || t.Dims() > 2 || t.Dim(-1) != s {
			misuse("an attention with padding %v: it is %v", t.Shape(), []int{n, s})
		}
		add(t, n, 1, 1, s)
	}
	if sum == nil {
		return nil
	}
	return autograd.Const(sum)
}

func init() {
	wire.RegisterType[*MultiheadAttention]("nn.MultiheadAttention")
	wire.RegisterType[*TransformerEncoderLayer]("nn.TransformerEncoderLayer")
	wire.RegisterType[*TransformerEncoder]("nn.TransformerEncoder")
}
