package autograd_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

var again = autograd.GradOptions{CreateGraph: true}

// derivatives is a function whose inputs are those of f and the gradient of its output, and whose
// value is all derivatives of f, in one row.
func derivatives(f func(in vars) *autograd.Var, o autograd.GradOptions) func(in vars) *autograd.Var {
	return func(in vars) *autograd.Var {
		last := len(in) - 1
		o.GradOutputs = in[last:]
		all := autograd.Grad(vars{f(in[:last])}, in[:last], o)
		for i, dx := range all {
			all[i] = autograd.Reshape(dx, -1)
		}
		return autograd.Cat(0, all...)
	}
}

// outputOf returns what the gradient of c's output may be.
func outputOf(c gradient) *tensor.Tensor {
	var in vars
	for _, x := range c.inputs {
		in = append(in, autograd.Const(x))
	}
	return values(55, 1, c.f(in).Shape()...)
}

// None is refused: a new operation has a rule for values, or says how it is computed by others.
func TestRegression_S3_4_EveryDerivativeHasTheDerivativeOfItsDifferences(t *testing.T) {
	for name, c := range gradients(here) {
		if name == "Pow of zero" { // whose derivative is zero, which depends on nothing
			continue
		}
		t.Run(name, func(t *testing.T) {
			checkGradient(t, derivatives(c.f, again), append(c.inputs[:len(c.inputs):len(c.inputs)], outputOf(c))...)
		})
	}
}

// The rules for values and those for tensors are written twice: they must be the same.
func TestRegression_S3_4_GradIsWhatBackwardAdds(t *testing.T) {
	for name, c := range gradients(here) {
		for mode, o := range map[string]autograd.GradOptions{"tensors": {}, "values": again} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				sameAsBackward(t, c, here, o, nil)
				sameAsBackward(t, c, here, o, autograd.NewScope())
			})
		}
	}
}

func TestRegression_S3_4_GradIsTheSameOnADevice(t *testing.T) {
	dev := devicetest.New("test:0")
	there := func(x *tensor.Tensor) *tensor.Tensor { return devicetest.On(t, dev, x) }
	for name, c := range gradients(there) {
		for mode, o := range map[string]autograd.GradOptions{"tensors": {}, "values": again} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				if strings.HasPrefix(name, "Dropout") {
					t.Skip("a device's random numbers are others")
				}
				sameAsBackward(t, c, there, o, nil)
			})
		}
	}
}

func sameAsBackward(t *testing.T, c gradient, put func(*tensor.Tensor) *tensor.Tensor, o autograd.GradOptions,
	s *autograd.Scope) {
	t.Helper()
	want := backward(t, put, c, s)[1:]
	var params []*autograd.Param
	var in vars
	for _, x := range c.inputs {
		p := autograd.NewParam("input", put(x))
		params, in = append(params, p), append(in, p.Var())
	}
	y := c.f(in)
	loss := autograd.Sum(autograd.Mul(y, s.Const(put(values(77, 1, y.Shape()...)))))
	for i, dx := range autograd.Grad(vars{loss}, in, o) {
		devicetest.Same(t, dx.T(), onHost(t, want[i]), 1e-12)
		if !dx.T().IsContiguous() {
			t.Errorf("derivative %d is a view with gaps", i)
		}
		if params[i].Grad != nil {
			t.Errorf("input %d has a Grad", i)
		}
	}
}

func TestRegression_S3_4_GradWalksOnlyWhatLeadsToItsInputs(t *testing.T) {
	p, q := scalar(2), scalar(3)
	h := autograd.Mul(p.Var(), p.Var())
	side := autograd.Exp(q.Var())
	y := autograd.Mul(h, side)
	dh := autograd.Grad(vars{y}, vars{h}, autograd.GradOptions{})[0]
	if want := math.Exp(3); dh.Item() != want || dh.RequiresGrad() {
		t.Errorf("%v, want %v", dh.Item(), want)
	}
	if p.Grad != nil || q.Grad != nil {
		t.Error("a Param has a Grad")
	}
	autograd.Mul(h, side).Backward() // neither was used up
	if p.Grad.Item() != 4*math.Exp(3) || q.Grad.Item() != 4*math.Exp(3) {
		t.Errorf("%v and %v", p.Grad.Item(), q.Grad.Item())
	}
	mustPanic(t, "RetainGraph: true", y.Backward)
}

