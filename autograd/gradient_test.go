package autograd_test

import (
	"math"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// values returns numbers in [-scale, scale) that stand well apart from each other and from zero.
func values(seed int, scale float64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, shape...)
	for i, d := 0, tensor.Data[float64](t); i < len(d); i++ {
		d[i] = scale * (float64((i*7919+seed*104729)%1009)/504.5 - 1 + 1e-3)
	}
	return t
}

// positive is values without zeros and negative ones.
func positive(seed int, shape ...int) *tensor.Tensor { return values(seed, 1, shape...).AddScalar(1.5) }

// checkGradient compares the gradients of f at the inputs with central differences. The output is weighted with
// different numbers, so that no element's gradient can stand in for another's.
func checkGradient(t *testing.T, f func(in []*autograd.Var) *autograd.Var, inputs ...*tensor.Tensor) {
	t.Helper()
	params := make([]*autograd.Param, len(inputs))
	for i, in := range inputs {
		params[i] = autograd.NewParam("input", in)
	}
	loss := func() *autograd.Var {
		vars := make([]*autograd.Var, len(params))
		for i, p := range params {
			vars[i] = p.Var()
		}
		y := f(vars)
		return autograd.Sum(autograd.Mul(y, autograd.Const(values(77, 1, y.Shape()...))))
	}
	loss().Backward()
	const step = 1e-6
	for i, p := range params {
		at, grad := tensor.Data[float64](p.T), tensor.Data[float64](p.Grad)
		for j := range at {
			was := at[j]
			at[j] = was + step
			up := loss().Item()
			at[j] = was - step
			down := loss().Item()
			at[j] = was
			want := (up - down) / (2 * step)
			if !(math.Abs(grad[j]-want) <= 1e-6*(1+math.Abs(want))) {
				t.Fatalf("input %d, element %d: gradient %v, differences %v", i, j, grad[j], want)
			}
		}
	}
}

type vars = []*autograd.Var

