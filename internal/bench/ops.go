package bench

import (
	"context"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

var operations = Suite{
	Name:   "ops",
	Doc:    "operations of tensors of 2^18 elements, in one thread",
	peer:   "torch_ops.py",
	groups: []func(context.Context, *environment) (group, error){operationRows},
}

// An operation is done by the peer under its name. Its result is closed, as PyTorch frees one that
// nothing refers to.
type operation struct {
	name string
	do   func() *tensor.Tensor
}

func operationRows(_ context.Context, h *environment) (group, error) {
	g := group{rounds: 7, cases: resultRows(h)}
	for _, o := range tensorOperations() {
		rounds := h.scale(10)
		g.cases = append(g.cases, Case{
			Name: "op_" + o.name, Unit: Nanoseconds, Target: timesPeer(1 / 1.5),
			Ours: &Probe{Measure: func(context.Context) (float64, error) {
				return float64(cpuTime(rounds, func() { o.do().Close() })) / float64(rounds), nil
			}},
			Peer: &peerWork{op: o.name, Rounds: rounds},
		})
	}
	return g, nil
}

// resultRows are add again, with a result that is closed, so that its memory can be used again, and
// with one that is left to the garbage collector. Their floor is the same sum written to memory
// that is there.
func resultRows(h *environment) []Case {
	g := tensor.NewGenerator(1)
	x, y := tensor.RandN(tensor.Float32, g, 512, 512), tensor.RandN(tensor.Float32, g, 512, 512)
	rounds := h.scale(50)
	probe := func(do func()) *Probe {
		return &Probe{Measure: func(context.Context) (float64, error) {
			return float64(cpuTime(rounds, do)) / float64(rounds), nil
		}}
	}
	row := func(name string, do func()) Case {
		return Case{
			Name: name, Unit: Nanoseconds, Target: timesPeer(1),
			Ours:  probe(do),
			Floor: probe(func() { x.Add(y) }),
			Peer:  &peerWork{op: "add", Rounds: rounds},
		}
	}
	return []Case{
		row("op_new_result", func() { tensor.Add(x, y).Close() }),
		row("op_dropped_result", func() { tensor.Add(x, y) }),
	}
}

// tensorOperations are those that a user reaches for. Names of their operands are the peer's as
// well.
func tensorOperations() []operation {
	g := tensor.NewGenerator(1)
	random := func(shape ...int) *tensor.Tensor { return tensor.RandN(tensor.Float32, g, shape...) }
	x, y, row, col := random(512, 512), random(512, 512), random(512), random(512, 1)
	short, shortRow, shortCol := random(32768, 8), random(8), random(32768, 1)
	images, channels := random(16, 16, 32, 32), random(16, 1, 1)
	positive, mask, byte_ := tensor.Abs(x), tensor.Gt(x, y), tensor.RandInt(g, 0, 256, 512, 512).To(tensor.Uint8)
	whole, half, picks := x.To(tensor.Int64), x.To(tensor.Float16), tensor.RandInt(g, 0, 512, 512)
	places := tensor.RandInt(g, 0, 512, 512, 512)
	zero := x.Number(0)
	of := func(f func(*tensor.Tensor) *tensor.Tensor, x *tensor.Tensor) func() *tensor.Tensor {
		return func() *tensor.Tensor { return f(x) }
	}
	with := func(f func(a, b *tensor.Tensor) *tensor.Tensor, a, b *tensor.Tensor) func() *tensor.Tensor {
		return func() *tensor.Tensor { return f(a, b) }
	}
	along := func(f func(*tensor.Tensor, ...int) *tensor.Tensor, x *tensor.Tensor, dims ...int) func() *tensor.Tensor {
		return func() *tensor.Tensor { return f(x, dims...) }
	}
	cast := func(x *tensor.Tensor, dt tensor.DType) func() *tensor.Tensor {
		return func() *tensor.Tensor { return x.To(dt) }
	}
	return []operation{
		{"add", with(tensor.Add, x, y)},
		{"add_number", with(tensor.Add, x, zero)},
		{"mul_row", with(tensor.Mul, x, row)},
		{"mul_col", with(tensor.Mul, x, col)},
		{"add_short_row", with(tensor.Add, short, shortRow)},
		{"add_short_col", with(tensor.Add, short, shortCol)},
		{"add_channels", with(tensor.Add, images, channels)},
		{"add_transposed", with(tensor.Add, x, y.Transpose(0, 1))},
		{"div", with(tensor.Div, x, y)},
		{"maximum", with(tensor.Maximum, x, y)},
		{"gt", with(tensor.Gt, x, y)},
		{"gt_number", with(tensor.Gt, x, zero)},
		{"eq_int64", with(tensor.Eq, whole, whole)},
		{"add_int64", with(tensor.Add, whole, whole)},
		{"where", func() *tensor.Tensor { return tensor.Where(mask, x, y) }},
		{"masked_fill", func() *tensor.Tensor { return x.Clone().MaskedFill(mask, 0) }},
		{"clamp", func() *tensor.Tensor { return tensor.Clamp(x, -1, 1) }},
		{"neg", of(tensor.Neg, x)},
		{"abs", of(tensor.Abs, x)},
		{"relu", of(tensor.ReLU, x)},
		{"sqrt", of(tensor.Sqrt, positive)},
		{"rsqrt", of(tensor.Rsqrt, positive)},
		{"reciprocal", of(tensor.Reciprocal, x)},
		{"floor", of(tensor.Floor, x)},
		{"round", of(tensor.Round, x)},
		{"exp", of(tensor.Exp, x)},
		{"log", of(tensor.Log, positive)},
		{"tanh", of(tensor.Tanh, x)},
		{"sigmoid", of(tensor.Sigmoid, x)},
		{"square", func() *tensor.Tensor { return tensor.Pow(x, 2) }},
		{"softmax", func() *tensor.Tensor { return autograd.Softmax(autograd.Const(x), -1).T() }},
		{"sum", along(tensor.Sum, x)},
		{"sum_0", along(tensor.Sum, x, 0)},
		{"sum_1", along(tensor.Sum, x, 1)},
		{"sum_short", along(tensor.Sum, short, 1)},
		{"mean_channels", along(tensor.Mean, images, 0, 2, 3)},
		{"var_0", along(tensor.Var, x, 0)},
		{"var_1", along(tensor.Var, x, 1)},
		{"amax", along(tensor.Amax, x)},
		{"amax_0", along(tensor.Amax, x, 0)},
		{"amax_1", along(tensor.Amax, x, 1)},
		{"argmax_0", func() *tensor.Tensor { return tensor.Argmax(x, 0) }},
		{"argmax_1", func() *tensor.Tensor { return tensor.Argmax(x, 1) }},
		{"argmax_short", func() *tensor.Tensor { return tensor.Argmax(short, 1) }},
		{"any_1", along(tensor.Any, mask, 1)},
		{"cumsum", func() *tensor.Tensor { return tensor.CumSum(x, 1) }},
		{"cat_0", func() *tensor.Tensor { return tensor.Cat(0, x, y) }},
		{"cat_1", func() *tensor.Tensor { return tensor.Cat(1, x, y) }},
		{"transpose", func() *tensor.Tensor { return x.Transpose(0, 1).Contiguous() }},
		{"channels_last", func() *tensor.Tensor { return images.Permute(0, 2, 3, 1).Contiguous() }},
		{"to_float64", cast(x, tensor.Float64)},
		{"to_int64", cast(x, tensor.Int64)},
		{"to_float16", cast(x, tensor.Float16)},
		{"to_bfloat16", cast(x, tensor.BFloat16)},
		{"byte_to_float32", cast(byte_, tensor.Float32)},
		{"int64_to_float32", cast(whole, tensor.Float32)},
		{"float16_to_float32", cast(half, tensor.Float32)},
		{"bool_to_float32", cast(mask, tensor.Float32)},
		{"index_select_0", func() *tensor.Tensor { return tensor.IndexSelect(x, 0, picks) }},
		{"index_select_1", func() *tensor.Tensor { return tensor.IndexSelect(x, 1, picks) }},
		{"gather_0", func() *tensor.Tensor { return tensor.Gather(x, 0, places) }},
		{"gather_1", func() *tensor.Tensor { return tensor.Gather(x, 1, places) }},
		{"masked_select", with(tensor.MaskedSelect, x, mask)},
		{"nonzero", of(tensor.Nonzero, mask)},
		{"sort", func() *tensor.Tensor { values, _ := tensor.Sort(x, 1, false); return values }},
	}
}
