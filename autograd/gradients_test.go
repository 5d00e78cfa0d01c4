package autograd_test

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// gradients has rows for every operation, see TestBackward_IsTestedOfEveryOperation. A row's name
// begins with that of its operation. What they take besides their inputs is where put puts it.
func gradients(put func(t *tensor.Tensor) *tensor.Tensor) map[string]gradient {
	target := put(tensor.FromSlice([]int64{2, 0, 3}, 3))
	ints := func(v ...int64) *tensor.Tensor { return put(tensor.FromSlice(v, len(v))) }
	mask := put(tensor.FromSlice([]bool{true, false, true}, 3))
	f := func(op func(x *autograd.Var) *autograd.Var) func(in vars) *autograd.Var {
		return func(in vars) *autograd.Var { return op(in[0]) }
	}
	g := func(op func(a, b *autograd.Var) *autograd.Var) func(in vars) *autograd.Var {
		return func(in vars) *autograd.Var { return op(in[0], in[1]) }
	}
	h := func(op func(x *autograd.Var, dims ...int) *autograd.Var, dims ...int) func(in vars) *autograd.Var {
		return func(in vars) *autograd.Var { return op(in[0], dims...) }
	}
	by := func(op func(x *autograd.Var, c float64) *autograd.Var, c float64) func(in vars) *autograd.Var {
		return func(in vars) *autograd.Var { return op(in[0], c) }
	}
	withZeros := values(1, 1, 3, 4)
	withZeros.Select(0, 0).Zero()
	tensor.SetAt(withZeros, 0.0, 1, 2)
	rows := map[string]gradient{
		"Add": {func(in vars) *autograd.Var { return autograd.Add(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 2, 3))},
		"Add twice": {func(in vars) *autograd.Var { return autograd.Add(in[0], in[0]) }, one(values(1, 1, 2, 3))},
		"Add row": {func(in vars) *autograd.Var { return autograd.Add(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 3))},
		"Sub column": {func(in vars) *autograd.Var { return autograd.Sub(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 2, 1))},
		"Mul": {func(in vars) *autograd.Var { return autograd.Mul(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 1))},
		"Mul square": {func(in vars) *autograd.Var { return autograd.Mul(in[0], in[0]) }, one(values(1, 1, 5))},
		"Div": {func(in vars) *autograd.Var { return autograd.Div(in[0], in[1]) },
			two(values(1, 1, 2, 3), positive(2, 3))},
		"Neg":        {func(in vars) *autograd.Var { return autograd.Neg(in[0]) }, one(values(1, 1, 4))},
		"AddScalar":  {func(in vars) *autograd.Var { return autograd.AddScalar(in[0], 3) }, one(values(1, 1, 4))},
		"MulScalar":  {func(in vars) *autograd.Var { return autograd.MulScalar(in[0], 3) }, one(values(1, 1, 4))},
		"Exp":        {func(in vars) *autograd.Var { return autograd.Exp(in[0]) }, one(values(1, 1, 4))},
		"Log":        {func(in vars) *autograd.Var { return autograd.Log(in[0]) }, one(positive(1, 4))},
		"Sqrt":       {func(in vars) *autograd.Var { return autograd.Sqrt(in[0]) }, one(positive(1, 4))},
		"Abs":        {func(in vars) *autograd.Var { return autograd.Abs(in[0]) }, one(values(1, 1, 6))},
		"Pow":        {func(in vars) *autograd.Var { return autograd.Pow(in[0], 2.5) }, one(positive(1, 4))},
		"Tanh":       {func(in vars) *autograd.Var { return autograd.Tanh(in[0]) }, one(values(1, 2, 4))},
		"Sigmoid":    {func(in vars) *autograd.Var { return autograd.Sigmoid(in[0]) }, one(values(1, 2, 4))},
		"ReLU":       {func(in vars) *autograd.Var { return autograd.ReLU(in[0]) }, one(values(1, 1, 3, 4))},
		"LogSoftmax": {func(in vars) *autograd.Var { return autograd.LogSoftmax(in[0], -1) }, one(values(1, 2, 3, 4))},
		"Dropout": {func(in vars) *autograd.Var {
			return autograd.Dropout(in[0], 0.4, tensor.NewGenerator(5), true)
		}, one(values(1, 1, 4, 5))},
		"Dropout2d": {func(in vars) *autograd.Var {
			return autograd.Dropout2d(in[0], 0.4, tensor.NewGenerator(5), true)
		}, one(values(1, 1, 2, 3, 2, 2))},
		"Linear": {func(in vars) *autograd.Var { return autograd.Linear(in[0], in[1], in[2]) },
			[]*tensor.Tensor{values(1, 1, 3, 4), values(2, 1, 2, 4), values(3, 1, 2)}},
		"Linear no bias": {func(in vars) *autograd.Var { return autograd.Linear(in[0], in[1], nil) },
			two(values(1, 1, 2, 3, 4), values(2, 1, 5, 4))},
		"Linear of a vector": {func(in vars) *autograd.Var {
			return autograd.Linear(in[0], in[1], nil)
		}, two(values(1, 1, 4), values(2, 1, 5, 4))},
		"Linear transposed": {func(in vars) *autograd.Var {
			return autograd.Linear(autograd.Transpose(in[0], 0, 1), in[1], nil)
		}, two(values(1, 1, 4, 3), values(2, 1, 5, 4))},
		"MatMul": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 3, 4))},
		"MatMul batches": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) },
			two(values(1, 1, 2, 2, 3), values(2, 1, 3, 2))},
		"MatMul vector": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 3))},
		"MatMul row": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) },
			two(values(1, 1, 3), values(2, 1, 3, 2))},
		"MatMul dot": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) },
			two(values(1, 1, 3), values(2, 1, 3))},
		"Conv2d": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], in[2], autograd.Window{})
		}, []*tensor.Tensor{values(1, 1, 2, 2, 5, 4), values(2, 1, 3, 2, 3, 2), values(3, 1, 3)}},
		"Conv2d moved": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], nil, autograd.Window{Stride: [2]int{2, 1}, Padding: [2]int{1, 2}})
		}, two(values(1, 1, 2, 2, 5, 4), values(2, 1, 3, 2, 3, 2))},
		"Conv2d in groups": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], in[2], autograd.Window{Groups: 2, Padding: [2]int{1, 1}})
		}, []*tensor.Tensor{values(1, 1, 2, 4, 5, 4), values(2, 1, 6, 2, 3, 2), values(3, 1, 6)}},
		"Conv2d dilated": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], in[2],
				autograd.Window{Groups: 2, Dilation: [2]int{2, 3}, Padding: [2]int{2, 2}, Stride: [2]int{2, 1}})
		}, []*tensor.Tensor{values(1, 1, 2, 4, 5, 4), values(2, 1, 2, 2, 3, 2), values(3, 1, 2)}},
		"Pad2d": {func(in vars) *autograd.Var {
			return autograd.Pad2d(in[0], [2][2]int{{1, 2}, {0, 3}}, autograd.PadZeros)
		}, one(values(1, 1, 2, 2, 3, 4))},
		"Pad2d as in a mirror": {func(in vars) *autograd.Var {
			return autograd.Pad2d(in[0], [2][2]int{{1, 2}, {0, 3}}, autograd.PadReflect)
		}, one(values(1, 1, 2, 2, 3, 4))},
		"Pad2d with the outermost": {func(in vars) *autograd.Var {
			return autograd.Pad2d(in[0], [2][2]int{{1, 4}, {0, 5}}, autograd.PadReplicate)
		}, one(values(1, 1, 2, 2, 3, 4))},
		"Pad2d with the other side": {func(in vars) *autograd.Var {
			return autograd.Pad2d(in[0], [2][2]int{{1, 3}, {0, 4}}, autograd.PadCircular)
		}, one(values(1, 1, 2, 2, 3, 4))},
		"MaxPool2d rounded up": {func(in vars) *autograd.Var {
			return autograd.MaxPool2d(in[0],
				autograd.Window{Size: [2]int{3, 2}, Stride: [2]int{2, 3}, Padding: [2]int{1, 1}, Ceil: true})
		}, one(values(1, 1, 2, 2, 6, 5))},
		"AvgPool2d rounded up": {func(in vars) *autograd.Var {
			return autograd.AvgPool2d(in[0],
				autograd.Window{Size: [2]int{3, 2}, Stride: [2]int{2, 3}, Padding: [2]int{1, 1}, Ceil: true})
		}, one(values(1, 1, 2, 2, 6, 5))},
		"AvgPool2d inside": {func(in vars) *autograd.Var {
			return autograd.AvgPool2d(in[0],
				autograd.Window{Size: [2]int{3, 3}, Padding: [2]int{1, 1}, Ceil: true, InsideOnly: true})
		}, one(values(1, 1, 2, 2, 6, 5))},
		"MaxPool2d": {func(in vars) *autograd.Var {
			return autograd.MaxPool2d(in[0], autograd.Window{Size: [2]int{2, 2}})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"MaxPool2d moved": {func(in vars) *autograd.Var {
			return autograd.MaxPool2d(in[0],
				autograd.Window{Size: [2]int{3, 2}, Stride: [2]int{1, 2}, Padding: [2]int{1, 1}})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"NLLLoss": {func(in vars) *autograd.Var {
			return autograd.NLLLoss(in[0], target, autograd.Classification{})
		}, one(values(1, 1, 3, 4))},
		"NLLLoss sum": {func(in vars) *autograd.Var {
			return autograd.NLLLoss(in[0], target, autograd.Classification{Reduction: autograd.BySum})
		}, one(values(1, 1, 3, 4))},
		"CrossEntropy": {func(in vars) *autograd.Var {
			return autograd.CrossEntropy(in[0], target, autograd.Classification{})
		}, one(values(1, 1, 3, 4))},
		"MSELoss": {func(in vars) *autograd.Var {
			return autograd.MSELoss(in[0], in[1], autograd.ByMean)
		}, two(values(1, 1, 3, 4), values(2, 1, 3, 4))},
		"MSELoss sum": {func(in vars) *autograd.Var {
			return autograd.MSELoss(in[0], in[1], autograd.BySum)
		}, two(values(1, 1, 3), values(2, 1, 3))},
		"Sum":      {func(in vars) *autograd.Var { return autograd.Sum(in[0]) }, one(values(1, 1, 3, 4))},
		"Sum dims": {func(in vars) *autograd.Var { return autograd.Sum(in[0], 0, -1) }, one(values(1, 1, 3, 2, 2))},
		"Mean":     {func(in vars) *autograd.Var { return autograd.Mean(in[0]) }, one(values(1, 1, 3, 4))},
		"Mean dim": {func(in vars) *autograd.Var { return autograd.Mean(in[0], 1) }, one(values(1, 1, 3, 4))},
		"Reshape": {func(in vars) *autograd.Var { return autograd.Reshape(in[0], 2, -1) },
			one(values(1, 1, 4, 3))},
		"Flatten": {func(in vars) *autograd.Var { return autograd.Flatten(in[0]) }, one(values(1, 1, 2, 3, 2))},
		"Permute": {func(in vars) *autograd.Var { return autograd.Permute(in[0], 2, 0, -2) },
			one(values(1, 1, 2, 3, 4))},
		"Transpose": {func(in vars) *autograd.Var { return autograd.Transpose(in[0], 0, 1) },
			one(values(1, 1, 2, 3))},
		"Flip": {func(in vars) *autograd.Var { return autograd.Flip(in[0], 0, -1) },
			one(values(1, 1, 2, 3, 4))},
		"Flip of none": {func(in vars) *autograd.Var { return autograd.Flip(in[0]) }, one(values(1, 1, 3))},
		"Select":       {func(in vars) *autograd.Var { return autograd.Select(in[0], 1, -1) }, one(values(1, 1, 2, 3))},
		"Narrow": {func(in vars) *autograd.Var { return autograd.Narrow(in[0], 1, 1, 2) },
			one(values(1, 1, 2, 4))},
		"Cat": {func(in vars) *autograd.Var { return autograd.Cat(-1, in[0], in[1], in[0]) },
			two(values(1, 1, 2, 3), values(2, 1, 2, 1))},

		"Power": {g(autograd.Power), two(positive(1, 2, 3), values(2, 2, 3))},
		"Pow of zero": {func(in vars) *autograd.Var { return autograd.Pow(in[0], 0) },
			one(tensor.New(tensor.Float64, 2))},
		"Log1p":      {f(autograd.Log1p), one(positive(1, 4))},
		"Expm1":      {f(autograd.Expm1), one(values(1, 1, 4))},
		"Rsqrt":      {f(autograd.Rsqrt), one(positive(1, 4))},
		"Reciprocal": {f(autograd.Reciprocal), one(positive(1, 4))},
		"Sin":        {f(autograd.Sin), one(values(1, 3, 4))},
		"Cos":        {f(autograd.Cos), one(values(1, 3, 4))},
		"Erf":        {f(autograd.Erf), one(values(1, 2, 4))},
		"LeakyReLU": {func(in vars) *autograd.Var { return autograd.LeakyReLU(in[0], 0.1) },
			one(values(1, 1, 6))},
		"GELU":     {f(autograd.GELU), one(values(1, 2, 6))},
		"SiLU":     {f(autograd.SiLU), one(values(1, 2, 6))},
		"GELUTanh": {f(autograd.GELUTanh), one(values(1, 2, 6))},
		"ELU":      {by(autograd.ELU, 0.7), one(values(1, 2, 6))},
		"SELU":     {f(autograd.SELU), one(values(1, 2, 6))},
		"CELU":     {by(autograd.CELU, 0.7), one(values(1, 2, 6))},
		"Softplus": {func(in vars) *autograd.Var { return autograd.Softplus(in[0], 2, 1.5) },
			one(values(1, 2, 6))},
		"LogSigmoid": {f(autograd.LogSigmoid), one(values(1, 2, 6))},
		"Softsign":   {f(autograd.Softsign), one(values(1, 2, 6))},
		"Mish":       {f(autograd.Mish), one(values(1, 2, 6))},
		"Hardtanh": {func(in vars) *autograd.Var { return autograd.Hardtanh(in[0], -0.9, 0.8) },
			one(values(1, 2, 6))},
		"ReLU6":       {f(autograd.ReLU6), one(values(1, 8, 6))},
		"Hardsigmoid": {f(autograd.Hardsigmoid), one(values(1, 4, 6))},
		"Hardswish":   {f(autograd.Hardswish), one(values(1, 4, 6))},
		"Softshrink":  {by(autograd.Softshrink, 0.4), one(values(1, 2, 6))},
		"Hardshrink":  {by(autograd.Hardshrink, 0.4), one(values(1, 2, 6))},
		"Tanhshrink":  {f(autograd.Tanhshrink), one(values(1, 2, 6))},
		"Threshold": {func(in vars) *autograd.Var { return autograd.Threshold(in[0], 0.2, 3) },
			one(values(1, 2, 6))},
		"PReLU":        {g(autograd.PReLU), two(values(1, 1, 2, 3, 2), values(2, 1, 3))},
		"PReLU of one": {g(autograd.PReLU), two(values(1, 1, 5), values(2, 1, 1))},
		"GLU":          {func(in vars) *autograd.Var { return autograd.GLU(in[0], -2) }, one(values(1, 1, 2, 4, 3))},
		"Softmax":      {func(in vars) *autograd.Var { return autograd.Softmax(in[0], -1) }, one(values(1, 2, 3, 4))},
		"Softmax over the first": {func(in vars) *autograd.Var { return autograd.Softmax(in[0], 0) },
			one(values(1, 2, 3, 4))},
		"LogSoftmax over one but the last": {func(in vars) *autograd.Var { return autograd.LogSoftmax(in[0], -2) },
			one(values(1, 2, 2, 3, 2))},
		"LogSumExp":     {h(autograd.LogSumExp, 0, -1), one(values(1, 2, 2, 3, 2))},
		"LogSumExp all": {h(autograd.LogSumExp), one(values(1, 2, 2, 3))},
		"Norm":          {h(autograd.Norm, 1), one(values(1, 2, 2, 3))},
		"Norm all":      {h(autograd.Norm), one(values(1, 2, 2, 3))},
		"Softmax one":   {func(in vars) *autograd.Var { return autograd.Softmax(in[0], -1) }, one(values(1, 2))},
		"Checkpoint": {func(in vars) *autograd.Var {
			return autograd.Checkpoint(
				func(in ...*autograd.Var) *autograd.Var { return autograd.Mul(autograd.Sigmoid(in[0]), in[1]) }, in...)
		}, two(values(1, 1, 2, 3), values(2, 1, 3))},
		"CheckpointWith a generator": {func(in vars) *autograd.Var {
			return autograd.CheckpointWith([]*tensor.Generator{tensor.NewGenerator(1)},
				func(in ...*autograd.Var) *autograd.Var { return autograd.Mul(in[0], in[0]) }, in...)
		}, one(values(1, 1, 2, 3))},
		"Checkpoint in a Checkpoint": {func(in vars) *autograd.Var {
			return autograd.Checkpoint(func(inner ...*autograd.Var) *autograd.Var {
				h := autograd.Checkpoint(
					func(x ...*autograd.Var) *autograd.Var { return autograd.Mul(autograd.Exp(x[0]), in[1]) }, inner[0])
				return autograd.Mul(autograd.Mul(h, inner[0]), in[1])
			}, autograd.Sin(in[0]))
		}, two(values(1, 1, 2, 3), values(2, 1, 3))},
		"ScaledDotProductAttention": {func(in vars) *autograd.Var {
			return autograd.ScaledDotProductAttention(in[0], in[1], in[2], autograd.Attention{})
		}, []*tensor.Tensor{values(1, 2, 2, 3, 4), values(2, 2, 2, 5, 4), values(3, 1, 2, 5, 3)}},
		"ScaledDotProductAttention causal": {func(in vars) *autograd.Var {
			return autograd.ScaledDotProductAttention(in[0], in[1], in[2], autograd.Attention{Causal: true, Scale: 0.7})
		}, []*tensor.Tensor{values(1, 2, 4, 3), values(2, 2, 5, 3), values(3, 1, 5, 3)}},
		"ScaledDotProductAttention masked": {func(in vars) *autograd.Var {
			return autograd.ScaledDotProductAttention(in[0], in[1], in[2],
				autograd.Attention{Mask: autograd.Const(mask)})
		}, []*tensor.Tensor{values(1, 2, 2, 2, 3, 4), values(2, 2, 2, 2, 3, 4), values(3, 1, 2, 2, 3, 2)}},
		"ScaledDotProductAttention with a bias": {func(in vars) *autograd.Var {
			return autograd.ScaledDotProductAttention(in[0], in[1], in[2], autograd.Attention{Mask: in[3]})
		}, []*tensor.Tensor{values(1, 2, 2, 2, 3, 4), values(2, 2, 2, 2, 5, 4), values(3, 1, 2, 2, 5, 2),
			values(4, 1, 2, 1, 3, 5)}},
		"ScaledDotProductAttention with a bias of keys": {func(in vars) *autograd.Var {
			return autograd.ScaledDotProductAttention(in[0], in[0], in[0], autograd.Attention{Mask: in[1]})
		}, two(values(1, 2, 2, 3, 4), values(4, 1, 3))},
		"AttentionWeights": {func(in vars) *autograd.Var {
			return autograd.AttentionWeights(in[0], in[1], autograd.Attention{Causal: true})
		}, two(values(1, 2, 2, 3, 4), values(2, 2, 2, 5, 4))},
		"LSTM": {lstmOf(autograd.Recurrence{}),
			[]*tensor.Tensor{values(1, 2, 3, 2, 12), values(2, 1, 2, 3), values(3, 1, 2, 3), values(4, 1, 12, 3)}},
		"LSTM backwards": {lstmOf(autograd.Recurrence{Backwards: true}),
			[]*tensor.Tensor{values(1, 2, 3, 2, 12), values(2, 1, 2, 3), values(3, 1, 2, 3), values(4, 1, 12, 3)}},
		"LSTM of one": {lstmOf(autograd.Recurrence{}),
			[]*tensor.Tensor{values(1, 2, 1, 1, 4), values(2, 1, 1, 1), values(3, 1, 1, 1), values(4, 1, 4, 1)}},
		"LSTM projected": {func(in vars) *autograd.Var { return lstmOf(autograd.Recurrence{Proj: in[4]})(in) },
			[]*tensor.Tensor{values(1, 2, 3, 2, 12), values(2, 1, 2, 2), values(3, 1, 2, 3),
				values(4, 1, 12, 2), values(5, 1, 2, 3)}},
		"GRU": {gruOf(false), []*tensor.Tensor{values(1, 2, 3, 2, 9), values(2, 1, 2, 3),
			values(3, 1, 9, 3), values(4, 1, 9)}},
		"GRU backwards": {gruOf(true), []*tensor.Tensor{values(1, 2, 3, 2, 9), values(2, 1, 2, 3), values(3, 1, 9, 3)}},
		"Where": {func(in vars) *autograd.Var { return autograd.Where(mask, in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 1))},
		"Maximum": {g(autograd.Maximum), two(values(1, 1, 2, 3), values(2, 1, 3))},
		"Minimum": {g(autograd.Minimum), two(values(1, 1, 2, 3), values(2, 1, 2, 1))},
		"Clamp": {func(in vars) *autograd.Var { return autograd.Clamp(in[0], -0.4, 0.3) },
			one(values(1, 1, 9))},
		"MaskedFill": {func(in vars) *autograd.Var { return autograd.MaskedFill(in[0], mask, 7) },
			one(values(1, 1, 2, 3))},
		"Gather": {func(in vars) *autograd.Var {
			return autograd.Gather(in[0], 1, ints(2, 2, 0, 1).Reshape(2, 2))
		}, one(values(1, 1, 2, 3))},
		"IndexSelect": {func(in vars) *autograd.Var {
			return autograd.IndexSelect(in[0], -1, ints(2, 2, 0))
		}, one(values(1, 1, 2, 3))},
		"Index": {func(in vars) *autograd.Var {
			return autograd.Index(in[0], ints(1, 0, 1), ints(2, 2, 2))
		}, one(values(1, 1, 2, 3, 2))},
		"MaskedSelect": {func(in vars) *autograd.Var { return autograd.MaskedSelect(in[0], mask) },
			one(values(1, 1, 2, 3))},
		"MaskedSelect of few": {func(in vars) *autograd.Var {
			return autograd.MaskedSelect(in[0], put(tensor.FromSlice([]bool{true, false, true, true}, 4, 1)))
		}, one(values(1, 1, 3))},
		"Max": {func(in vars) *autograd.Var { v, _ := autograd.Max(in[0], -2); return v },
			one(values(1, 1, 2, 3, 2))},
		"Min": {func(in vars) *autograd.Var { v, _ := autograd.Min(in[0], 0); return v },
			one(values(1, 1, 2, 3))},
		"Sort": {func(in vars) *autograd.Var { v, _ := autograd.Sort(in[0], 1, true); return v },
			one(values(1, 1, 2, 3))},
		"TopK": {func(in vars) *autograd.Var { v, _ := autograd.TopK(in[0], 2, 0); return v },
			one(values(1, 1, 4, 3))},
		"ScatterAdd": {func(in vars) *autograd.Var {
			return autograd.ScatterAdd(in[0], 0, ints(3, 0, 3), in[1])
		}, two(values(1, 1, 4), values(2, 1, 3))},
		"ScatterAdd of a part": {func(in vars) *autograd.Var {
			return autograd.ScatterAdd(in[0], 1, ints(1, 2).Reshape(1, 2), in[1])
		}, two(values(1, 1, 2, 3), values(2, 1, 2, 3))},
		"Embedding": {func(in vars) *autograd.Var {
			return autograd.Embedding(in[0], autograd.Const(ints(1, 3, 1, 0).Reshape(2, 2)))
		}, one(values(1, 1, 4, 3))},
		"Keep": {func(in vars) *autograd.Var { return autograd.Keep(autograd.Sum, in[0], -1) },
			one(values(1, 1, 2, 3))},
		"Variance":      {h(autograd.Variance, 0), one(values(1, 1, 4, 2))},
		"Variance all":  {h(autograd.Variance), one(values(1, 1, 4, 2))},
		"Std":           {h(autograd.Std, -1, 0), one(values(1, 1, 4, 2, 2))},
		"Prod":          {h(autograd.Prod), one(values(1, 1, 2, 3))},
		"Prod of zeros": {h(autograd.Prod, -1), one(withZeros)},
		"Amax":          {h(autograd.Amax, 0, 2), one(values(1, 1, 2, 3, 2))},
		"Amin":          {h(autograd.Amin), one(values(1, 1, 2, 3))},
		"CumSum":        {func(in vars) *autograd.Var { return autograd.CumSum(in[0], 0) }, one(values(1, 1, 3, 2))},
		"BMM":           {g(autograd.BMM), two(values(1, 1, 2, 2, 3), values(2, 1, 2, 3, 2))},
		"Squeeze":       {h(autograd.Squeeze), one(values(1, 1, 2, 1, 3))},
		"Unsqueeze": {func(in vars) *autograd.Var { return autograd.Unsqueeze(in[0], -1) },
			one(values(1, 1, 2, 3))},
		"Expand": {h(autograd.Expand, 2, -1, 3), one(values(1, 1, 2, 1))},
		"Stack": {func(in vars) *autograd.Var { return autograd.Stack(1, in[0], in[1]) },
			two(values(1, 1, 2, 3), values(2, 1, 2, 3))},
		"Slice": {func(in vars) *autograd.Var { return autograd.Slice(in[0], 1, 1, 5, 2) },
			one(values(1, 1, 2, 5))},
		"Split": {func(in vars) *autograd.Var {
			p := autograd.Split(in[0], 2, 0)
			return autograd.Mul(p[0], p[2])
		}, one(values(1, 1, 5, 2))},
		"AvgPool2d": {func(in vars) *autograd.Var {
			return autograd.AvgPool2d(in[0], autograd.Window{Size: [2]int{2, 2}})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"AvgPool2d moved": {func(in vars) *autograd.Var {
			return autograd.AvgPool2d(in[0],
				autograd.Window{Size: [2]int{3, 2}, Stride: [2]int{1, 2}, Padding: [2]int{1, 1}})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"BatchNorm of images": {func(in vars) *autograd.Var {
			y, _, _ := autograd.BatchNorm(in[0], in[1], in[2], nil, nil, 1e-5)
			return y
		},
			[]*tensor.Tensor{values(1, 1, 3, 2, 2, 2), values(2, 1, 2), values(3, 1, 2)}},
		"BatchNorm of images without parameters": {func(in vars) *autograd.Var {
			y, _, _ := autograd.BatchNorm(in[0], nil, nil, nil, nil, 1e-5)
			return y
		}, one(values(1, 1, 3, 2, 2, 2))},
		"BatchNorm of images by given statistics": {func(in vars) *autograd.Var {
			return normedBy(put(values(5, 1, 2)), put(positive(6, 2)), in[0], in[1], in[2], 1e-5)
		}, []*tensor.Tensor{values(1, 1, 3, 2, 2, 2), values(2, 1, 2), values(3, 1, 2)}},
		"LayerNorm": {func(in vars) *autograd.Var {
			return autograd.LayerNorm(in[0], in[1].Shape(), in[1], in[2], 1e-5)
		},
			[]*tensor.Tensor{values(1, 1, 2, 2, 3), values(2, 1, 2, 3), values(3, 1, 2, 3)}},
		"LayerNorm without parameters": {func(in vars) *autograd.Var {
			return autograd.LayerNorm(in[0], []int{2, 3}, nil, nil, 1e-5)
		}, one(values(1, 1, 2, 2, 3))},
		"LayerNorm with a bias": {func(in vars) *autograd.Var {
			return autograd.LayerNorm(in[0], []int{3}, nil, in[1], 1e-5)
		}, two(values(1, 1, 4, 3), values(2, 1, 3))},
		"GroupNorm": {func(in vars) *autograd.Var { return autograd.GroupNorm(in[0], in[1], in[2], 2, 1e-5) },
			[]*tensor.Tensor{values(1, 1, 2, 4, 3, 2), values(2, 1, 4), values(3, 1, 4)}},
		"GroupNorm of features": {func(in vars) *autograd.Var {
			return autograd.GroupNorm(in[0], in[1], in[2], 2, 1e-5)
		},
			[]*tensor.Tensor{values(1, 1, 3, 6), values(2, 1, 6), values(3, 1, 6)}},
		"GroupNorm without parameters": {func(in vars) *autograd.Var {
			return autograd.GroupNorm(in[0], nil, nil, 2, 1e-5)
		}, one(values(1, 1, 2, 2, 3))},
		"BatchNorm": {func(in vars) *autograd.Var {
			y, _, _ := autograd.BatchNorm(in[0], in[1], in[2], nil, nil, 1e-5)
			return y
		},
			[]*tensor.Tensor{values(1, 1, 4, 3), values(2, 1, 3), values(3, 1, 3)}},
		"BatchNorm by given statistics": {func(in vars) *autograd.Var {
			return normedBy(put(values(5, 1, 2)), put(positive(6, 2)), in[0], in[1], in[2], 1e-5)
		}, []*tensor.Tensor{values(1, 1, 3, 2, 2), values(2, 1, 2), values(3, 1, 2)}},
		"NLLLoss unreduced": {func(in vars) *autograd.Var {
			return autograd.NLLLoss(in[0], target, autograd.Classification{Reduction: autograd.Unreduced})
		}, one(values(1, 1, 3, 4))},
		"NLLLoss weighted": {func(in vars) *autograd.Var {
			return autograd.NLLLoss(in[0], target,
				autograd.Classification{Weight: put(positive(3, 4)), Ignore: []int64{0}})
		}, one(values(1, 1, 3, 4))},
		"CrossEntropy smoothed": {func(in vars) *autograd.Var {
			return autograd.CrossEntropy(in[0], target,
				autograd.Classification{Weight: put(positive(3, 4)), Smoothing: 0.3,
					Reduction: autograd.Unreduced})
		}, one(values(1, 1, 3, 4))},
		"CrossEntropy of images": {func(in vars) *autograd.Var {
			return autograd.CrossEntropy(in[0],
				ints(1, 0, 2, 1, 1, 0).Reshape(2, 3),
				autograd.Classification{Smoothing: 0.2, Reduction: autograd.Unreduced})
		}, one(values(1, 1, 2, 4, 3))},
		"CrossEntropy of probabilities": {func(in vars) *autograd.Var {
			return autograd.CrossEntropy(in[0],
				put(positive(4, 2, 4, 3)), autograd.Classification{Weight: put(positive(3, 4)), Smoothing: 0.3})
		}, one(values(1, 1, 2, 4, 3))},
		"CrossEntropy ignored": {func(in vars) *autograd.Var {
			return autograd.CrossEntropy(in[0], ints(1, autograd.Ignored, 3), autograd.Classification{})
		}, one(values(1, 1, 3, 4))},
		"BCEWithLogitsLoss weighted": {func(in vars) *autograd.Var {
			return autograd.BCEWithLogitsLoss(in[0], in[1], put(positive(3, 4)), autograd.ByMean)
		}, two(values(1, 3, 3, 4), values(2, 1, 3, 4))},
		"MSELoss unreduced": {func(in vars) *autograd.Var {
			return autograd.MSELoss(in[0], in[1], autograd.Unreduced)
		}, two(values(1, 1, 3), values(2, 1, 3))},
		"SmoothL1Loss": {func(in vars) *autograd.Var {
			return autograd.SmoothL1Loss(in[0], in[1], 0.7, autograd.ByMean)
		}, two(values(1, 1, 3, 4), values(2, 1, 3, 4))},
		"SmoothL1Loss of L1": {func(in vars) *autograd.Var {
			return autograd.SmoothL1Loss(in[0], in[1], 0, autograd.BySum)
		}, two(values(1, 1, 3, 4), values(2, 1, 3, 4))},
		"BCEWithLogitsLoss": {func(in vars) *autograd.Var {
			return autograd.BCEWithLogitsLoss(in[0], in[1], nil, autograd.ByMean)
		}, two(values(1, 3, 3, 4), values(2, 1, 3, 4))},
		"BCEWithLogitsLoss at 0": {func(in vars) *autograd.Var {
			return autograd.BCEWithLogitsLoss(in[0], in[1], nil, autograd.Unreduced)
		}, two(tensor.New(tensor.Float64, 2), values(2, 1, 2))},
	}
	for _, o := range device.Ops() { // of what has no row above, as of one that twiceOps has
		if again := twiceOps[o.Name]; rows[o.Name].f == nil && again != nil {
			inputs := two(values(1, 1, 2, 3), values(2, 2, 3))
			rows[o.Name] = gradient{func(in vars) *autograd.Var { return again(in, nil) }, inputs[:o.Arity]}
		}
	}
	return rows
}

// lstmOf is an LSTM of gates, states, cells and weights, and all that it returns.
func lstmOf(r autograd.Recurrence) func(in vars) *autograd.Var {
	return func(in vars) *autograd.Var {
		r.Weight = in[3]
		y, h, c := autograd.LSTM(in[0], in[1], in[2], r)
		return joined(y, autograd.MulScalar(h, 0.5), c)
	}
}

// gruOf is a GRU of gates, states, weights and biases, and all that it returns.
func gruOf(backwards bool) func(in vars) *autograd.Var {
	return func(in vars) *autograd.Var {
		r := autograd.Recurrence{Weight: in[2], Backwards: backwards}
		if len(in) > 3 {
			r.Bias = in[3]
		}
		y, h := autograd.GRU(in[0], in[1], r)
		return joined(y, autograd.MulScalar(h, 0.5))
	}
}

// joined is the elements of all values in one row.
func joined(all ...*autograd.Var) *autograd.Var {
	for i, x := range all {
		all[i] = autograd.Reshape(x, -1)
	}
	return autograd.Cat(0, all...)
}

// normedBy is BatchNorm outside of training.
func normedBy(mean, variance *tensor.Tensor, x, w, b *autograd.Var, eps float64) *autograd.Var {
	y, _, _ := autograd.BatchNorm(x, w, b, mean, variance, eps)
	return y
}