func TestEveryOperationHasTheGradientOfItsDifferences(t *testing.T) {
	target := tensor.FromSlice([]int64{2, 0, 3}, 3)
	for name, c := range map[string]struct {
		f      func(in vars) *autograd.Var
		inputs []*tensor.Tensor
	}{
		"Add":        {func(in vars) *autograd.Var { return autograd.Add(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 2, 3))},
		"Add twice":  {func(in vars) *autograd.Var { return autograd.Add(in[0], in[0]) }, one(values(1, 1, 2, 3))},
		"Add row":    {func(in vars) *autograd.Var { return autograd.Add(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 3))},
		"Sub column": {func(in vars) *autograd.Var { return autograd.Sub(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 2, 1))},
		"Mul":        {func(in vars) *autograd.Var { return autograd.Mul(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 1))},
		"Mul square": {func(in vars) *autograd.Var { return autograd.Mul(in[0], in[0]) }, one(values(1, 1, 5))},
		"Div":        {func(in vars) *autograd.Var { return autograd.Div(in[0], in[1]) }, two(values(1, 1, 2, 3), positive(2, 3))},
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
		"LogSoftmax": {func(in vars) *autograd.Var { return autograd.LogSoftmax(in[0]) }, one(values(1, 2, 3, 4))},
		"Dropout": {func(in vars) *autograd.Var {
			return autograd.Dropout(in[0], 0.4, tensor.NewGenerator(5), true)
		}, one(values(1, 1, 4, 5))},
		"Dropout2d": {func(in vars) *autograd.Var {
			return autograd.Dropout2d(in[0], 0.4, tensor.NewGenerator(5), true)
		}, one(values(1, 1, 2, 3, 2, 2))},
		"Linear":         {func(in vars) *autograd.Var { return autograd.Linear(in[0], in[1], in[2]) }, []*tensor.Tensor{values(1, 1, 3, 4), values(2, 1, 2, 4), values(3, 1, 2)}},
		"Linear no bias": {func(in vars) *autograd.Var { return autograd.Linear(in[0], in[1], nil) }, two(values(1, 1, 2, 3, 4), values(2, 1, 5, 4))},
		"Linear of a vector": {func(in vars) *autograd.Var {
			return autograd.Linear(in[0], in[1], nil)
		}, two(values(1, 1, 4), values(2, 1, 5, 4))},
		"Linear transposed": {func(in vars) *autograd.Var {
			return autograd.Linear(autograd.Transpose(in[0], 0, 1), in[1], nil)
		}, two(values(1, 1, 4, 3), values(2, 1, 5, 4))},
		"MatMul":         {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 3, 4))},
		"MatMul batches": {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) }, two(values(1, 1, 2, 2, 3), values(2, 1, 3, 2))},
		"MatMul vector":  {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) }, two(values(1, 1, 2, 3), values(2, 1, 3))},
		"MatMul row":     {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) }, two(values(1, 1, 3), values(2, 1, 3, 2))},
		"MatMul dot":     {func(in vars) *autograd.Var { return autograd.MatMul(in[0], in[1]) }, two(values(1, 1, 3), values(2, 1, 3))},
		"Conv2d": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], in[2], autograd.Window{})
		}, []*tensor.Tensor{values(1, 1, 2, 2, 5, 4), values(2, 1, 3, 2, 3, 2), values(3, 1, 3)}},
		"Conv2d moved": {func(in vars) *autograd.Var {
			return autograd.Conv2d(in[0], in[1], nil, autograd.Window{Stride: [2]int{2, 1}, Padding: [2]int{1, 2}})
		}, two(values(1, 1, 2, 2, 5, 4), values(2, 1, 3, 2, 3, 2))},
		"MaxPool2d": {func(in vars) *autograd.Var {
			return autograd.MaxPool2d(in[0], autograd.Window{Size: autograd.Square(2)})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"MaxPool2d moved": {func(in vars) *autograd.Var {
			return autograd.MaxPool2d(in[0], autograd.Window{Size: [2]int{3, 2}, Stride: [2]int{1, 2}, Padding: [2]int{1, 1}})
		}, one(values(1, 1, 2, 2, 5, 4))},
		"NLLLoss":      {func(in vars) *autograd.Var { return autograd.NLLLoss(in[0], target, autograd.ByMean) }, one(values(1, 1, 3, 4))},
		"NLLLoss sum":  {func(in vars) *autograd.Var { return autograd.NLLLoss(in[0], target, autograd.BySum) }, one(values(1, 1, 3, 4))},
		"CrossEntropy": {func(in vars) *autograd.Var { return autograd.CrossEntropy(in[0], target, autograd.ByMean) }, one(values(1, 1, 3, 4))},
		"MSELoss":      {func(in vars) *autograd.Var { return autograd.MSELoss(in[0], in[1], autograd.ByMean) }, two(values(1, 1, 3, 4), values(2, 1, 3, 4))},
		"MSELoss sum":  {func(in vars) *autograd.Var { return autograd.MSELoss(in[0], in[1], autograd.BySum) }, two(values(1, 1, 3), values(2, 1, 3))},
		"Sum":          {func(in vars) *autograd.Var { return autograd.Sum(in[0]) }, one(values(1, 1, 3, 4))},
		"Sum dims":     {func(in vars) *autograd.Var { return autograd.Sum(in[0], 0, -1) }, one(values(1, 1, 3, 2, 2))},
		"Mean":         {func(in vars) *autograd.Var { return autograd.Mean(in[0]) }, one(values(1, 1, 3, 4))},
		"Mean dim":     {func(in vars) *autograd.Var { return autograd.Mean(in[0], 1) }, one(values(1, 1, 3, 4))},
		"Reshape":      {func(in vars) *autograd.Var { return autograd.Reshape(in[0], 2, -1) }, one(values(1, 1, 4, 3))},
		"Flatten":      {func(in vars) *autograd.Var { return autograd.Flatten(in[0]) }, one(values(1, 1, 2, 3, 2))},
		"Permute":      {func(in vars) *autograd.Var { return autograd.Permute(in[0], 2, 0, -2) }, one(values(1, 1, 2, 3, 4))},
		"Transpose":    {func(in vars) *autograd.Var { return autograd.Transpose(in[0], 0, 1) }, one(values(1, 1, 2, 3))},
		"Select":       {func(in vars) *autograd.Var { return autograd.Select(in[0], 1, -1) }, one(values(1, 1, 2, 3))},
		"Narrow":       {func(in vars) *autograd.Var { return autograd.Narrow(in[0], 1, 1, 2) }, one(values(1, 1, 2, 4))},
		"Cat":          {func(in vars) *autograd.Var { return autograd.Cat(-1, in[0], in[1], in[0]) }, two(values(1, 1, 2, 3), values(2, 1, 2, 1))},
	} {
		t.Run(name, func(t *testing.T) { checkGradient(t, c.f, c.inputs...) })
	}
}

func one(a *tensor.Tensor) []*tensor.Tensor    { return []*tensor.Tensor{a} }
func two(a, b *tensor.Tensor) []*tensor.Tensor { return []*tensor.Tensor{a, b} }

func TestFloat32ComputesWhatFloat64Does(t *testing.T) {
	run := func(dt tensor.DType) []float64 {
		var params []*autograd.Param
		param := func(seed int, shape ...int) *autograd.Var {
			p := autograd.NewParam("p", values(seed, 0.5, shape...).To(dt))
			params = append(params, p)
			return p.Var()
		}
		x := autograd.Conv2d(param(1, 2, 2, 6, 6), param(2, 3, 2, 3, 3), param(3, 3), autograd.Window{Padding: autograd.Square(1)})
		x = autograd.MaxPool2d(autograd.ReLU(x), autograd.Window{Size: autograd.Square(2)})
		x = autograd.Dropout2d(x, 0.3, tensor.NewGenerator(1), true)
		x = autograd.LogSoftmax(autograd.Linear(autograd.Flatten(x), param(4, 5, 27), param(5, 5)))
		loss := autograd.NLLLoss(x, tensor.FromSlice([]int32{4, 1}, 2), autograd.ByMean)
		loss = autograd.Add(loss, autograd.MSELoss(x, autograd.Const(values(8, 1, 2, 5).To(dt)), autograd.ByMean))
		loss.Backward()
		out := []float64{loss.Item()}
		for _, p := range params {
			out = append(out, tensor.Data[float64](p.Grad.To(tensor.Float64))...)
		}
		return out
	}
	single, double := run(tensor.Float32), run(tensor.Float64)
	if !slices.EqualFunc(single, double, func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
		t.Errorf("float32 %v\nfloat64 %v", single, double)
	}
}
