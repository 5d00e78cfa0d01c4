package dist_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestRegression_S3_3_DistributedDataParallelIsTrainingByOneProcess(t *testing.T) {
	const size, steps, batch = 3, 6, 24
	groups, ctx := handles(t, size), testutil.Context(t)
	nets := make([]*net, size)
	all(t, together(groups, func(g *dist.Group) error {
		n := newNet(uint64(g.Rank()) + 7) // which rank 0's replaces
		nets[g.Rank()] = n
		d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{})
		if err != nil {
			return err
		}
		for i := range steps {
			zeroGrad(n)
			part := samples(uint64(i), batch)
			for k, s := range part {
				part[k] = s.Narrow(0, g.Rank()*batch/size, batch/size)
			}
			if err := d.Backward(ctx, n.loss(nil, part)); err != nil {
				return err
			}
			step(n)
		}
		return nil
	}))
	equal(t, nets[0], alone(7, steps, batch))
	for _, n := range nets[1:] {
		for name, p := range nn.Named(nets[0]) {
			want(t, "the same bits in all replicas: "+name, maps.Collect(nn.Named(n))[name].T, p.T)
		}
	}
}

func TestRegression_S3_3_GradientsAddUpWithoutSync(t *testing.T) {
	const size, parts = 2, 3
	groups, ctx := handles(t, size), testutil.Context(t)
	nets := []*net{newNet(1), newNet(1)}
	all(t, together(groups, func(g *dist.Group) error {
		n := nets[g.Rank()]
		n.B2.Frozen = true
		d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{})
		if err != nil {
			return err
		}
		backward := func(i int) error { return d.Backward(ctx, n.loss(nil, samples(uint64(parts*g.Rank()+i), 4))) }
		failed := errors.New("of the function")
		if err := d.NoSync(func() error { return failed }); err != failed {
			t.Errorf("got %v", err)
		}
		err = d.NoSync(func() error { return errors.Join(backward(0), backward(1)) })
		if err != nil {
			return err
		}
		if g.Rank() == 0 && tensor.Equal(n.W1.Grad, nets[1].W1.T.NewZeros(tensor.Float64, 8, 5)) {
			t.Error("nothing added up")
		}
		return backward(2)
	}))
	whole := newNet(1)
	for i := range size * parts {
		autograd.MulScalar(whole.loss(nil, samples(uint64(i), 4)), 1./size).Backward()
	}
	for _, n := range nets {
		for name, p := range nn.Named(n) {
			if name == "b2" {
				if p.Grad != nil {
					t.Error("a frozen parameter has a gradient")
				}
			} else if o := maps.Collect(nn.Named(whole))[name]; !tensor.AllClose(p.Grad, o.Grad, 1e-6, 1e-9) {
				t.Errorf("%s: %v, want %v", name, p.Grad, o.Grad)
			}
		}
	}
}

func TestRegression_S3_3_BuffersOfDistributedDataParallel(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	for _, own := range []bool{false, true} {
		nets := make([]*nn.Sequential, 2)
		all(t, together(groups, func(g *dist.Group) error {
			n := nn.NewSequential(nn.NewBatchNorm2d(2))
			for _, b := range nn.Buffers(n) {
				b.Fill(float64(g.Rank() + 1))
			}
			nets[g.Rank()] = n
			d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{OwnBuffers: own})
			if err != nil {
				return err
			}
			for name, b := range nn.Buffers(n) {
				want(t, "at the start all have those of rank 0: "+name, b, tensor.Full(b.DType(), 1, b.Shape()...))
			}
			if names := slices.Collect(maps.Keys(nn.State(d))); !slices.Contains(names,
				"module.0.running_mean") || !slices.Contains(names, "module.0.weight") {
				t.Error(names) // as in PyTorch
			}
			for i := range 3 {
				x := tensor.RandN(tensor.Float32, tensor.NewGenerator(uint64(10*g.Rank()+i)), 4, 2, 3, 3)
				if err := d.Backward(ctx, autograd.Sum(d.Forward(autograd.Const(x)))); err != nil {
					return err
				}
			}
			return nil
		}))
		first, second := nn.State(nets[0]), nn.State(nets[1])
		if same := tensor.Equal(first["0.running_mean"], second["0.running_mean"]); same == own {
			t.Errorf("own buffers %v, and they are equal: %v", own, same)
		}
		if n := second["0.num_batches_tracked"].Item(); n != 4 { // one, and three
			t.Errorf("%v batches", n)
		}
		alone := nn.NewBatchNorm2d(2) // of rank 0's part alone
		for _, b := range nn.Buffers(alone) {
			b.Fill(1)
		}
		for i := range 3 {
			alone.Forward(autograd.Const(tensor.RandN(tensor.Float32, tensor.NewGenerator(uint64(i)), 4, 2, 3, 3)))
		}
		want(t, "the mean of rank 0's part", first["0.running_mean"], alone.RunningMean)
	}
}

func TestRegression_S3_3_DistributedDataParallelThatCannotBe(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	wrap := func(n func(rank int) *nn.Sequential) []error {
		return together(groups, func(g *dist.Group) error {
			_, err := dist.NewDistributedDataParallel(ctx, g, n(g.Rank()), dist.DDPOptions{})
			return err
		})
	}
	for _, err := range wrap(func(int) *nn.Sequential { return nn.NewSequential(nn.Tanh) }) {
		if !errors.Is(err, dist.ErrTensor) {
			t.Error(err)
		}
	}
	for _, err := range wrap(func(rank int) *nn.Sequential { return nn.NewSequential(nn.NewLinear(2, 3+rank, nil)) }) {
		if !errors.Is(err, dist.ErrMismatch) {
			t.Error(err)
		}
	}
	// A rank that has no samples counts as zeros.
	all(t, together(groups, func(g *dist.Group) error {
		n := newNet(4)
		d, err := dist.NewDistributedDataParallel(ctx, g, n, dist.DDPOptions{OwnParams: true})
		testutil.NoError(t, err)
		loss := n.loss(nil, samples(1, 4))
		if g.Rank() == 1 {
			loss = nil
		}
		testutil.NoError(t, d.Backward(ctx, loss))
		whole := newNet(4)
		whole.loss(nil, samples(1, 4)).Backward()
		want(t, "half of the gradient", n.W1.Grad, whole.W1.Grad.MulScalarInPlace(0.5))
		defer func() {
			if recover() == nil {
				t.Error("Forward of what is no layer")
			}
		}()
		d.Forward(nil)
		return nil
	}))
}
