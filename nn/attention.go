package nn

import (
	"math"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// A MultiheadAttention layer attends to a sequence with several heads, each with its part of the
// projected features (Vaswani and others, 2017).
type MultiheadAttention struct {
	Mode

	InProjWeight *autograd.Param // (3·embed, embed) for queries, keys and values; if nil, the next three:
	QProjWeight  *autograd.Param // (embed, embed)
	KProjWeight  *autograd.Param // (embed, kdim)
	VProjWeight  *autograd.Param // (embed, vdim)
	InProjBias   *autograd.Param // (3·embed), or nil
	BiasK, BiasV *autograd.Param // (1, 1, embed): a further key that all queries see, and its value; or nil
	OutProj      *Linear         // embed to embed
	Heads        int
	BatchFirst   bool    // sequences are (N, L, embed), not (L, N, embed)
	ZeroAttn     bool    // a further key and value of zeros that all queries see: add_zero_attn
	P            float64 // probability that a weight is dropped in training

	Generator *tensor.Generator `wire:"-" torch:"-"` // as that of a Dropout
}

// NewMultiheadAttention returns a Float32 layer for queries, keys and values of embed features. It
// is initialised as PyTorch's, with numbers from g, or from the default generator if g is nil. It
// panics unless heads divides embed.
func NewMultiheadAttention(embed, heads int, g *tensor.Generator) *MultiheadAttention {
	return newMultiheadAttention("NewMultiheadAttention", embed, heads, embed, embed, g)
}

// NewMultiheadAttentionOf returns a layer for queries of embed features, keys of kdim features and
// values of vdim features. If kdim or vdim is not embed, queries, keys and values have separate
// weights, as in PyTorch. The other arguments are those of NewMultiheadAttention.
func NewMultiheadAttentionOf(embed, heads, kdim, vdim int, g *tensor.Generator) *MultiheadAttention {
	return newMultiheadAttention("NewMultiheadAttentionOf", embed, heads, kdim, vdim, g)
}

func newMultiheadAttention(what string, embed, heads, kdim, vdim int, g *tensor.Generator) *MultiheadAttention {
	checkSizes(what, embed, heads, kdim, vdim)
	if embed%heads != 0 {
		misuse(tensor.ErrArgument, "%s of %d features in %d heads: they are divided evenly between them", what, embed, heads)
	}
	m := &MultiheadAttention{InProjBias: constant("in_proj_bias", 0, 3*embed),
		OutProj: NewLinear(embed, embed, g), Heads: heads}
	m.OutProj.Bias.T.Zero()
	if kdim == embed && vdim == embed {
		m.InProjWeight = xavier("in_proj_weight", g, 3*embed, embed)
		return m
	}
	m.QProjWeight, m.KProjWeight, m.VProjWeight = xavier("q_proj_weight", g, embed, embed),
		xavier("k_proj_weight", g, embed, kdim), xavier("v_proj_weight", g, embed, vdim)
	return m
}

// xavier returns a parameter with numbers from ±√(6/(out+in)): PyTorch's xavier_uniform.
func xavier(name string, g *tensor.Generator, out, in int) *autograd.Param {
	bound := math.Sqrt(6 / float64(out+in))
	return autograd.NewParam(name, tensor.New(tensor.Float32, out, in).Uniform(g, -bound, bound))
}

// AddBiasKV adds a learned key and value to those that queries see: PyTorch's add_bias_kv. They are
// initialised as PyTorch's, with numbers from g, or from the default generator if g is nil. Call it
// before m is shared or its parameters are given to an optimizer.
func (m *MultiheadAttention) AddBiasKV(g *tensor.Generator) {
	embed := m.embed()
	learned := func(name string) *autograd.Param {
		return autograd.NewParam(name, tensor.RandN(tensor.Float32, g, 1, 1,
			embed).MulScalar(1/math.Sqrt(float64(embed))))
	}
	m.BiasK, m.BiasV = learned("bias_k"), learned("bias_v")
}

// embed is how many features queries and outputs have.
func (m *MultiheadAttention) embed() int { return m.OutProj.Weight.T.Dim(1) }

// An AttentionMask says which keys a query does not see. As in PyTorch's layer, true hides a key.
type AttentionMask struct {
	// (L, S) or (N·heads, L, S): Bool, true where a query does not see a key, or floats that are
	// added to the products; nil: each query sees all keys
	Mask    *tensor.Tensor
	Padding *tensor.Tensor // (N, S), Bool or floats as Mask, for all queries of an example; nil: none
	Causal  bool           // query i sees only the keys 0 to i
}

// Forward returns the attention of a sequence x, (L, N, embed), to itself, in the same shape.
func (m *MultiheadAttention) Forward(x *autograd.Var) *autograd.Var {
	return m.Attend(x, x, x, AttentionMask{})
}

// Attend returns the attention, (L, N, embed), of queries q, (L, N, embed), to keys k, (S, N,
// kdim), and values v, (S, N, vdim). With BatchFirst N is the first dimension. Without a batch
// there is no N.
func (m *MultiheadAttention) Attend(q, k, v *autograd.Var, mask AttentionMask) *autograd.Var {
	y, _ := m.attend(q, k, v, mask, false)
	return y
}

// AttendWeights returns the result of Attend and the weights of the keys, (N, L, S), as means over
// the heads. Keys of BiasK and ZeroAttn come last. AttendWeights drops no weights.
func (m *MultiheadAttention) AttendWeights(q, k, v *autograd.Var, mask AttentionMask) (y, weights *autograd.Var) {
	return m.attend(q, k, v, mask, true)
}

func (m *MultiheadAttention) attend(q, k, v *autograd.Var, mask AttentionMask, weigh bool) (y, weights *autograd.Var) {
	m.check(q, k, v)
	single := len(q.Shape()) == 2
	parts := m.project(q, k, v, single)
	n, l := parts[0].Shape()[0], parts[0].Shape()[2]
	o := autograd.Attention{Mask: mask.merged(m.Heads, parts[0].T(), parts[1].T(), m.more()),
		Causal: mask.Causal && m.more() == 0, Generator: m.Generator}
	m.lengthen(&parts)
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
	qs, ks, vs, n := q.Shape(), k.Shape(), v.Shape(), len(q.Shape())
	w := m.weights()
	embed, kdim, vdim := w[0].Shape()[1], w[1].Shape()[1], w[2].Shape()[1]
	if n != 2 && n != 3 || len(ks) != n || len(vs) != n || qs[n-1] != embed || ks[n-1] != kdim || vs[n-1] != vdim {
		misuse(tensor.ErrShape, "MultiheadAttention of %v, %v and %v: they are sequences of %d, %d and %d features, with or without a batch", qs, ks, vs, embed, kdim, vdim)
	}
	if !slices.Equal(ks[:n-1], vs[:n-1]) {
		misuse(tensor.ErrShape, "MultiheadAttention of keys %v and values %v: each key has a value", ks, vs)
	}
	if n == 3 && qs[m.batchDim()] != ks[m.batchDim()] {
		misuse(tensor.ErrShape, "MultiheadAttention of queries %v to keys %v: dimension %d is that of the batch, see BatchFirst", qs, ks, m.batchDim())
	}
	if m.Heads < 1 || embed%m.Heads != 0 {
		misuse(tensor.ErrShape, "MultiheadAttention of %d features in %d heads: they are divided evenly between them", embed, m.Heads)
	}
}

// weights are those by which queries, keys and values are projected.
func (m *MultiheadAttention) weights() (w [3]*autograd.Var) {
	if m.InProjWeight == nil {
		return [3]*autograd.Var{m.QProjWeight.Var(), m.KProjWeight.Var(), m.VProjWeight.Var()}
	}
	all, embed := m.InProjWeight.Var(), m.embed()
	for i := range w {
		w[i] = autograd.Narrow(all, 0, i*embed, embed)
	}
	return w
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
	embed, w, bias := m.embed(), m.weights(), optional(m.InProjBias)
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
		x = autograd.Linear(x, w[i], b)
		shape := append(append([]int{}, x.Shape()[:2]...), m.Heads, embed/m.Heads)
		parts[i] = autograd.Permute(autograd.Reshape(x, shape...), back...)
	}
	return parts
}

