package nn

import (
	"cmp"
	"math"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// MultiheadAttention is a layer that computes scaled dot-product attention in several heads. Each
// head attends with its own slice of the projected features. See Vaswani et al., Attention Is All
// You Need, 2017, https://arxiv.org/abs/1706.03762.
type MultiheadAttention struct {
	Mode

	// (3·embed, embed), for queries, keys and values. If nil, the next three are used.
	InProjWeight *autograd.Param
	QProjWeight  *autograd.Param // (embed, embed)
	KProjWeight  *autograd.Param // (embed, kdim)
	VProjWeight  *autograd.Param // (embed, vdim)
	InProjBias   *autograd.Param // (3·embed), or nil
	BiasK, BiasV *autograd.Param // (1, 1, embed): an extra key and value for all queries; or nil
	OutProj      *Linear         // embed to embed
	Heads        int
	BatchFirst   bool    // sequences are (N, L, embed), instead of (L, N, embed)
	ZeroAttn     bool    // append a zero key and value that all queries see: add_zero_attn
	P            float64 // probability that an attention weight is dropped in training

	Generator *tensor.Generator `wire:"-" torch:"-"` // as [Dropout.Generator]
}

// AttentionOptions configure [NewMultiheadAttentionWith]. The zero value is valid. Other
// properties, such as BatchFirst, are fields of [MultiheadAttention] that may be set afterwards.
type AttentionOptions struct {
	// KDim and VDim are the features of the keys and of the values: PyTorch's kdim and vdim. Their
	// default is the number of features of the queries. If one of them differs from it, queries,
	// keys and values have separate projection weights, as in PyTorch.
	KDim, VDim int
}

// NewMultiheadAttention returns a Float32 layer for queries, keys and values of embed features.
// Parameters are initialised as in PyTorch, with random numbers from g, or from the default
// generator if g is nil. heads must divide embed, and both must be at least 1; otherwise
// NewMultiheadAttention panics with an error that wraps [tensor.ErrArgument].
func NewMultiheadAttention(embed, heads int, g *tensor.Generator) *MultiheadAttention {
	return newMultiheadAttention("NewMultiheadAttention", embed, heads, g, AttentionOptions{})
}

// NewMultiheadAttentionWith is like [NewMultiheadAttention] with the given options. It panics with
// an error that wraps [tensor.ErrArgument] also if an option is negative.
func NewMultiheadAttentionWith(embed, heads int, g *tensor.Generator, opts AttentionOptions) *MultiheadAttention {
	return newMultiheadAttention("NewMultiheadAttentionWith", embed, heads, g, opts)
}

func newMultiheadAttention(what string, embed, heads int, g *tensor.Generator,
	opts AttentionOptions) *MultiheadAttention {
	kdim, vdim := cmp.Or(opts.KDim, embed), cmp.Or(opts.VDim, embed)
	checkSizes(what, embed, heads, kdim, vdim)
	if embed%heads != 0 {
		misuse(tensor.ErrArgument, "%s: %d features are not divisible by %d heads", what, embed, heads)
	}
	m := &MultiheadAttention{InProjBias: constantParam("in_proj_bias", 0, 3*embed),
		OutProj: NewLinear(embed, embed, g), Heads: heads}
	m.OutProj.Bias.T.Zero()
	if kdim == embed && vdim == embed {
		m.InProjWeight = xavierParam("in_proj_weight", g, 3*embed, embed)
		return m
	}
	m.QProjWeight, m.KProjWeight, m.VProjWeight = xavierParam("q_proj_weight", g, embed, embed),
		xavierParam("k_proj_weight", g, embed, kdim), xavierParam("v_proj_weight", g, embed, vdim)
	return m
}

// xavierParam returns a Float32 parameter, (out, in), drawn uniformly from ±√(6/(out+in)), as
// PyTorch's xavier_uniform (Glorot and Bengio, 2010).
func xavierParam(name string, g *tensor.Generator, out, in int) *autograd.Param {
	bound := math.Sqrt(6 / float64(out+in))
	return autograd.NewParam(name, tensor.New(tensor.Float32, out, in).FillUniform(g, -bound, bound))
}

// AddBiasKV adds a learned key and a learned value that all queries see: PyTorch's add_bias_kv.
// They are initialised as in PyTorch, with random numbers from g, or from the default generator if
// g is nil. AddBiasKV must be called before m is shared and before its parameters are passed to an
// optimizer.
func (m *MultiheadAttention) AddBiasKV(g *tensor.Generator) {
	embed := m.embedDim()
	learned := func(name string) *autograd.Param {
		return autograd.NewParam(name, tensor.RandN(tensor.Float32, g, 1, 1,
			embed).MulScalarInPlace(1/math.Sqrt(float64(embed))))
	}
	m.BiasK, m.BiasV = learned("bias_k"), learned("bias_v")
}

// embedDim returns the number of features of queries and outputs.
func (m *MultiheadAttention) embedDim() int { return m.OutProj.Weight.T.Dim(1) }

// AttentionMask selects the keys that each query may attend to. As in PyTorch's layer, true hides a
// key. This is the opposite of [autograd.Attention.Mask].
type AttentionMask struct {
	// (L, S) or (N·heads, L, S). A Bool mask hides a key where it is true. A float mask is added to
	// the attention scores. If nil, each query sees all keys.
	Mask    *tensor.Tensor
	Padding *tensor.Tensor // (N, S), Bool or float as Mask, for all queries of an example; or nil
	Causal  bool           // query i sees only keys 0 to i
}

// Forward returns the self-attention of a sequence x of shape (L, N, embed), or (N, L, embed)
// with BatchFirst, or (L, embed) if unbatched. The result has the same shape.
func (m *MultiheadAttention) Forward(x *autograd.Var) *autograd.Var {
	return m.Attend(x, x, x, AttentionMask{})
}

// Attend returns the attention of queries q to keys k and values v.
//
// The shapes are (L, N, embed) for q and the result, (S, N, kdim) for k, and (S, N, vdim) for v.
// With BatchFirst, N is the first dimension. Unbatched sequences have no N; q, k and v must then
// all be unbatched. Attend panics with an error that wraps [tensor.ErrShape] if the shapes do not
// match.
func (m *MultiheadAttention) Attend(q, k, v *autograd.Var, mask AttentionMask) *autograd.Var {
	y, _ := m.attend(q, k, v, mask, false)
	return y
}

// AttendWeights returns the result of [MultiheadAttention.Attend] and the attention weights, (N,
// L, S), averaged over the heads. They are (L, S) for unbatched sequences. The keys added by
// BiasK and ZeroAttn come last. AttendWeights applies no dropout to the weights.
func (m *MultiheadAttention) AttendWeights(q, k, v *autograd.Var, mask AttentionMask) (y, weights *autograd.Var) {
	return m.attend(q, k, v, mask, true)
}

func (m *MultiheadAttention) attend(q, k, v *autograd.Var, mask AttentionMask, weigh bool) (y, weights *autograd.Var) {
	m.checkInputs(q, k, v)
	single := len(q.Shape()) == 2
	parts := m.project(q, k, v, single)
	n, l := parts[0].Shape()[0], parts[0].Shape()[2]
	o := autograd.Attention{Mask: mask.mergeMasks(m.Heads, parts[0].T(), parts[1].T(), m.extraKeyCount()),
		Causal: mask.Causal && m.extraKeyCount() == 0, Generator: m.Generator}
	m.appendExtraKeys(&parts)
	if weigh {
		w := autograd.AttentionWeights(parts[0], parts[1], o)
		y, weights = autograd.MatMul(w, parts[2]), autograd.Mean(w, 1)
	} else {
		if !m.Off {
			o.Dropout = m.P
		}
		y = autograd.ScaledDotProductAttention(parts[0], parts[1], parts[2], o)
	}
	y = autograd.Reshape(autograd.Permute(y, m.permuteBatch(0, 2, 1, 3)...), m.batchedShape(n, l, -1)...)
	y = m.OutProj.Forward(y)
	if single {
		y = autograd.Squeeze(y, m.batchDim())
		if weigh {
			weights = autograd.Squeeze(weights, 0)
		}
	}
	return y, weights
}

func (m *MultiheadAttention) checkInputs(q, k, v *autograd.Var) {
	qs, ks, vs, n := q.Shape(), k.Shape(), v.Shape(), len(q.Shape())
	w := m.projectionWeights()
	embed, kdim, vdim := w[0].Shape()[1], w[1].Shape()[1], w[2].Shape()[1]
	if n != 2 && n != 3 || len(ks) != n || len(vs) != n || qs[n-1] != embed || ks[n-1] != kdim || vs[n-1] != vdim {
		misuse(tensor.ErrShape, "MultiheadAttention: got queries %v, keys %v and values %v, want sequences of %d, "+
			"%d and %d features, with or without a batch",
			qs, ks, vs, embed, kdim, vdim)
	}
	if !slices.Equal(ks[:n-1], vs[:n-1]) {
		misuse(tensor.ErrShape, "MultiheadAttention: got keys %v and values %v, want one value for each key", ks, vs)
	}
	if n == 3 && qs[m.batchDim()] != ks[m.batchDim()] {
		misuse(tensor.ErrShape, "MultiheadAttention: queries %v and keys %v differ in the batch dimension, %d: "+
			"see BatchFirst",
			qs, ks, m.batchDim())
	}
	if m.Heads < 1 || embed%m.Heads != 0 {
		misuse(tensor.ErrShape, "MultiheadAttention: %d features are not divisible by %d heads", embed, m.Heads)
	}
}

// projectionWeights returns the projection weights of queries, keys and values.
func (m *MultiheadAttention) projectionWeights() (w [3]*autograd.Var) {
	if m.InProjWeight == nil {
		return [3]*autograd.Var{m.QProjWeight.Var(), m.KProjWeight.Var(), m.VProjWeight.Var()}
	}
	all, embed := m.InProjWeight.Var(), m.embedDim()
	for i := range w {
		w[i] = autograd.Narrow(all, 0, i*embed, embed)
	}
	return w
}

// batchDim returns the index of the batch dimension of the inputs.
func (m *MultiheadAttention) batchDim() int {
	if m.BatchFirst {
		return 0
	}
	return 1
}

// batchedShape returns a shape that begins with batch size n and sequence length l, in the order of
// BatchFirst.
func (m *MultiheadAttention) batchedShape(n, l int, rest ...int) []int {
	if m.BatchFirst {
		return append([]int{n, l}, rest...)
	}
	return append([]int{l, n}, rest...)
}

// permuteBatch returns dims, which must begin with the batch and the length dimension, in the
// order of the inputs: it exchanges these two unless BatchFirst is set. It modifies dims.
func (m *MultiheadAttention) permuteBatch(dims ...int) []int {
	if !m.BatchFirst {
		dims[0], dims[1] = dims[1], dims[0]
	}
	return dims
}

// project returns the projected queries, keys and values as (N, heads, length, features). single
// reports that the inputs have no batch dimension.
func (m *MultiheadAttention) project(q, k, v *autograd.Var, single bool) (parts [3]*autograd.Var) {
	embed, w, bias := m.embedDim(), m.projectionWeights(), varOrNil(m.InProjBias)
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

// extraKeyCount returns the number of keys that BiasK and ZeroAttn append.
func (m *MultiheadAttention) extraKeyCount() (n int) {
	if m.BiasK != nil {
		n++
	}
	if m.ZeroAttn {
		n++
	}
	return n
}

// appendExtraKeys replaces the keys and values in parts, which are (N, heads, S, features), by
// copies that end in the keys and values of BiasK and ZeroAttn.
func (m *MultiheadAttention) appendExtraKeys(parts *[3]*autograd.Var) {
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

// mergeMasks combines Mask and Padding into one additive mask of shape (N or 1, heads or 1, L or 1,
// S+more), or returns nil if there is nothing to mask. q is (N, heads, L, features) and k is (N,
// heads, S, features). The keys that are appended to k later, more in number, are visible to all
// queries. If there are any, the causal mask is merged too, because the causal option of package
// autograd would hide them. mergeMasks panics with an error that wraps [tensor.ErrShape] if a mask
// has the wrong shape.
func (a AttentionMask) mergeMasks(heads int, q, k *tensor.Tensor, more int) *autograd.Var {
	n, l, s := q.Dim(0), q.Dim(2), k.Dim(2)
	var sum *tensor.Tensor
	add := func(t *tensor.Tensor, shape ...int) {
		if t.DType() == tensor.Bool {
			zeros := q.NewZeros(q.DType(), t.Shape()...)
			t = zeros.MaskedFillInPlace(t, math.Inf(-1))
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
			misuse(tensor.ErrShape, "MultiheadAttention: got mask shape %v, want %v or %v",
				shape, []int{l, s}, []int{n * heads, l, s})
		}
	}
	if t := a.Padding; t != nil {
		if t.Numel() != n*s || t.Dims() > 2 || t.Dim(-1) != s {
			misuse(tensor.ErrShape, "MultiheadAttention: got padding shape %v, want %v", t.Shape(), []int{n, s})
		}
		add(t, n, 1, 1, s)
	}
	if more > 0 && a.Causal {
		add(futureMask(q, l, s), 1, 1, l, s)
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

// futureMask returns a Bool mask (queries, keys), true where the key comes after the query. It is
// on the device of like.
func futureMask(like *tensor.Tensor, queries, keys int) *tensor.Tensor {
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