func TestRegression_S3_4_GradOfValuesAndOfWhatTheyAreComputedFrom(t *testing.T) {
	p := scalar(2)
	a := autograd.Mul(p.Var(), p.Var()) // p²
	b := autograd.Mul(a, p.Var())       // p³
	got := autograd.Grad(vars{a, b, a}, vars{p.Var(), a, p.Var()}, autograd.GradOptions{})
	for i, want := range []float64{2*4 + 12, 2 + 2, 2*4 + 12} {
		if got[i].Item() != want {
			t.Errorf("derivative %d: %v, want %v", i, got[i].Item(), want)
		}
	}
	if g := autograd.Grad(vars{p.Var()}, vars{p.Var()}, autograd.GradOptions{})[0]; g.Item() != 1 {
		t.Errorf("of itself: %v", g.Item())
	}
}

func TestRegression_S3_4_GradSaysWhatIsWrongWithIt(t *testing.T) {
	p, q := autograd.NewParam("p", values(1, 1, 2)), autograd.NewParam("q", values(2, 1, 2))
	y := autograd.MulScalar(p.Var(), 2)
	frozen := autograd.NewParam("f", values(1, 1, 2))
	frozen.Frozen = true
	for want, f := range map[string]func(){
		"output 0 has shape [2], want a single number": func() {
			autograd.Grad(vars{y}, vars{p.Var()}, autograd.GradOptions{})
		},
		"got a gradient of shape [3]": func() {
			autograd.Grad(vars{y}, vars{p.Var()},
				autograd.GradOptions{GradOutputs: vars{autograd.Const(values(1, 1, 3))}})
		},
		"got 1 outputs and 2 GradOutputs": func() {
			autograd.Grad(vars{y}, vars{p.Var()}, autograd.GradOptions{GradOutputs: vars{nil, nil}})
		},
		"got 0 outputs and 1 inputs": func() { autograd.Grad(nil, vars{p.Var()}, autograd.GradOptions{}) },
		"got 1 outputs and 0 inputs": func() { autograd.Grad(vars{y}, nil, autograd.GradOptions{}) },
		"set AllowUnused": func() {
			autograd.Grad(vars{autograd.Sum(y)}, vars{q.Var()}, autograd.GradOptions{})
		},
		"needs no gradient": func() {
			autograd.Grad(vars{autograd.Sum(autograd.Add(y, frozen.Var()))}, vars{frozen.Var()}, autograd.GradOptions{})
		},
		"depends on no parameter": func() {
			autograd.Grad(vars{autograd.Const(values(1, 1, 1))}, vars{p.Var()}, autograd.GradOptions{})
		},
	} {
		mustPanic(t, want, f)
	}
	y = autograd.MulScalar(p.Var(), 2)
	if got := autograd.Grad(vars{autograd.Sum(y)}, vars{p.Var(), q.Var()},
		autograd.GradOptions{AllowUnused: true}); got[1] != nil || got[0] == nil {
		t.Errorf("%v", got)
	}
	y = autograd.MulScalar(p.Var(), 2)
	got := autograd.Grad(vars{autograd.Sum(y)}, vars{q.Var(), p.Var()}, autograd.GradOptions{MaterializeGrads: true})
	if !tensor.Equal(got[0].T(), tensor.New(tensor.Float64, 2)) ||
		!tensor.Equal(got[1].T(), tensor.Full(tensor.Float64, 2, 2)) {
		t.Errorf("%v %v", got[0].T(), got[1].T())
	}
	p.ZeroGrad()
	autograd.Sum(autograd.MulScalar(p.Var(), 5)).Backward() // nothing is left of what was refused
	if !tensor.Equal(p.Grad, tensor.Full(tensor.Float64, 5, 2)) {
		t.Errorf("%v", p.Grad)
	}
}

func TestRegression_S3_4_AChangeBeforeTheSecondDerivativeIsNoticed(t *testing.T) {
	p := scalar(2)
	y := autograd.Mul(p.Var(), autograd.Mul(p.Var(), p.Var()))
	dp := autograd.Grad(vars{y}, vars{p.Var()}, again)[0]
	p.T.AddScalarInPlace(1)
	mustPanic(t, "modified in place", dp.Backward)
	mustPanic(t, "modified in place", y.Backward)
}

