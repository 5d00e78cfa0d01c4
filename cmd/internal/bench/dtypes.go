package bench

import (
	"context"

	"github.com/shoal-mp/shoal/tensor"
)

// dtypes measures operations of each dtype. One call applies the operation to tensors of five
// layouts in turn, because real programs do not only use contiguous Float32.
var dtypes = Suite{
	Name: "dtypes",
	Doc:  "operations of tensors of nine dtypes, each in five layouts, in one thread",
	peer: "torch_dtypes.py",
	groups: []func(context.Context, *environment) (group, error){
		dtypeRows(tensor.Float32), dtypeRows(tensor.Float64), dtypeRows(tensor.Float16), dtypeRows(tensor.BFloat16),
		dtypeRows(tensor.Int64), dtypeRows(tensor.Int32), dtypeRows(tensor.Uint8), dtypeRows(tensor.Bool),
		dtypeRows(tensor.Complex64),
	},
	sum: func(rows []Result) Result {
		r := medianRow(rows)
		if r.Name != "" {
			r.Name = "dtype_median"
		}
		return r
	},
}

// A layout holds two operands with the same strides, an operand that is modified, and a mask for a
// row.
type layout struct{ x, y, own, mask *tensor.Tensor }

// layoutsOf returns random operands of side×side elements in five layouts: contiguous,
// transposed, every other column, three dimensions with the first two transposed, and an
// expanded row. side must be a multiple of 16. The peer uses the same layouts.
func layoutsOf(dt tensor.DType, g *tensor.Generator, side int) (layouts []layout) {
	dense := func() *tensor.Tensor {
		return tensor.Rand(tensor.Float32, g, side, side).MulScalarInPlace(4).AddScalarInPlace(1).To(dt)
	}
	for _, operand := range []func() *tensor.Tensor{
		dense,
		func() *tensor.Tensor { return dense().T() },
		func() *tensor.Tensor { return tensor.Cat(1, dense(), dense()).Slice(1, 0, 2*side, 2) },
		func() *tensor.Tensor { return dense().View(16, side/16, side).Transpose(0, 1) },
		func() *tensor.Tensor { return dense().Narrow(0, 0, 1).Expand(side, side) },
	} {
		chance := tensor.Rand(tensor.Float32, g, side)
		p := layout{x: operand(), y: operand(), own: operand(), mask: tensor.Gt(chance, chance.Number(0.5))}
		if p.own.Strides()[0] == 0 { // an expanded tensor is not writable
			p.own = dense()
		}
		layouts = append(layouts, p)
	}
	return layouts
}

