//go:build !race

package autograd_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/tensor"
)

// inScope returns a step of the case: f forwards and back in a scope, from parameters that grew by
// nothing there. With no f it is what a step costs without one.
func (r *twice) inScope(f twiceOp) func() {
	s, zero := autograd.NewScope(), tensor.New(tensor.Float64)
	in := make(vars, len(r.In))
	tensors, params := make([]*tensor.Tensor, len(r.In)), make([]*autograd.Param, len(r.In))
	for i, text := range r.In {
		tensors[i] = written(text)
		if slices.Contains(r.Grad, i) {
			params[i] = autograd.NewParam("x", tensors[i])
		}
	}
	return func() {
		for i, t := range tensors {
			if in[i] = s.Const(t); params[i] != nil {
				in[i] = autograd.Add(params[i].Var(), s.Const(zero))
			}
		}
		y := in[r.Grad[0]]
		if f != nil {
			y = f(in, r.Args)
		}
		if y.RequiresGrad() {
			autograd.Sum(y).Backward()
		}
		s.Reset()
	}
}

// allocations are how many Go objects an operation may make in the steady state, forwards and
// back, beside those of one addition and one sum, of the recorded case that makes fewest. What
// is not here makes none. For each parameter beyond the first they count an addition (9).
// Operations with loops of their own write to the scope's memory and make no more than that. The
// others are made of operations of package tensor, each of which makes a tensor, the order of
// its elements and slices, and of closures; a list of options, such as dimensions, is the
// caller's.
var allocations = map[string]float64{
	"Abs": 18, "Add": 17, "AddScalar": 14, "Amax": 54, "Amin": 54, "Atan2": 93, "AvgPool2d": 167,
	"BCEWithLogitsLoss": 197, "BatchNorm2d": 171, "BatchNorm2dBy": 237, "Cat": 29, "Clamp": 70, "Conv2d": 10,
	"Cos": 20, "CumSum": 64, "Div": 35, "Embedding": 41, "Erf": 33, "Exp": 16, "Expm1": 25, "Flip": 64,
	"GELU": 4, "GRU": 83, "Gather": 65, "GradientPenalty": 578, "Hypot": 60, "Index": 288, "IndexSelect": 69,
	"LSTM": 138, "LayerNorm": 27, "LeakyReLU": 60, "Linear": 9, "Log": 16, "Log1p": 29, "LogSumExp": 107,
	"Logaddexp": 74, "MaskedFill": 42, "MatMul": 67, "Max": 66, "Maximum": 92, "Mean": 36, "MetaStep": 213,
	"Minimum": 92, "Mul": 33, "MulScalar": 28, "Narrow": 10, "Neg": 13, "Norm": 99, "Pow": 36, "Power": 143,
	"Prod": 47, "Reciprocal": 22, "Rsqrt": 34, "ScaledDotProductAttention": 35, "ScatterAdd": 34, "SiLU": 6,
	"Sigmoid": 31, "Sin": 18, "SmoothL1Loss": 116, "Softmax": 3, "Sort": 80, "Sqrt": 25, "Stack": 50,
	"Std": 131, "Sub": 23, "Sum": 7, "Tanh": 31, "Transpose": 8, "Variance": 79, "Where": 55,
}

// The race detector makes pools forget on purpose.
func TestScope_OperationsAllocateNoMoreThanTheyDid(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(1)
	_, rows := recorded(t)
	least := map[string]float64{}
	for _, r := range rows {
		count := func(f twiceOp) float64 {
			step := r.inScope(f)
			for range 3 {
				step()
			}
			return testing.AllocsPerRun(5, step)
		}
		n := count(twiceOps[r.Op]) - count(nil)
		if before, ok := least[r.Op]; !ok || n < before {
			least[r.Op] = n
		}
	}
	for op, n := range least {
		if n > allocations[op] {
			t.Errorf("%s makes %v objects, want at most %v", op, n, allocations[op])
		}
	}
	if len(least) != len(twiceOps) {
		t.Errorf("%d operations of %d", len(least), len(twiceOps))
	}
}
