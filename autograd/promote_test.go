package autograd_test

import (
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

// Values of two dtypes meet as in PyTorch 2.15, and each gradient has the dtype of its value.
func TestPromotion_IsThatOfPyTorch(t *testing.T) {
	single := func() *autograd.Var { return autograd.Leaf(tensor.FromSlice([]float32{1.5, -2, 0.25}, 3)) }
	double := func() *autograd.Var { return autograd.Leaf(tensor.FromSlice([]float64{2, 3, -1}, 3)) }
	long := func() *autograd.Var { return autograd.Const(tensor.FromSlice([]int64{2, 3, -1}, 3)) }
	number := func() *autograd.Var { return autograd.Leaf(tensor.Scalar(tensor.Float64, 2)) }
	mask := tensor.FromSlice([]bool{true, false, true}, 3)
	for name, f := range map[string]func(a, b *autograd.Var) *autograd.Var{
		"Add": autograd.Add, "Sub": autograd.Sub, "Mul": autograd.Mul, "Div": autograd.Div, "Power": autograd.Power,
		"Maximum": autograd.Maximum, "Minimum": autograd.Minimum, "Hypot": autograd.Hypot, "Atan2": autograd.Atan2,
		"Logaddexp": autograd.Logaddexp,
		"Where":     func(a, b *autograd.Var) *autograd.Var { return autograd.Where(mask, a, b) },
		"Cat":       func(a, b *autograd.Var) *autograd.Var { return autograd.Cat(0, a, b) },
		"Stack":     func(a, b *autograd.Var) *autograd.Var { return autograd.Stack(0, a, b) },
		"MSELoss":   func(a, b *autograd.Var) *autograd.Var { return autograd.MSELoss(a, b, autograd.ByMean) },
		"SmoothL1Loss": func(a, b *autograd.Var) *autograd.Var {
			return autograd.SmoothL1Loss(a, b, 1, autograd.Unreduced)
		},
		"BCEWithLogitsLoss": func(a, b *autograd.Var) *autograd.Var {
			return autograd.BCEWithLogitsLoss(a, b, nil, autograd.ByMean)
		},
	} {
		for _, c := range []struct {
			a, b *autograd.Var
			want tensor.DType
		}{
			{single(), double(), tensor.Float64}, {double(), single(), tensor.Float64},
			{single(), long(), tensor.Float32}, {long(), double(), tensor.Float64},
			{single(), number(), tensor.Float32}, {number(), single(), tensor.Float32},
		} {
			if one := c.a.T().Dims() != c.b.T().Dims(); one && (name == "Cat" || name == "Stack" || len(name) > 10) ||
				one && name == "MSELoss" {
				continue
			}
			y := f(c.a, c.b)
			if y.T().DType() != c.want {
				t.Errorf("%s of %v and %v: %v, want %v", name, c.a.T().DType(), c.b.T().DType(), y.T().DType(), c.want)
			}
			autograd.Sum(y).Backward()
			wide := [2]*autograd.Var{}
			for i, v := range [2]*autograd.Var{c.a, c.b} {
				if wide[i] = autograd.Const(v.T().To(tensor.Float64)); v.T().DType() != tensor.Int64 {
					wide[i] = autograd.Leaf(v.T().To(tensor.Float64).Clone())
				}
			}
			autograd.Sum(f(wide[0], wide[1])).Backward()
			for i, v := range [2]*autograd.Var{c.a, c.b} {
				if v.T().DType() == tensor.Int64 {
					continue
				}
				g, w := v.Grad(), wide[i].Grad()
				if g.DType() != v.T().DType() || !tensor.AllClose(g.To(tensor.Float64), w, 1e-5, 1e-6) &&
					!(tensor.Any(tensor.IsNaN(w)).Item() == 1 && tensor.Equal(tensor.IsNaN(g), tensor.IsNaN(w))) {
					t.Errorf("%s of %v and %v: gradient %v, want %v in %v", name, c.a.T().DType(),
						c.b.T().DType(), g, w,
						v.T().DType())
				}
			}
		}
	}
}

// Second derivatives go through conversions as well.
func TestPromotion_OfSecondDerivatives(t *testing.T) {
	x := autograd.Leaf(tensor.FromSlice([]float32{1.5}, 1))
	y := autograd.Leaf(tensor.FromSlice([]float64{2}, 1))
	z := autograd.Sum(autograd.Mul(autograd.Mul(x, x), y))
	first := autograd.Grad([]*autograd.Var{z}, []*autograd.Var{x}, autograd.GradOptions{CreateGraph: true})
	autograd.Sum(first[0]).Backward()
	if g := x.Grad(); g.DType() != tensor.Float32 || g.Sum() != 4 {
		t.Errorf("second derivative %v, want 4 in float32", g)
	}
	if g := y.Grad(); g.DType() != tensor.Float64 || g.Sum() != 3 {
		t.Errorf("mixed derivative %v, want 3 in float64", g)
	}
}

func TestPromotion_ProductsAndLayersNeedOneDType(t *testing.T) {
	a, b := autograd.Leaf(tensor.Ones(tensor.Float32, 2, 2)), autograd.Leaf(tensor.Ones(tensor.Float64, 2, 2))
	for name, f := range map[string]func(){
		"MatMul":     func() { autograd.MatMul(a, b) },
		"Linear":     func() { autograd.Linear(a, b, nil) },
		"Leaf, Bool": func() { autograd.Leaf(tensor.Ones(tensor.Bool, 1)) },
	} {
		if err := tensor.Catch(f); !errors.Is(err, tensor.ErrOperand) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// PyTorch 2.15 computed the expected values.
func TestGradients_AtEdgesAreThoseOfPyTorch(t *testing.T) {
	zeros := func(shape ...int) *autograd.Var { return autograd.Leaf(tensor.New(tensor.Float64, shape...)) }
	y, x := zeros(1), zeros(1)
	autograd.Sum(autograd.Atan2(y, x)).Backward()
	if y.Grad().Sum() != 0 || x.Grad().Sum() != 0 {
		t.Errorf("gradients of Atan2 at (0, 0): %v and %v", y.Grad(), x.Grad())
	}
	for name, c := range map[string]struct {
		got  *autograd.Var
		want string
	}{
		"of nothing":         {autograd.LogSumExp(zeros(0)), "tensor(-inf, dtype=torch.float64)"},
		"along nothing":      {autograd.LogSumExp(zeros(0, 3), 0), "tensor([-inf, -inf, -inf], dtype=torch.float64)"},
		"along 3 of nothing": {autograd.LogSumExp(zeros(0, 3), 1), "tensor([], dtype=torch.float64)"},
		"of all of nothing":  {autograd.LogSumExp(zeros(0, 3)), "tensor(-inf, dtype=torch.float64)"},
		"of integers": {autograd.LogSumExp(autograd.Const(tensor.FromSlice([]int64{1, 2}, 2))),
			"tensor(2.3133)"},
		"of a number": {autograd.LogSumExp(autograd.Const(tensor.Scalar(tensor.Float32, 7)), 0), "tensor(7.)"},
	} {
		if got := c.got.T().String(); got != c.want {
			t.Errorf("LogSumExp %s: %s, want %s", name, got, c.want)
		}
	}
	nothing := zeros(0, 3)
	autograd.Sum(autograd.LogSumExp(nothing, 0)).Backward()
	s := autograd.Leaf(tensor.Scalar(tensor.Float64, 7))
	autograd.Gather(s, 0, tensor.New(tensor.Int64)).Backward()
	if s.Grad().Sum() != 1 {
		t.Errorf("gradient of Gather of a number: %v", s.Grad())
	}
}
