package autograd_test

import (
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

func TestRegression_S3_4_AHookOfAValueReplacesItsGradient(t *testing.T) {
	p := scalar(2)
	var seen []float64
	h := autograd.Mul(p.Var(), p.Var())
	first := h.RegisterHook(func(g *autograd.Var) *autograd.Var {
		seen = append(seen, g.Item())
		return autograd.MulScalar(g, 10)
	})
	h.RegisterHook(func(g *autograd.Var) *autograd.Var {
		seen = append(seen, g.Item())
		return nil
	})
	y := autograd.Add(h, autograd.MulScalar(h, 2))
	y.BackwardWith(retain)
	if p.Grad.Item() != 3*10*4 || !slices.Equal(seen, []float64{3, 30}) {
		t.Errorf("gradient %v, hooks saw %v", p.Grad.Item(), seen)
	}
	first()
	first()
	p.ZeroGrad()
	y.Backward()
	if p.Grad.Item() != 3*4 || !slices.Equal(seen, []float64{3, 30, 3}) {
		t.Errorf("without the first: gradient %v, hooks saw %v", p.Grad.Item(), seen)
	}
}

func TestRegression_S3_4_AHookOfAParamSeesTheWholeGradientOfOneWalk(t *testing.T) {
	type register = func(p *autograd.Param, f func(g *autograd.Var) *autograd.Var) func()
	for name, register := range map[string]register{
		"Param": (*autograd.Param).RegisterHook,
		"Var": func(p *autograd.Param, f func(g *autograd.Var) *autograd.Var) func() {
			return p.Var().RegisterHook(f)
		},
	} {
		p := autograd.NewParam("p", values(1, 1, 2, 3))
		var seen []*tensor.Tensor
		h := register(p, func(g *autograd.Var) *autograd.Var {
			seen = append(seen, g.T().Clone())
			return autograd.MulScalar(g, -1)
		})
		x := autograd.Const(values(2, 1, 4, 3))
		loss := func() *autograd.Var {
			return autograd.Sum(autograd.Add(autograd.Linear(x, p.Var(), nil), autograd.Linear(x, p.Var(), nil)))
		}
		loss().Backward()
		loss().Backward()
		if len(seen) != 2 || !tensor.Equal(seen[0], seen[1]) ||
			!tensor.Equal(p.Grad, tensor.Mul(seen[0], seen[0].Number(-2))) {
			t.Errorf("%s: seen %v, gradient %v", name, seen, p.Grad)
		}
		dp := autograd.Grad(vars{loss()}, vars{p.Var()}, autograd.GradOptions{})[0]
		if len(seen) != 3 || !tensor.Equal(dp.T(), tensor.Neg(seen[0])) {
			t.Errorf("%s: Grad's is %v", name, dp.T())
		}
		h()
		p.ZeroGrad()
		loss().Backward()
		if len(seen) != 3 || !tensor.Equal(p.Grad, seen[0]) {
			t.Errorf("%s: removed, it was called: %v", name, p.Grad)
		}
	}
}

// The hook of what is used last in the network comes first, when the walk has not come to the other
// parameters.
func TestRegression_S3_4_AHookAfterAccumulationIsCalledAsSoonAsGradIsWhole(t *testing.T) {
	s := autograd.NewScope()
	a, b := autograd.NewParam("a", values(1, 1, 3, 3)), autograd.NewParam("b", values(2, 1, 3, 3))
	var order []string
	var hooks []func()
	for _, p := range []*autograd.Param{a, b} {
		hooks = append(hooks, p.RegisterPostAccumulateGradHook(func(p *autograd.Param) {
			order = append(order, p.Name)
			if p.Name == "b" && a.Grad != nil && a.Grad.Sum() != 0 {
				t.Error("the walk had come to a before b's hook was called")
			}
			p.T.AxpyInPlace(-0.1, p.Grad) // an optimizer's step of this parameter
			p.Grad.Zero()
		}))
	}
	x := values(3, 1, 2, 3)
	loss := func() *autograd.Var {
		h := autograd.ReLU(autograd.Linear(s.Const(x), a.Var(), nil))
		return autograd.Sum(autograd.Linear(h, b.Var(), nil))
	}
	want := autograd.NewParam("b", b.T.Clone())
	autograd.Sum(autograd.Linear(autograd.ReLU(autograd.Linear(s.Const(x),
		autograd.NewParam("a", a.T.Clone()).Var(), nil)), want.Var(), nil)).Backward()
	want.T.AxpyInPlace(-0.1, want.Grad)
	loss().Backward()
	if !slices.Equal(order, []string{"b", "a"}) || !tensor.Equal(b.T, want.T) {
		t.Errorf("order %v, b %v, want %v", order, b.T, want.T)
	}
	autograd.Grad(vars{loss()}, vars{a.Var()}, autograd.GradOptions{})
	if len(order) != 2 {
		t.Error("Grad called a hook after accumulation, which it does not do")
	}
	for _, h := range hooks {
		h()
	}
	s.Reset()
	loss().Backward()
	if len(order) != 2 {
		t.Error("a removed hook was called")
	}
}

func TestRegression_S3_4_HooksInAScopeAndUnderCreateGraph(t *testing.T) {
	s := autograd.NewScope()
	for range 3 {
		x := s.Leaf(tensor.Scalar(tensor.Float64, 3))
		h := autograd.Mul(x, x)
		hook := h.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.Mul(g, g) })
		y := autograd.Mul(h, h) // dh is 2h, by the hook 4h², so dx is 4x⁴·2x
		dx := autograd.Grad(vars{y}, vars{x}, again)[0]
		hook()
		if d2 := autograd.Grad(vars{dx}, vars{x}, autograd.GradOptions{})[0]; dx.Item() != 8*243 || d2.Item() != 40*81 {
			t.Errorf("derivatives %v and %v, want %v and %v", dx.Item(), d2.Item(), 8*243, 40*81)
		}
		s.Reset()
	}
}

func TestRegression_S3_4_AHookOfAnotherShapeIsRefused(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 2, 3))
	mustPanic(t, "needs no gradient", func() {
		autograd.Const(values(1, 1, 2)).RegisterHook(func(g *autograd.Var) *autograd.Var { return nil })
	})
	h := p.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.Sum(g) })
	mustPanic(t, "hook returned a gradient of shape [], want [2 3]", autograd.Sum(p.Var()).Backward)
	h()
	autograd.Sum(p.Var()).Backward()
	if !tensor.Equal(p.Grad, tensor.Ones(tensor.Float64, 2, 3)) {
		t.Errorf("%v", p.Grad)
	}
}

func TestRegression_S3_4_ABackwardFromAParamCallsItsHooks(t *testing.T) {
	p := scalar(2)
	called := 0
	p.RegisterPostAccumulateGradHook(func(*autograd.Param) { called++ })
	p.RegisterHook(func(g *autograd.Var) *autograd.Var { return autograd.MulScalar(g, 3) })
	p.Var().Backward()
	if called != 1 || p.Grad.Item() != 3 {
		t.Errorf("called %d times, gradient %v", called, p.Grad.Item())
	}
}
