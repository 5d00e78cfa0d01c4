package autograd_test

import (
	"math"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/tensor"
)

var retain = autograd.BackwardOptions{RetainGraph: true}

func TestRegression_S3_4_ARetainedGraphIsWalkedAgain(t *testing.T) {
	for name, s := range map[string]*autograd.Scope{"fresh": nil, "scope": autograd.NewScope()} {
		w := autograd.NewParam("w", values(1, 1, 3, 4))
		target := tensor.FromSlice([]int64{1, 0}, 2)
		loss := autograd.NLLLoss(autograd.LogSoftmax(autograd.ReLU(autograd.Linear(s.Const(values(2, 1, 2,
			4)), w.Var(), nil)), -1),
			target, autograd.Classification{})
		loss.BackwardWith(retain)
		once := w.Grad.Clone()
		loss.BackwardWith(retain)
		loss.Backward()
		if want := once.MulScalarInPlace(3); !tensor.AllClose(w.Grad, want, 1e-12, 1e-12) {
			t.Errorf("%s: %v, want %v", name, w.Grad, want)
		}
		mustPanic(t, "RetainGraph: true", loss.Backward)
	}
}

func TestRegression_S3_4_TwoLossesShareARetainedGraph(t *testing.T) {
	p := scalar(2)
	x := autograd.Exp(p.Var())
	autograd.MulScalar(x, 2).BackwardWith(retain)
	autograd.MulScalar(x, 3).Backward()
	if want := 5 * math.Exp(2); math.Abs(p.Grad.Item()-want) > 1e-12 {
		t.Errorf("%v, want %v", p.Grad.Item(), want)
	}
}

func TestRegression_S3_4_AChangeBetweenTwoWalksIsNoticed(t *testing.T) {
	p, q := scalar(2), scalar(3)
	y := autograd.Mul(p.Var(), q.Var())
	y.BackwardWith(retain)
	q.T.AddScalarInPlace(1)
	mustPanic(t, "Mul: saved tensor of shape [] was modified in place", y.Backward)
}

// A caller who recovers finds the rest of the graph as it was: counts that were left behind would
// make gradients wrong, silently.
func TestRegression_S3_4_AfterARefusalTheOtherGraphsAreWalkedAsEver(t *testing.T) {
	p, q := scalar(2), scalar(3)
	shared := autograd.MulScalar(p.Var(), 1)
	used, changed := autograd.Exp(q.Var()), autograd.Mul(shared, q.Var())
	used.Backward()
	mustPanic(t, "second backward pass", autograd.Add(autograd.Add(shared, changed), used).Backward)
	q.T.AddScalarInPlace(1)
	mustPanic(t, "modified in place", autograd.Add(autograd.MulScalar(shared, 5), changed).Backward)
	p.ZeroGrad()
	autograd.MulScalar(shared, 7).Backward()
	if p.Grad.Item() != 7 {
		t.Errorf("%v, want 7", p.Grad.Item())
	}
}

func TestRegression_S3_4_AGradientOfAnotherShapeIsRefused(t *testing.T) {
	p := autograd.NewParam("p", values(1, 1, 2, 3))
	y := autograd.MulScalar(p.Var(), 2)
	mustPanic(t, "got a gradient of shape [3], want [2 3]",
		func() { y.BackwardWith(autograd.BackwardOptions{Gradient: values(1, 1, 3)}) })
	mustPanic(t, "got a gradient of shape [2 2 3], want [2 3]",
		func() { y.BackwardWith(autograd.BackwardOptions{Gradient: values(1, 1, 2, 2, 3)}) })
	s := autograd.NewScope()
	late := autograd.Sum(autograd.Mul(s.Const(values(1, 1, 2)), autograd.NewParam("q", values(1, 1, 2)).Var()))
	s.Reset()
	mustPanic(t, "Scope was Reset", late.Backward)
}

func TestRegression_S3_4_SoftmaxOverADimensionThatIsNotThere(t *testing.T) {
	x := autograd.Const(values(1, 1, 2, 3))
	mustPanic(t, "got dimension 2 of shape [2 3], want -2 to 1", func() { autograd.Softmax(x, 2) })
	mustPanic(t, "got dimension -3 of shape [2 3]", func() { autograd.LogSoftmax(x, -3) })
	y := autograd.Softmax(x, 0)
	if sums := tensor.Sum(y.T(), 0); !tensor.AllClose(sums, tensor.Ones(tensor.Float64, 3), 1e-12, 1e-12) {
		t.Errorf("columns sum to %v", sums)
	}
}

func TestRegression_S3_4_ANormOfZerosHasNoNaN(t *testing.T) {
	p := autograd.NewParam("p", tensor.New(tensor.Float64, 2, 3))
	autograd.Sum(autograd.Norm(p.Var(), 1)).Backward()
	if !tensor.Equal(p.Grad, tensor.New(tensor.Float64, 2, 3)) {
		t.Errorf("gradient %v, want zeros", p.Grad)
	}
	inf := autograd.Const(tensor.FromSlice([]float64{math.Inf(-1), math.Inf(-1)}, 2))
	if v := autograd.LogSumExp(inf).Item(); !math.IsInf(v, -1) {
		t.Errorf("the sum of nothing has the logarithm %v", v)
	}
}
