package autograd_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// block is a part of a network with a parameter and dropout.
func block(w *autograd.Param, g *tensor.Generator) func(in ...*autograd.Var) *autograd.Var {
	return func(in ...*autograd.Var) *autograd.Var {
		return autograd.Dropout(autograd.Tanh(autograd.Linear(in[0], w.Var(), nil)), 0.5, g, true)
	}
}

func TestRegression_S3_4_ACheckpointIsWhatItsFunctionIs(t *testing.T) {
	for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		for _, own := range []*tensor.Generator{nil, tensor.NewGenerator(7)} {
			var want []*tensor.Tensor
			for _, how := range []func(f func(in ...*autograd.Var) *autograd.Var, x *autograd.Var) *autograd.Var{
				func(f func(in ...*autograd.Var) *autograd.Var, x *autograd.Var) *autograd.Var { return f(x) },
				func(f func(in ...*autograd.Var) *autograd.Var, x *autograd.Var) *autograd.Var {
					if own != nil {
						return autograd.CheckpointWith([]*tensor.Generator{own}, f, x)
					}
					return autograd.Checkpoint(f, x)
				},
			} {
				tensor.ManualSeed(3)
				if own != nil {
					own.SetState(tensor.NewGenerator(7).State())
				}
				a, b := autograd.NewParam("a", values(1, 1, 4, 4)), autograd.NewParam("b", values(2, 1, 4, 4))
				x := s.Leaf(values(3, 1, 5, 4))
				h := how(block(a, own), autograd.MulScalar(x, 2))
				y := how(block(b, own), h)
				after := tensor.RandN(tensor.Float64, nil, 3)
				autograd.Sum(autograd.Mul(y, y)).Backward()
				got := []*tensor.Tensor{y.T().Clone(), a.Grad, b.Grad, x.Grad(), after,
					tensor.RandN(tensor.Float64, nil, 3)}
				if want == nil {
					want = got
				}
				for i := range got {
					if !tensor.Equal(got[i], want[i]) {
						t.Errorf("%s: result %d is %v, want %v", name, i, got[i], want[i])
					}
				}
				if s != nil {
					s.Reset()
				}
			}
		}
	}
}

func TestRegression_S3_4_ACheckpointKeepsNothingOnTheWay(t *testing.T) {
	w := autograd.NewParam("w", values(1, 1, 4, 4))
	calls := 0
	var inside weak.Pointer[tensor.Tensor]
	f := func(in ...*autograd.Var) *autograd.Var {
		calls++
		h := autograd.Tanh(autograd.Linear(in[0], w.Var(), nil))
		inside = weak.Make(h.T())
		return autograd.Sin(h)
	}
	y := autograd.Sum(autograd.Checkpoint(f, autograd.Const(values(2, 1, 3, 4))))
	for i := range 2 {
		if runtime.GC(); inside.Value() != nil {
			t.Errorf("what was computed on the way is kept after call %d", i+1)
		}
		y.BackwardWith(retain)
		if calls != 2+i {
			t.Errorf("%d calls, want %d", calls, 2+i)
		}
	}
	runtime.KeepAlive(y)
}

func TestRegression_S3_4_ACheckpointUsesOtherValuesAndItsHooksAreCalledOnce(t *testing.T) {
	p, q := scalar(2), scalar(3)
	called := map[string]int{}
	for _, x := range []*autograd.Param{p, q} {
		x.RegisterPostAccumulateGradHook(func(x *autograd.Param) { called[x.Name]++ })
	}
	q.Name = "q"
	h := autograd.Mul(q.Var(), q.Var()) // which the function finds by itself
	y := autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return autograd.Mul(in[0], h) },
		autograd.Exp(p.Var()))
	autograd.Log(y).Backward() // p + 2 log q
	if !tensor.AllClose(p.Grad, p.Grad.Number(1), 1e-12, 0) ||
		!tensor.AllClose(q.Grad, q.Grad.Number(2.0/3), 1e-12, 0) {
		t.Errorf("%v and %v", p.Grad.Item(), q.Grad.Item())
	}
	if called["p"] != 1 || called["q"] != 1 {
		t.Errorf("hooks: %v", called)
	}
	z := autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return autograd.Mul(in[0], h) }, p.Var())
	mustPanic(t, "second backward pass", z.Backward) // h was used up
	q.ZeroGrad()
	autograd.Mul(q.Var(), q.Var()).Backward()
	if q.Grad.Item() != 6 || called["q"] != 2 {
		t.Errorf("after a refusal: %v, hooks %v", q.Grad.Item(), called)
	}
}

