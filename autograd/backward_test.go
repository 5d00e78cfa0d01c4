package autograd_test

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

func scalar(v float64) *autograd.Param {
	return autograd.NewParam("p", tensor.Scalar(tensor.Float64, v))
}

// mustPanic fails the test unless f panics with a text that contains want. If f panics with an
// error, that error must wrap [tensor.ErrMisuse].
func mustPanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		p := recover()
		err, ok := p.(error)
		if ok && !errors.Is(err, tensor.ErrMisuse) || !strings.Contains(fmt.Sprint(p), want) {
			t.Errorf("panic %v, want one with %q", p, want)
		}
	}()
	f()
}

func TestBackward_AccumulatesUntilZeroed(t *testing.T) {
	p := scalar(3)
	for i := range 3 {
		autograd.Mul(p.Var(), p.Var()).Backward()
		if got, want := p.Grad.Item(), 6*float64(i+1); got != want {
			t.Errorf("after %d: %v, want %v", i+1, got, want)
		}
	}
	p.ZeroGrad()
	if p.Grad.Item() != 0 {
		t.Error("ZeroGrad left", p.Grad)
	}
}

func TestBackward_WalksAValueOfManyPathsOnce(t *testing.T) {
	p := scalar(1)
	x := p.Var()
	for range 60 { // 2^60 paths
		x = autograd.Add(x, x)
	}
	x.Backward()
	if p.Grad.Item() != 1<<60 {
		t.Errorf("gradient %v, want 2^60", p.Grad.Item())
	}
}

func TestBackward_WalksALongChainWithoutRecursion(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(1 << 20)) // 20 bytes for each value: a recursion would end the program
	p := scalar(0)
	x := p.Var()
	for range 50_000 {
		x = autograd.AddScalar(x, 1)
	}
	x.Backward()
	if x.Item() != 5e4 || p.Grad.Item() != 1 {
		t.Errorf("value %v, gradient %v", x.Item(), p.Grad.Item())
	}
}

func TestBackward_WaitsForTheLongerPath(t *testing.T) {
	p := scalar(2)
	x := autograd.MulScalar(p.Var(), 1)
	long := autograd.Mul(autograd.MulScalar(x, 3), x) // 3x²
	autograd.Add(autograd.Mul(long, x), x).Backward() // 3x³ + x
	if p.Grad.Item() != 9*4+1 {
		t.Errorf("gradient %v, want 37", p.Grad.Item())
	}
}

func TestBackward_NoticesATensorThatChanged(t *testing.T) {
	p, q := scalar(2), scalar(3)
	y := autograd.Mul(p.Var(), q.Var())
	q.T.AddScalarInPlace(1)
	mustPanic(t, "Mul: saved tensor of shape [] was modified in place", y.Backward)

	y = autograd.Exp(p.Var())
	y.T().Zero()
	mustPanic(t, "Exp: saved tensor", y.Backward)

	y = autograd.Add(p.Var(), q.Var()) // reads neither
	q.T.AddScalarInPlace(1)
	y.Backward()
}

// Workers that are goroutines cannot train one network, and the panic says what can.
func TestBackward_AdvisesProcessesWhereAnotherTrains(t *testing.T) {
	p := scalar(2)
	y := autograd.Exp(p.Var())
	y.T().Zero()
	mustPanic(t, "use processes, not goroutines", y.Backward)
}

func TestBackward_NoticesIndicesAndMasksThatChanged(t *testing.T) {
	x := autograd.NewParam("x", values(1, 1, 2, 3)).Var()
	mask, idx := tensor.New(tensor.Bool, 3), tensor.New(tensor.Int64, 2)
	for name, y := range map[string]*autograd.Var{
		"Where": autograd.Where(mask, x, x), "MaskedFill": autograd.MaskedFill(x, mask, 1),
		"IndexSelect": autograd.IndexSelect(x, 0, idx), "Index": autograd.Index(x, idx),
		"Embedding": autograd.Embedding(x, autograd.Const(idx)),
	} {
		changed := idx
		if name == "Where" || name == "MaskedFill" {
			changed = mask
		}
		loss := autograd.Sum(y)
		changed.Touch()
		mustPanic(t, name+": saved tensor", loss.Backward)
	}
}

