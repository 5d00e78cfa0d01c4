package dist_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var layersLoss = dist.RegisterLoss("loss of layers",
	func(s *autograd.Scope, n *nn.Sequential, batch []*tensor.Tensor) *autograd.Var {
		return nn.CrossEntropyLoss{}.Of(n.Forward(s.Const(batch[0])), batch[1])
	})

func layers() *nn.Sequential {
	g := tensor.NewGenerator(5)
	return nn.NewSequential(nn.NewLinear(5, 8, g), nn.Tanh, nn.NewLinear(8, 3, g))
}

// batchOf is samples in float32.
func batchOf(seed uint64, n int) (x, labels *tensor.Tensor) {
	b := samples(seed, n)
	return b[0].To(tensor.Float32), b[1]
}

func sameGrads(t *testing.T, got, want nn.Module) {
	t.Helper()
	grads := map[string]*tensor.Tensor{}
	for name, p := range nn.Named(want) {
		grads[name] = p.Grad
	}
	for name, p := range nn.Named(got) {
		if p.Grad == nil || !tensor.AllClose(p.Grad, grads[name], 1e-4, 1e-6) {
			t.Errorf("%s: %v\nwant %v", name, p.Grad, grads[name])
		}
	}
}

func TestRegression_S3_3_ForwardOfDataParallel(t *testing.T) {
	net, single, ctx := layers(), layers(), testutil.Context(t)
	d, err := dist.NewDataParallel(ctx, layersLoss, net, dist.DataParallelOptions{Process: shoal.Options{Workers: 3}})
	testutil.NoError(t, err)
	for i, n := range []int{12, 7, 2, 1} { // the last ones have fewer samples than there are processes
		x, labels := batchOf(uint64(i), n)
		out, err := d.Forward(ctx, x)
		testutil.NoError(t, err)
		alone := single.Forward(autograd.Const(x))
		if !tensor.AllClose(out.T(), alone.T(), 1e-5, 1e-6) {
			t.Errorf("%d samples: %v\nwant %v", n, out.T(), alone.T())
		}
		nn.CrossEntropyLoss{}.Of(out, labels).Backward()
		nn.CrossEntropyLoss{}.Of(alone, labels).Backward()
		testutil.NoError(t, d.BackwardFrom(ctx, out.Grad())) // adds up from batch to batch
		sameGrads(t, net, single)
	}
	x, labels := batchOf(9, 6)
	_, err = d.Forward(ctx, x) // from which nobody goes back
	testutil.NoError(t, err)
	_, err = d.Backward(ctx, x, labels)
	testutil.NoError(t, err)
	nn.CrossEntropyLoss{}.Of(single.Forward(autograd.Const(x)), labels).Backward()
	sameGrads(t, net, single)
	testutil.NoError(t, d.Close())
}

func TestRegression_S3_3_ForwardThatCannotBe(t *testing.T) {
	ctx, x := testutil.Context(t), ones(4, 5)
	d, err := dist.NewDataParallel(ctx, layersLoss, layers(),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 2}})
	testutil.NoError(t, err)
	forward := func(x *tensor.Tensor) error { _, err := d.Forward(ctx, x); return err }
	for name, err := range map[string]error{
		"before": d.BackwardFrom(ctx, ones(4, 3)), "no samples": forward(ones(0, 5)), "a number": forward(ones()),
	} {
		if !errors.Is(err, dist.ErrTensor) {
			t.Errorf("%s: %v", name, err)
		}
	}
	testutil.NoError(t, forward(x))
	for _, dy := range []*tensor.Tensor{nil, ones(3, 3), ones(4, 3).To(tensor.Float64)} {
		if err := d.BackwardFrom(ctx, dy); !errors.Is(err, dist.ErrTensor) {
			t.Error(err)
		}
	}
	testutil.NoError(t, d.BackwardFrom(ctx, ones(4, 3)))
	if err := d.BackwardFrom(ctx, ones(4, 3)); !errors.Is(err, dist.ErrTensor) {
		t.Errorf("a second time: %v", err)
	}
	testutil.NoError(t, d.Close())
	for _, err := range []error{forward(x), d.BackwardFrom(ctx, x)} {
		if !errors.Is(err, dist.ErrClosed) {
			t.Error(err)
		}
	}
	other, err := dist.NewDataParallel(ctx, netLoss, newNet(1),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 1}})
	testutil.NoError(t, err)
	defer other.Close()
	if _, err := other.Forward(ctx, x); !errors.Is(err, dist.ErrTensor) || !strings.Contains(err.Error(), "Backward") {
		t.Error(err)
	}
}

var normLoss = dist.RegisterLoss("loss of norm",
	func(s *autograd.Scope, n *nn.Sequential, batch []*tensor.Tensor) *autograd.Var {
		return autograd.Sum(n.Forward(s.Const(batch[0])))
	})

func TestRegression_S3_3_ForwardInEitherMode(t *testing.T) {
	ctx, x := testutil.Context(t), tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 8, 2, 3, 3)
	net := nn.NewSequential(nn.NewBatchNorm2d(2), &nn.Dropout{P: 0.5})
	d, err := dist.NewDataParallel(ctx, normLoss, net, dist.DataParallelOptions{Process: shoal.Options{Workers: 2}})
	testutil.NoError(t, err)
	defer d.Close()
	forward := func() *autograd.Var {
		out, err := d.Forward(ctx, x)
		testutil.NoError(t, err)
		return out
	}
	if trained := forward(); !trained.RequiresGrad() || tensor.Equal(trained.T(), x) {
		t.Error("it does not train")
	}
	d.Train(false)
	out := forward()
	nn.Eval(net)
	want(t, "by the running statistics, which all share, and without dropout", out.T(),
		net.Forward(autograd.NoGrad(x)).T())
	if err := d.BackwardFrom(ctx, out.T()); out.RequiresGrad() || !errors.Is(err, dist.ErrTensor) {
		t.Error(err)
	}
	d.Train(true)
	if trained := forward(); tensor.Equal(trained.T(), out.T()) {
		t.Error("it does not train any more")
	}
}
