package autograd

import (
	"math"
	"slices"

	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// An Attention contains the options of attention: which keys a query attends to, and how the
// products of queries and keys are weighted.
type Attention struct {
	// Mask must broadcast to (..., L, S). If it is Bool, a query attends to the keys for which it
	// is true. Otherwise it must have the dtype of q; it is added to the products and may require a
	// gradient. If it is nil, a query attends to all keys.
	Mask *Var

	Causal bool    // query i attends only to keys 0 to i
	Scale  float64 // factor of the products; 0 means 1/√E

	Dropout   float64           // probability of dropping a weight; 0 outside of training
	Generator *tensor.Generator // for Dropout; nil means the default generator
}

// ScaledDotProductAttention computes attention (Vaswani et al., 2017). For each query of q, (...,
// L, E), it returns the mean of the values v, (..., S, V), weighted by the softmax of the query's
// products with the keys k, (..., S, E). The leading dimensions must be equal. The result is (...,
// L, V). It is zero for a query that attends to no key.
//
// On the host the weights are computed block by block, and recomputed for the gradient, so that the
// whole matrix (L, S) is never in memory, unless o.Dropout is set.
func ScaledDotProductAttention(q, k, v *Var, o Attention) *Var {
	o.check(q, k, v)
	if o.Scale == 0 {
		o.Scale = 1 / math.Sqrt(float64(q.t.Dim(-1)))
	}
	if q.isOnDevice() || o.Dropout > 0 {
		return o.computePlain(q, k, v)
	}
	return kernelByDType("ScaledDotProductAttention", q, attention[float32], attention[float64])(q, k, v, o).
		setRecompute(func(y *Var) *Var {
			return y.ensurePlan().attention.computePlain(y.inputs[0], y.inputs[1],
				y.inputs[2])
		})
}

// computePlain computes the attention from other operations. o.Scale must not be 0.
func (o Attention) computePlain(q, k, v *Var) *Var {
	return MatMul(Dropout(o.computeWeights(q, k), o.Dropout, o.Generator, true), v)
}

// AttentionWeights returns the softmax weights of [ScaledDotProductAttention], (..., L, S), for
// queries q and keys k. The weights of a query that attends to no key are zero.
func AttentionWeights(q, k *Var, o Attention) *Var {
	o.check(q, k, k)
	if o.Scale == 0 {
		o.Scale = 1 / math.Sqrt(float64(q.t.Dim(-1)))
	}
	return o.computeWeights(q, k)
}

func (o Attention) check(q, k, v *Var) {
	const op = "ScaledDotProductAttention"
	n := q.t.Dims()
	if n < 2 || k.t.Dims() != n || v.t.Dims() != n {
		misuse(tensor.ErrShape, "%s: got queries %v, keys %v and values %v, want (..., L, E), (..., S, E) and "+
			"(..., S, V)",
			op, q.Shape(), k.Shape(), v.Shape())
	}
	lead := q.Shape()[:n-2]
	if !sameShape(lead, k.Shape()[:n-2]) || !sameShape(lead, v.Shape()[:n-2]) || q.t.Dim(-1) != k.t.Dim(-1) ||
		k.t.Dim(-2) != v.t.Dim(-2) {
		misuse(tensor.ErrShape, "%s: got queries %v, keys %v and values %v, want equal leading dimensions, (..., "+
			"L, E), (..., S, E) and (..., S, V)",
			op, q.Shape(), k.Shape(), v.Shape())
	}
	if o.Mask == nil {
		return
	}
	if dt := o.Mask.t.DType(); dt != tensor.Bool && dt != q.t.DType() {
		misuse(tensor.ErrOperand, "%s: got queries of %v and a mask of %v, want a mask of Bool or of the same dtype",
			op, q.t.DType(), dt)
	}
	full := append(append([]int{}, q.Shape()[:n-1]...), k.t.Dim(-2))
	shape := o.Mask.Shape()
	for i := range shape {
		if d := n - len(shape) + i; d < 0 || shape[i] != 1 && shape[i] != full[d] {
			misuse(tensor.ErrShape, "%s: mask of shape %v cannot be broadcast to %v", op, shape, full)
		}
	}
}

// computeWeights computes the weights from other operations. o.Scale must not be 0.
func (o Attention) computeWeights(q, k *Var) *Var {
	scores := MatMul(MulScalar(q, o.Scale), Transpose(k, -1, -2))
	if o.Mask != nil && o.Mask.t.DType() == tensor.Bool {
		scores = MaskedFill(scores, scores.ownTensor(tensor.Not(o.Mask.t)), math.Inf(-1))
	} else if o.Mask != nil {
		scores = Add(scores, o.Mask)
	}
	if o.Causal {
		scores = MaskedFill(scores, scores.ownTensor(futureMask(q.t.Device(), q.t.Dim(-2), k.t.Dim(-2))), math.Inf(-1))
	}
	if o.Mask == nil || k.t.Dim(-2) == 0 {
		return Softmax(scores, -1)
	}
	top := tensor.Keep(tensor.Amax, scores.t, -1)
	blind := tensor.Eq(top, top.Number(math.Inf(-1)))
	return MaskedFill(Softmax(MaskedFill(scores, blind, 0), -1), blind, 0)
}

// futureMask returns a Bool mask, (queries, keys), on dev. It is true where the key comes after
// the query.
func futureMask(dev tensor.Device, queries, keys int) *tensor.Tensor {
	t := tensor.New(tensor.Bool, queries, keys)
	after := tensor.Data[bool](t)
	for i := range after {
		after[i] = i%keys > i/keys
	}
	if dev == nil {
		return t
	}
	return moveTo(dev, t)
}

func attention[F kernel.Float](q, k, v *Var, o Attention) *Var {
	var inputRoom [4]*Var
	inputs := append(inputRoom[:0], q, k, v)
	added, learned := o.Mask, (*Var)(nil)
	if added != nil && added.t.DType() != tensor.Bool {
		inputs, learned = append(inputs, added), added
	}
	var room [2 * maxDims]int
	n, shape := q.t.Dims(), append(room[:0], q.Shape()...)
	shape[n-1] = v.t.Dim(-1)
	y := newResult("ScaledDotProductAttention", q.t.DType(), shape, inputs...)
	a := kernel.Attention{Heads: product(shape[:n-2]), Q: q.t.Dim(-2), K: k.t.Dim(-2), D: q.t.Dim(-1),
		V: v.t.Dim(-1), Scale: o.Scale, Causal: o.Causal}
	qt, kt, vt, logs := q.contiguousTensor(), k.contiguousTensor(), v.contiguousTensor(),
		y.scope.newEmpty(nil, tensor.Float64, []int{q.t.Numel() / max(1, a.D)})
	var m *scoreMask[F]
	if added != nil {
		m = maskOf[F](added, slices.Clone(shape[:n-1]), a.K)
	}
	kernel.Attend(a, data[F](qt), data[F](kt), data[F](vt), m.rowReader(), data[F](y.t), tensor.Data[float64](logs))
	keepAlive(inputs...)
	y.ensurePlan().attention, y.ensurePlan().heads = o, a
	if y.saveIfNeeded(qt, kt, vt, y.t, logs); !y.needs || added == nil {
		return y.setDerivatives(kernelByDType(y.op, y, attentionBackward[float32], attentionBackward[float64]), nil)
	}
	y.saveTensors(added.t)
	y.backward = func(dy *tensor.Tensor) {
		dq, dk, dv := q.newEmptyLike(), k.newEmptyLike(), v.newEmptyLike()
		var dbias func(head, query, key int, d []F)
		var dm *tensor.Tensor
		if learned != nil && learned.needsGradient() {
			dm = tensor.New(q.t.DType(), m.t.Shape()...)
			dbias = func(head, query, key int, d []F) {
				kernel.Add(data[F](dm)[m.rowOffset(head, query)+key:][:len(d)], d,
					data[F](dm)[m.rowOffset(head, query)+key:])
			}
		}
		kernel.AttendBackward(a, data[F](qt), data[F](kt), data[F](vt), m.rowReader(), data[F](y.t),
			tensor.Data[float64](logs), data[F](dy),
			data[F](dq), data[F](dk), data[F](dv), dbias)
		q.addGradient(dq)
		k.addGradient(dk)
		v.addGradient(dv)
		if dm != nil {
			learned.addGradient(dm)
		}
	}
	return y
}

// attentionBackward is the derivation of an attention without a mask.
func attentionBackward[F kernel.Float](y *Var, dy *tensor.Tensor) {
	q, k, v := y.inputs[0], y.inputs[1], y.inputs[2]
	dq, dk, dv := q.newEmptyLike(), k.newEmptyLike(), v.newEmptyLike()
	of := func(i int) []F { return data[F](y.saved[i].t) }
	kernel.AttendBackward(y.ensurePlan().heads, of(0), of(1), of(2), nil, of(3), data[float64](y.saved[4].t),
		data[F](dy),
		data[F](dq), data[F](dk), data[F](dv), nil)
	q.addGradient(dq)
	k.addGradient(dk)
	v.addGradient(dv)
}

// A scoreMask is an additive attention mask. It covers the last dimension of the scores and is
// broadcast over the others: steps contains its strides for them.
type scoreMask[F kernel.Float] struct {
	t      *tensor.Tensor
	values []F
	shape  []int // shape of the scores without the last dimension
	steps  []int
}

func maskOf[F kernel.Float](mask *Var, shape []int, keys int) *scoreMask[F] {
	t := mask.t
	if t.DType() == tensor.Bool {
		t = additiveMask[F](t)
	}
	for t.Dims() < len(shape)+1 {
		t = t.Unsqueeze(0)
	}
	t = t.Expand(append(append([]int{}, t.Shape()[:len(shape)]...), keys)...).Contiguous()
	m := &scoreMask[F]{t: t, values: data[F](t), shape: shape, steps: make([]int, len(shape))}
	for i, step := len(shape)-1, keys; i >= 0; i-- {
		if t.Dim(i) > 1 {
			m.steps[i] = step
		}
		step *= t.Dim(i)
	}
	return m
}

// additiveMask returns a new additive mask on the heap for a Bool mask: 0 for true, -∞ for false.
func additiveMask[F kernel.Float](mask *tensor.Tensor) *tensor.Tensor {
	mask = mask.Contiguous()
	values := make([]F, mask.Numel())
	for i, seen := range tensor.Data[bool](mask) {
		if !seen {
			values[i] = F(math.Inf(-1))
		}
	}
	if len(mask.Shape()) == 0 {
		return tensor.FromSlice(values, 1)
	}
	return tensor.FromSlice(values, mask.Shape()...)
}

// rowReader returns a function that returns the mask's values from the row of a head and a query
// on. It returns nil if m is nil.
func (m *scoreMask[F]) rowReader() func(head, query int) []F {
	if m == nil {
		return nil
	}
	return func(head, query int) []F { return m.values[m.rowOffset(head, query):] }
}

// rowOffset returns the position in m.values of the row for a head and a query. head is an index
// into all leading dimensions together.
func (m *scoreMask[F]) rowOffset(head, query int) int {
	last := len(m.shape) - 1
	at := query * m.steps[last]
	for d := last - 1; d >= 0; d-- {
		at += head % m.shape[d] * m.steps[d]
		head /= m.shape[d]
	}
	return at
}