// dtypeOperations returns the operations applied to each layout. They must match the peer's
// script. The caller must close the result of do, which is nil for an operation in place.
func dtypeOperations(g *tensor.Generator) []struct {
	name string
	do   func(p layout) *tensor.Tensor
} {
	rows := tensor.RandInt(g, 0, 4, 4)
	type operation = struct {
		name string
		do   func(p layout) *tensor.Tensor
	}
	one := func(name string, f func(x *tensor.Tensor) *tensor.Tensor) operation {
		return operation{name, func(p layout) *tensor.Tensor { return f(p.x) }}
	}
	two := func(name string, f func(x, y *tensor.Tensor) *tensor.Tensor) operation {
		return operation{name, func(p layout) *tensor.Tensor { return f(p.x, p.y) }}
	}
	change := func(name string, f func(p layout)) operation {
		return operation{name, func(p layout) *tensor.Tensor { f(p); return nil }}
	}
	values := func(values, indices *tensor.Tensor) *tensor.Tensor { indices.Close(); return values }
	return []operation{
		two("add", tensor.Add), two("sub", tensor.Sub), two("mul", tensor.Mul), two("div", tensor.Div),
		two("maximum", tensor.Maximum), two("minimum", tensor.Minimum), two("remainder", tensor.Remainder),
		two("floor_divide", tensor.FloorDivide), two("eq", tensor.Eq), two("lt", tensor.Lt), two("and", tensor.And),
		two("or", tensor.Or), two("power", tensor.Power), two("atan2", tensor.Atan2), two("hypot", tensor.Hypot),
		two("logaddexp", tensor.Logaddexp),
		one("not", tensor.Not), one("neg", tensor.Neg), one("abs", tensor.Abs), one("relu", tensor.ReLU),
		one("exp", tensor.Exp), one("log", tensor.Log), one("sqrt", tensor.Sqrt), one("tanh", tensor.Tanh),
		one("sigmoid", tensor.Sigmoid), one("erf", tensor.Erf),
		one("cube", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Pow(x, 3) }),
		one("clamp", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Clamp(x, 1, 2) }),
		one("sum", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Sum(x) }),
		one("sum_0", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Sum(x, 0) }),
		one("sum_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Sum(x, -1) }),
		one("mean_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Mean(x, -1) }),
		one("std", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Std(x) }),
		one("amax_0", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Amax(x, 0) }),
		one("amax_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Amax(x, -1) }),
		one("argmax_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Argmax(x, -1) }),
		one("max_0", func(x *tensor.Tensor) *tensor.Tensor { return values(tensor.Max(x, 0)) }),
		one("all_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.All(x, -1) }),
		one("any_0", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Any(x, 0) }),
		one("cumsum_1", func(x *tensor.Tensor) *tensor.Tensor { return tensor.CumSum(x, -1) }),
		one("sort_1", func(x *tensor.Tensor) *tensor.Tensor { return values(tensor.Sort(x, -1, false)) }),
		one("topk", func(x *tensor.Tensor) *tensor.Tensor { return values(tensor.TopK(x, 3, -1)) }),
		one("nonzero", tensor.Nonzero),
		one("flip", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Flip(x, -1) }),
		one("index", func(x *tensor.Tensor) *tensor.Tensor { return tensor.Index(x, rows) }),
		one("index_select", func(x *tensor.Tensor) *tensor.Tensor { return tensor.IndexSelect(x, -1, rows) }),
		one("matmul", func(x *tensor.Tensor) *tensor.Tensor { return tensor.MatMul(x, x.Transpose(-1, -2)) }),
		one("contiguous", func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1).Contiguous() }),
		one("to_float32", func(x *tensor.Tensor) *tensor.Tensor { return x.To(tensor.Float32) }),
		one("to_float16", func(x *tensor.Tensor) *tensor.Tensor { return x.To(tensor.Float16) }),
		one("to_int64", func(x *tensor.Tensor) *tensor.Tensor { return x.To(tensor.Int64) }),
		two("cat", func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Cat(0, x, y) }),
		two("stack", func(x, y *tensor.Tensor) *tensor.Tensor { return tensor.Stack(0, x, y) }),
		{"where", func(p layout) *tensor.Tensor { return tensor.Where(p.mask, p.x, p.y) }},
		change("equal", func(p layout) { tensor.Equal(p.x, p.x) }),
		change("copy_", func(p layout) { p.own.CopyFrom(p.x) }),
		change("clamp_", func(p layout) { p.own.ClampInPlace(1, 2) }),
		change("masked_fill_", func(p layout) { p.own.MaskedFillInPlace(p.mask, 1) }),
		change("index_add_", func(p layout) { p.own.IndexAddInPlace(0, rows, p.x.Narrow(0, 0, 4)) }),
		change("uniform_", func(p layout) { p.own.FillUniform(g, 0, 1) }),
		change("normal_", func(p layout) { p.own.FillNormal(g, 0, 1) }),
	}
}

func dtypeRows(dt tensor.DType) func(context.Context, *environment) (group, error) {
	return func(_ context.Context, h *environment) (group, error) {
		side := 512
		if h.quick {
			side = 64
		}
		g := tensor.NewGenerator(1)
		layouts := layoutsOf(dt, g, side)
		all := group{rounds: 5}
		for _, o := range dtypeOperations(g) {
			do := func() {
				for _, p := range layouts {
					if result := o.do(p); result != nil {
						result.Close()
					}
				}
			}
			if !isDefined(do) {
				continue
			}
			name := dt.String() + "_" + o.name
			rounds := h.callsPerSample(do)
			all.cases = append(all.cases, Case{
				Name: "dtype_" + name, Unit: Nanoseconds, Target: timesPeer(1 / slower),
				Ours: measureMedian(rounds, do),
				Peer: &peerWork{op: name, Rounds: rounds},
			})
		}
		return all, nil
	}
}

// isDefined calls do once and reports whether it returns without a panic. Operations panic if
// they are not defined for the dtype of their operands.
func isDefined(do func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	do()
	return true
}