func TestBackward_NoticesAChangeByAView(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 2, 3))
	y := autograd.Sum(autograd.Mul(p.Var(), p.Var()))
	p.T.Select(0, 1).Zero()
	mustPanic(t, "modified in place", y.Backward)
}

func TestBackward_PanicsTheSecondTime(t *testing.T) {
	x := autograd.Exp(scalar(2).Var())
	a, b := autograd.MulScalar(x, 2), autograd.MulScalar(x, 3)
	a.Backward()
	mustPanic(t, "second backward pass", a.Backward)
	mustPanic(t, "second backward pass through Exp", b.Backward)
	mustPanic(t, "RetainGraph: true", b.Backward)
}

func TestBackward_NeedsANumberAndAParameter(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 2))
	mustPanic(t, "want a single number", p.Var().Backward)
	mustPanic(t, "depends on no parameter", autograd.Const(values(1, 1)).Backward)
	mustPanic(t, "want float32 or float64", func() { autograd.ReLU(autograd.Const(tensor.New(tensor.Int64, 2))) })
	mustPanic(t, "convert one", func() { autograd.MatMul(p.Var(), autograd.Const(tensor.New(tensor.Float32, 2))) })
}

func TestNoGrad_RecordsNothing(t *testing.T) {
	p := scalar(2)
	y := autograd.Mul(autograd.NoGrad(tensor.Scalar(tensor.Float64, 3)), p.Var())
	if y.RequiresGrad() || y.Item() != 6 {
		t.Errorf("%v, requires gradient: %v", y.Item(), y.RequiresGrad())
	}
	if z := autograd.Add(p.Var(), y); z.RequiresGrad() {
		t.Error("what is computed from a quiet value was recorded")
	}
	mustPanic(t, "depends on no parameter", y.Backward)
}

func TestVarDetach_GetsNothingAsAFrozenParam(t *testing.T) {
	p, q := scalar(2), scalar(5)
	q.Frozen = true
	d := autograd.Exp(p.Var()).Detach()
	autograd.Mul(autograd.Mul(p.Var(), q.Var()), d).Backward()
	if want := 5 * d.Item(); q.Grad != nil || p.Grad.Item() != want {
		t.Errorf("frozen %v; other %v, want %v", q.Grad, p.Grad.Item(), want)
	}
}

func TestBackwardWith_TakesTheGradientOfAnyShape(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 3))
	autograd.MulScalar(p.Var(), 2).BackwardWith(
		autograd.BackwardOptions{Gradient: tensor.FromSlice([]float64{1, 10, 100}, 3)})
	if want := tensor.FromSlice([]float64{2, 20, 200}, 3); !tensor.Equal(p.Grad, want) {
		t.Errorf("%v, want %v", p.Grad, want)
	}
}

func TestDropout_KeepsTheMeanAndDropsWholeChannels(t *testing.T) {
	g := tensor.NewGenerator(3)
	y := autograd.Dropout2d(autograd.Const(tensor.Ones(tensor.Float32, 100, 50, 2, 3)), 0.25, g, true).T()
	dropped := 0
	d := tensor.Data[float32](y)
	for i := 0; i < len(d); i += 6 {
		for _, v := range d[i : i+6] {
			if v != d[i] || v != 0 && v != float32(1/0.75) {
				t.Fatalf("channel %d is %v", i/6, d[i:i+6])
			}
		}
		if d[i] == 0 {
			dropped++
		}
	}
	if dropped < 1100 || dropped > 1400 { // 1250 ± 5 standard deviations
		t.Errorf("%d of 5000 channels dropped, want about 1250", dropped)
	}
	x := autograd.Const(values(1, 1, 4))
	if autograd.Dropout(x, 0.5, g, false) != x {
		t.Error("Dropout outside of training changed its input")
	}
	if all := autograd.Dropout(x, 1, g, true).T(); !tensor.Equal(all, tensor.New(tensor.Float64, 4)) {
		t.Errorf("dropout with probability 1: %v", all)
	}
}