func TestRegression_S3_4_HigherDerivatives(t *testing.T) {
	for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		x := s.Leaf(tensor.Scalar(tensor.Float64, 1.5))
		y := autograd.Pow(x, 5)
		for i, want := range []float64{5 * math.Pow(1.5, 4), 20 * math.Pow(1.5, 3), 60 * math.Pow(1.5, 2),
			120 * 1.5, 120} {
			y = autograd.Grad(vars{y}, vars{x}, again)[0]
			if math.Abs(y.Item()-want) > 1e-12*want {
				t.Errorf("%s: derivative %d is %v, want %v", name, i+1, y.Item(), want)
			}
		}
	}
}

// hvp is the product of the Hessian of f at x and v, in both ways in which PyTorch's users write
// it.
func TestRegression_S3_4_AHessianVectorProduct(t *testing.T) {
	x, v := autograd.Leaf(values(1, 1, 4)), autograd.Const(values(2, 1, 4))
	f := func() *autograd.Var { return autograd.Sum(autograd.Sin(autograd.Mul(x, autograd.Flip(x, 0)))) }
	g := autograd.Grad(vars{f()}, vars{x}, again)[0]
	reverse := autograd.Grad(vars{autograd.Sum(autograd.Mul(g, v))}, vars{x},
		autograd.GradOptions{RetainGraph: true})[0]
	by := autograd.Grad(vars{g}, vars{x}, autograd.GradOptions{GradOutputs: vars{v}})[0]
	const step = 1e-6
	at := func(sign float64) *tensor.Tensor {
		moved := autograd.Leaf(x.T().Clone().AxpyInPlace(sign*step, v.T()))
		x = moved
		return autograd.Grad(vars{f()}, vars{moved}, autograd.GradOptions{})[0].T()
	}
	base := x
	up := at(1)
	x = base
	down := at(-1)
	want := tensor.Sub(up, down).MulScalarInPlace(1 / (2 * step))
	for _, got := range []*autograd.Var{reverse, by} {
		if !tensor.AllClose(got.T(), want, 1e-6, 1e-6) {
			t.Errorf("%v, want %v", got.T(), want)
		}
	}
}

// A meta-learning step: the loss after one step of descent, derived for the weights before it.
func TestRegression_S3_4_AStepOfDescentIsDerived(t *testing.T) {
	w := autograd.NewParam("w", values(1, 1, 3, 4))
	x, target := values(2, 1, 5, 4), tensor.FromSlice([]int64{0, 2, 1, 1, 0}, 5)
	loss := func(s *autograd.Scope, w *autograd.Var) *autograd.Var {
		return autograd.CrossEntropy(autograd.Linear(s.Const(x), w, nil), target, autograd.Classification{})
	}
	meta := func(s *autograd.Scope, w *autograd.Var) *autograd.Var {
		g := autograd.Grad(vars{loss(s, w)}, vars{w}, again)[0]
		return loss(s, autograd.Sub(w, autograd.MulScalar(g, 0.5)))
	}
	checkGradient(t, func(in vars) *autograd.Var { return meta(nil, in[0]) }, w.T)
	fresh, scoped := autograd.NewParam("w", w.T.Clone()), autograd.NewParam("w", w.T.Clone())
	s := autograd.NewScope()
	for range 4 { // memory is lent again
		meta(nil, fresh.Var()).Backward()
		meta(s, scoped.Var()).Backward()
		s.Reset()
		if !tensor.Equal(fresh.Grad, scoped.Grad) {
			t.Fatalf("%v in a scope, want %v", scoped.Grad, fresh.Grad)
		}
	}
}

func TestRegression_S3_4_APartOfWhichNothingIsUsedHasNoGradient(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 2))
	empty := autograd.Narrow(p.Var(), 0, 1, 0)
	autograd.Sum(autograd.Cat(0, empty, autograd.Reshape(p.Var(), 2))).Backward()
	if !tensor.Equal(p.Grad, tensor.Ones(tensor.Float64, 2)) {
		t.Errorf("%v", p.Grad)
	}
}