// more is how many keys there are beside those that are given.
func (m *MultiheadAttention) more() (n int) {
	if m.BiasK != nil {
		n++
	}
	if m.ZeroAttn {
		n++
	}
	return n
}

// lengthen adds these to the keys and values, (N, heads, S, features).
func (m *MultiheadAttention) lengthen(parts *[3]*autograd.Var) {
	for i, bias := range []*autograd.Param{nil, m.BiasK, m.BiasV} {
		shape := slices.Clone(parts[i].Shape())
		shape[2] = 1
		if bias != nil {
			own := autograd.Reshape(bias.Var(), 1, shape[1], 1, shape[3])
			parts[i] = autograd.Cat(2, parts[i], autograd.Expand(own, shape...))
		}
		if m.ZeroAttn && i > 0 {
			t := parts[i].T()
			parts[i] = autograd.Cat(2, parts[i], autograd.Const(t.NewZeros(t.DType(), shape...)))
		}
	}
}

// merged returns both masks as one that is added to the products of queries with keys, (N, heads, L
// or S, features), and with so many more keys, which all see: (N or 1, heads or 1, L or 1, S+more),
// or nil.
func (a AttentionMask) merged(heads int, q, k *tensor.Tensor, more int) *autograd.Var {
	n, l, s := q.Dim(0), q.Dim(2), k.Dim(2)
	var sum *tensor.Tensor
	add := func(t *tensor.Tensor, shape ...int) {
		if t.DType() == tensor.Bool {
			zeros := q.NewZeros(q.DType(), t.Shape()...)
			t = zeros.MaskedFill(t, math.Inf(-1))
		}
		if t = t.To(q.DType()).Reshape(shape...); sum != nil {
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
			misuse(tensor.ErrShape, "an attention with a mask of %v: it is %v or %v", shape, []int{l, s}, []int{n * heads, l, s})
		}
	}
	if t := a.Padding; t != nil {
		if t.Numel() != n*s || t.Dims() > 2 || t.Dim(-1) != s {
			misuse(tensor.ErrShape, "an attention with padding %v: it is %v", t.Shape(), []int{n, s})
		}
		add(t, n, 1, 1, s)
	}
	if more > 0 && a.Causal {
		add(later(q, l, s), 1, 1, l, s)
	}
	if sum == nil {
		return nil
	}
	if more > 0 {
		shape := slices.Clone(sum.Shape())
		shape[3] = more
		sum = tensor.Cat(3, sum, sum.NewZeros(sum.DType(), shape...))
	}
	return autograd.Const(sum)
}

// later says of each query which keys come after it, where like is.
func later(like *tensor.Tensor, queries, keys int) *tensor.Tensor {
	arange := func(n int) *tensor.Tensor {
		t, err := tensor.On(like.Device()).Arange(tensor.Int64, 0, float64(n), 1)
		if err != nil {
			panic(err)
		}
		return t
	}
	return tensor.Gt(arange(keys), arange(queries).Reshape(-1, 1))
}

func init() {
	codec.RegisterType[*MultiheadAttention]("nn.MultiheadAttention")
	codec.RegisterType[*TransformerEncoderLayer]("nn.TransformerEncoderLayer")
	codec.RegisterType[*TransformerEncoder]("nn.TransformerEncoder")
}