// A Param that a checkpoint's function uses, and something else as well, is complete at the end.
func TestCheckpoint_HooksWaitForTheWholeGradient(t *testing.T) {
	p := autograd.NewParam("p", tensor.FromSlice([]float64{3}, 1))
	calls := 0
	defer p.RegisterPostAccumulateGradHook(func(p *autograd.Param) {
		calls++
		if got := p.Grad.Item(); got != 7 { // 2p of the function, and 1
			t.Errorf("the gradient is %v", got)
		}
	})()
	x := autograd.NewParam("x", tensor.FromSlice([]float64{1}, 1))
	y := autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var {
		return autograd.Mul(in[0], autograd.Mul(p.Var(), p.Var()))
	}, x.Var())
	autograd.Sum(autograd.Add(y, p.Var())).Backward()
	if calls != 1 {
		t.Errorf("the hook was called %d times", calls)
	}
}

func TestRegression_S3_4_GradOfACheckpointLeavesParamsAlone(t *testing.T) {
	w, x := autograd.NewParam("w", values(1, 1, 2, 3)), autograd.Leaf(values(2, 1, 4, 3))
	f := func(in ...*autograd.Var) *autograd.Var {
		return autograd.Sum(autograd.Tanh(autograd.Linear(in[0], w.Var(), nil)))
	}
	want := autograd.Grad(vars{f(x)}, vars{x, w.Var()}, autograd.GradOptions{})
	for _, o := range []autograd.GradOptions{{}, again} {
		got := autograd.Grad(vars{autograd.Checkpoint(f, x)}, vars{x, w.Var()}, o)
		only := autograd.Grad(vars{autograd.Checkpoint(f, x)}, vars{x}, o)
		for i, dx := range append(got, only...) {
			if !tensor.AllClose(dx.T(), want[i%2].T(), 1e-12, 1e-12) {
				t.Errorf("derivative %d: %v, want %v", i, dx.T(), want[i%2].T())
			}
		}
		if w.Grad != nil || x.Grad() != nil {
			t.Error("Grad has written a Grad")
		}
	}
}

func TestRegression_S3_4_RunningStatisticsSeeABatchOnce(t *testing.T) {
	for outer, s := range map[bool]*autograd.Scope{false: autograd.NewScope(), true: autograd.NewScope()} {
		if outer {
			s.KeepBuffers()
		}
		var kept []bool
		x := s.Leaf(values(1, 1, 3))
		autograd.Sum(autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var {
			kept = append(kept, in[0].KeepsBuffers())
			return autograd.Exp(in[0])
		}, x)).Backward()
		if len(kept) != 2 || kept[0] != outer || !kept[1] {
			t.Errorf("in a scope that keeps buffers, %v: %v", outer, kept)
		}
	}
}

func TestRegression_S3_4_ACheckpointThatIsNotTheSameIsRefused(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 4))
	n := 4
	y := autograd.Sum(autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var {
		n--
		return autograd.Narrow(in[0], 0, 0, n)
	}, p.Var()))
	mustPanic(t, "shape [3] at first and [2] now", y.Backward)

	y = autograd.Sum(autograd.Checkpoint(
		func(in ...*autograd.Var) *autograd.Var { return autograd.Exp(in[0]) }, p.Var()))
	p.T.AddScalarInPlace(1)
	mustPanic(t, "Checkpoint: saved tensor of shape [4] was modified in place", y.Backward)
	mustPanic(t, "input 0 is nil",
		func() { autograd.Checkpoint(func(in ...*autograd.Var) *autograd.Var { return in[0] }, nil) })

	same := func(in ...*autograd.Var) *autograd.Var { return in[0] }
	p.ZeroGrad()
	autograd.Sum(autograd.Checkpoint(same, p.Var())).Backward()
	autograd.Sum(autograd.Checkpoint(func(...*autograd.Var) *autograd.Var { return p.Var() })).Backward()
	if !tensor.Equal(p.Grad, tensor.Full(tensor.Float64, 2, 4)) {
		t.Errorf("%v", p.Grad)
	}
	if v := autograd.Checkpoint(same, autograd.NoGrad(p.T)); v.RequiresGrad() {
		t.Error("a value of NoGrad was recorded")
	}
}