func TestRegression_S3_4_WhatCannotBeDerivedAgainIsNamed(t *testing.T) {
	x := autograd.Leaf(values(1, 1, 3))
	y := autograd.Sum(autograd.Once(x))
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, autograd.ErrCreateGraph) ||
			!strings.Contains(err.Error(), "derivative of Once") {
			t.Errorf("%v", err)
		}
		if dx := autograd.Grad(vars{y}, vars{x}, autograd.GradOptions{})[0]; !tensor.Equal(dx.T(),
			tensor.Ones(tensor.Float64, 3)) {
			t.Errorf("%v", dx.T())
		}
	}()
	autograd.Grad(vars{y}, vars{x}, again)
}

// A query that sees no key has zeros and no gradient, however attention is computed. They were NaN
// where weights were dropped or asked for.
func TestRegression_S3_4_AQueryThatSeesNoKeyHasZeros(t *testing.T) {
	seen := tensor.FromSlice([]bool{false, false, false, true, false, true}, 2, 3)
	for name, attend := range map[string]func(q, k, v *autograd.Var, o autograd.Attention) *autograd.Var{
		"kernel": autograd.ScaledDotProductAttention,
		"dropped": func(q, k, v *autograd.Var, o autograd.Attention) *autograd.Var {
			o.Dropout, o.Generator = 0.1, tensor.NewGenerator(1)
			return autograd.ScaledDotProductAttention(q, k, v, o)
		},
		"weights": func(q, k, v *autograd.Var, o autograd.Attention) *autograd.Var {
			return autograd.MatMul(autograd.AttentionWeights(q, k, o), v)
		},
	} {
		for mode, o := range map[string]autograd.GradOptions{"tensors": {}, "values": again} {
			q, k, v := autograd.Leaf(values(1, 1, 2, 4)), autograd.Leaf(values(2, 1, 3, 4)),
				autograd.Leaf(values(3, 1, 3, 2))
			y := attend(q, k, v, autograd.Attention{Mask: autograd.Const(seen)})
			if first := y.T().Select(0, 0); !tensor.Equal(first, tensor.New(tensor.Float64, 2)) {
				t.Errorf("%s: %v", name, first)
			}
			for i, dx := range autograd.Grad(vars{autograd.Sum(autograd.Mul(y, y))}, vars{q, k, v}, o) {
				if sum := dx.T().Sum(); sum != sum {
					t.Errorf("%s, %s: derivative %d is %v", name, mode, i, dx.T())
				}
			}
		}
	}
}

// A part's gradient is added where it belongs, whatever the order of parts, and to what other
// operations give.
func TestNarrow_AddsUpTheGradientsOfParts(t *testing.T) {
	for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		p := autograd.NewParam("p", values(1, 1, 3, 2))
		for _, x := range (vars{p.Var(), autograd.Mul(p.Var(), s.Const(tensor.Ones(tensor.Float64, 3, 2)))}) {
			p.ZeroGrad()
			total := autograd.Sum(x)
			for i := range 3 {
				total = autograd.Add(total, autograd.MulScalar(autograd.Sum(autograd.Select(x, 0, i)), float64(i)))
			}
			autograd.Add(total, autograd.Sum(autograd.Slice(x, 0, 0, 3, 2))).Backward()
			if want := tensor.FromSlice([]float64{2, 2, 2, 2, 4, 4}, 3, 2); !tensor.Equal(p.Grad, want) {
				t.Errorf("%s: %v, want %v", name, p.Grad, want)
			}
		}
	}
}

// A row of padding got a gradient where it counts from the end.
func TestRegression_S3_4_PaddingCountsFromBothEnds(t *testing.T) {
	for _, padding := range []int64{3, -1} {
		for mode, o := range map[string]autograd.GradOptions{"tensors": {}, "values": again} {
			w := autograd.Leaf(values(1, 1, 4, 2))
			y := autograd.Embedding(w, autograd.Const(tensor.FromSlice([]int64{3, 0, 3, 1}, 4)), padding)
			dw := autograd.Grad(vars{autograd.Sum(autograd.Mul(y, y))}, vars{w}, o)[0].T()
			if tensor.Abs(dw.Select(0, 3)).Sum() != 0 || tensor.Abs(dw.Select(0, 0)).Sum() == 0 {
				t.Errorf("padding %d, %s: %v", padding, mode, dw)
			}
		}
	}
	mustPanic(t, "Embedding: got padding row 4, want -4 to 3", func() {
		autograd.Embedding(autograd.Const(values(1, 1, 4, 2)), autograd.Const(tensor.FromSlice([]int64{0}, 1)), 4)
	})
}
