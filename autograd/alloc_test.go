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
	"Abs": 15, "Add": 14, "AddScalar": 12, "Amax": 38, "Amin": 38, "Atan2": 76, "AvgPool2d": 119,
	"BCEWithLogitsLoss": 158, "BatchNorm2d": 111, "BatchNorm2dBy": 139, "Cat": 26, "Clamp": 61, "Conv2d": 8,
	"Cos": 16, "CumSum": 49, "Div": 27, "Embedding": 28, "Erf": 26, "Exp": 13, "Expm1": 21, "Flip": 56,
	"GELU": 2, "GRU": 65, "Gather": 46, "GradientPenalty": 403, "Hypot": 49, "Index": 197,
	"IndexSelect": 50, "LSTM": 103, "LayerNorm": 21, "LeakyReLU": 50, "Linear": 8, "Log": 13, "Log1p": 24,
	"LogSumExp": 80, "Logaddexp": 62, "MaskedFill": 39, "MatMul": 57, "Max": 53, "Maximum": 75, "Mean": 32,
	"MetaStep": 146, "Minimum": 75, "Mul": 26, "MulScalar": 24, "Narrow": 10, "Neg": 11, "Norm": 73,
	"Pow": 29, "Power": 117, "Prod": 36, "Reciprocal": 17, "Rsqrt": 29,
	"ScaledDotProductAttention": 27, "ScatterAdd": 27, "SiLU": 3, "Sigmoid": 26, "Sin": 15,
	"SmoothL1Loss": 98, "Softmax": 3, "Sort": 59, "Sqrt": 21, "Stack": 37, "Std": 104, "Sub": 19, "Sum": 7,
	"Tanh": 25, "Transpose": 8, "Variance": 60, "Where": 47,
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
