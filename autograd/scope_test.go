package autograd_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// step is a small training step whose input comes from make.
func step(constant func(*tensor.Tensor) *autograd.Var, w *autograd.Param, x, target *tensor.Tensor) *autograd.Var {
	loss := autograd.NLLLoss(autograd.LogSoftmax(autograd.ReLU(autograd.Linear(constant(x), w.Var(), nil)), -1),
		target, autograd.Classification{})
	loss.Backward()
	return loss
}

func TestScope_ComputesWhatFreshMemoryDoes(t *testing.T) {
	target := tensor.FromSlice([]int64{1, 0}, 2)
	s := autograd.NewScope()
	inScope, fresh := autograd.NewParam("w", values(1, 1, 3, 4)), autograd.NewParam("w", values(1, 1, 3, 4))
	for i := range 5 {
		x := values(10+i, 1, 2, 4)
		a, b := step(s.Const, inScope, x, target).Item(), step(autograd.Const, fresh, x, target).Item()
		s.Reset()
		if a != b || !tensor.Equal(inScope.Grad, fresh.Grad) {
			t.Fatalf("step %d: loss %v, want %v; gradient %v, want %v", i, a, b, inScope.Grad, fresh.Grad)
		}
	}
}

func TestScope_LendsTheSameMemoryAgain(t *testing.T) {
	s := autograd.NewScope()
	x := values(1, 1, 8, 4)
	first := autograd.ReLU(s.NoGrad(x)).T()
	if second := autograd.ReLU(s.NoGrad(x)).T(); second.SameStorage(first) {
		t.Fatal("two values that are in use share memory")
	}
	s.Reset()
	again := [2]*tensor.Tensor{autograd.ReLU(s.NoGrad(x)).T(), autograd.ReLU(s.NoGrad(x)).T()}
	if !again[0].SameStorage(first) && !again[1].SameStorage(first) {
		t.Error("memory that was taken back is not lent again")
	}
}

func TestScope_ResetEndsItsValues(t *testing.T) {
	s := autograd.NewScope()
	y := autograd.ReLU(s.Const(values(1, 1, 2)))
	s.Reset()
	if y.T() != nil {
		t.Error("a stale value still has a tensor that is lent to others")
	}
}

// The memory of results that operations of package tensor make comes back at Reset, and that of
// gradients on the way as soon as they are added.
func TestScope_TakesMemoryOfAllResultsBack(t *testing.T) {
	x, target := values(1, 1, 64, 64), values(2, 1, 64, 64)
	w, s := autograd.NewParam("w", values(3, 1, 64, 64)), autograd.NewScope()
	step := func() {
		h := autograd.Mul(s.Const(x), w.Var())
		h = autograd.Div(autograd.Tanh(autograd.Add(h, w.Var())), autograd.AddScalar(autograd.Exp(h), 1))
		h = autograd.MulScalar(autograd.Neg(autograd.Sub(h, s.Const(target))), 2)
		autograd.Sum(autograd.Sigmoid(h)).Backward()
		s.Reset()
	}
	made := func() int {
		m := tensor.MemoryStats()
		return m["num_host_alloc"] - m["num_alloc_reused"]
	}
	for range 3 {
		step()
	}
	before := made()
	for range 20 {
		step()
	}
	if n := made() - before; n > 20 { // a collection may find a view first
		t.Errorf("20 steps made %d tensors of new memory, want at most one each", n)
	}
}

// A scope uses the tensors of its views again: each step sees its own batch, also one of another
// shape, and one whose strides allow no view.
func TestScope_ViewsOfBatchesAreThoseOfTheStep(t *testing.T) {
	s := autograd.NewScope()
	for i, batch := range []*tensor.Tensor{
		tensor.Arange(tensor.Float32, 0, 12, 1).View(3, 4),
		tensor.Arange(tensor.Float32, 12, 24, 1).View(2, 3, 2),
		tensor.Arange(tensor.Float32, 24, 36, 1).View(4, 3).T(),
		tensor.Arange(tensor.Float32, 36, 48, 1).View(12),
	} {
		flat, again := autograd.Reshape(s.Const(batch), 12), autograd.Reshape(s.Const(batch), 2, 6)
		want := tensor.Data[float32](batch.Reshape(12))
		for name, got := range map[string]*tensor.Tensor{"first": flat.T(), "second": again.T()} {
			if !slices.Equal(tensor.Data[float32](got), want) {
				t.Errorf("step %d: the %s view has %v, want %v", i, name, tensor.Data[float32](got), want)
			}
		}
		s.Reset()
		if err := batch.Close(); err != nil {
			t.Error(err)
		}
	}
}
