package dist_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A net is one hidden layer, in float64 so that only the order of additions tells processes and one
// process apart.
type net struct{ W1, B1, W2, B2 *autograd.Param }

func newNet(seed uint64) *net {
	g := tensor.NewGenerator(seed)
	param := func(name string, shape ...int) *autograd.Param {
		return autograd.NewParam(name, tensor.RandN(tensor.Float64, g, shape...))
	}
	return &net{param("w1", 8, 5), param("b1", 8), param("w2", 3, 8), param("b2", 3)}
}

func (n *net) loss(s *autograd.Scope, batch []*tensor.Tensor) *autograd.Var {
	h := autograd.Tanh(autograd.Linear(s.Const(batch[0]), n.W1.Var(), n.B1.Var()))
	return autograd.CrossEntropy(autograd.Linear(h, n.W2.Var(), n.B2.Var()), batch[1], autograd.Classification{})
}

// samples returns a batch of n.
func samples(seed uint64, n int) []*tensor.Tensor {
	g := tensor.NewGenerator(seed)
	return []*tensor.Tensor{tensor.RandN(tensor.Float64, g, n, 5), tensor.RandInt(g, 0, 3, n)}
}

// step takes the step of plain SGD.
func step(n *net) {
	for p := range nn.Params(n) {
		p.T.AxpyInPlace(-0.1, p.Grad)
	}
}

func zeroGrad(n *net) {
	for p := range nn.Params(n) {
		p.ZeroGrad()
	}
}

// alone trains by one process with whole batches, and returns the gradients of the last one beside
// the net.
func alone(seed uint64, steps, size int) *net {
	n := newNet(seed)
	for i := range steps {
		zeroGrad(n)
		n.loss(autograd.NewScope(), samples(uint64(i), size)).Backward()
		step(n)
	}
	return n
}

// equal wants parameters and gradients of one net to be within 1e-6 of those of another.
func equal(t testing.TB, got, want *net) {
	t.Helper()
	others, stop := iter.Pull(nn.Params(want))
	defer stop()
	for p := range nn.Params(got) {
		o, _ := others()
		if !tensor.AllClose(p.T, o.T, 1e-6, 1e-9) || !tensor.AllClose(p.Grad, o.Grad, 1e-6, 1e-9) {
			t.Errorf("%s: %v with gradient %v\nwant %v with %v", p.Name, p.T, p.Grad, o.T, o.Grad)
		}
	}
}

func TestAverageGrads_AreThoseOfTheWholeBatch(t *testing.T) {
	const size, steps, batch = 3, 10, 24
	groups, ctx := handles(t, size), testutil.Context(t)
	nets := make([]*net, size)
	all(t, together(groups, func(g *dist.Group) error {
		n := newNet(uint64(g.Rank()) + 7) // which rank 0's replaces
		nets[g.Rank()] = n
		if err := g.BroadcastParams(ctx, 0, nn.Params(n)); err != nil {
			return err
		}
		for i := range steps {
			zeroGrad(n)
			part := samples(uint64(i), batch)
			for k, s := range part {
				part[k] = s.Narrow(0, g.Rank()*batch/size, batch/size)
			}
			n.loss(autograd.NewScope(), part).Backward()
			if err := g.AverageGrads(ctx, nn.Params(n)); err != nil {
				return err
			}
			step(n)
		}
		return nil
	}))
	equal(t, nets[0], alone(7, steps, batch))
	for _, n := range nets[1:] {
		first, stop := iter.Pull(nn.Params(nets[0]))
		for p := range nn.Params(n) {
			o, _ := first()
			want(t, "the same bits in all replicas: "+p.Name, p.T, o.T)
		}
		stop()
	}
}

func TestAverageGrads_CountsMissingOnesAsZeros(t *testing.T) {
	groups, ctx := handles(t, 2), testutil.Context(t)
	nets := []*net{newNet(1), newNet(1)}
	all(t, together(groups, func(g *dist.Group) error {
		n := nets[g.Rank()]
		n.B2.Frozen = true
		if g.Rank() == 0 {
			n.loss(nil, samples(1, 4)).Backward()
		}
		return g.AverageGrads(ctx, nn.Params(n))
	}))
	whole := newNet(1)
	whole.loss(nil, samples(1, 4)).Backward()
	for _, n := range nets {
		want(t, "half of the gradient", n.W1.Grad, whole.W1.Grad.Clone().MulScalarInPlace(0.5))
		if n.B2.Grad != nil {
			t.Error("a frozen parameter has a gradient")
		}
	}
}

var netLoss = dist.RegisterLoss("net loss", func(s *autograd.Scope, n *net, batch []*tensor.Tensor) *autograd.Var {
	return n.loss(s, batch)
})

func TestDataParallel_IsTrainingByOneProcess(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		// The last batch but one has parts of different sizes, and the last one fewer samples than
		// there are processes.
		const steps = 6
		sizes := []int{24, 24, 24, 24, 23, 2}
		n, single, ctx := newNet(3), newNet(3), testutil.Context(t)
		d, err := dist.NewDataParallel(ctx, netLoss, n,
			dist.DataParallelOptions{Process: shoal.Options{Workers: 3, Start: m}})
		testutil.NoError(t, err)
		for i := range steps {
			zeroGrad(n)
			zeroGrad(single)
			loss, err := d.Backward(ctx, samples(uint64(i), sizes[i])...)
			testutil.NoError(t, err)
			whole := single.loss(nil, samples(uint64(i), sizes[i]))
			whole.Backward()
			if diff := loss - whole.Item(); diff > 1e-9 || diff < -1e-9 {
				t.Errorf("a loss of %v, not %v", loss, whole.Item())
			}
			equal(t, n, single)
			step(n)
			step(single)
		}
		_, err = d.Backward(ctx, samples(9, 6)...) // adds up, as there was no ZeroGrad
		testutil.NoError(t, err)
		single.loss(nil, samples(9, 6)).Backward()
		equal(t, n, single)
		testutil.NoError(t, d.Close())
		testutil.NoError(t, d.Close())
		if _, err := d.Backward(ctx, samples(9, 6)...); !errors.Is(err, dist.ErrClosed) {
			t.Error(err)
		}
	}
}

// A counted net notes whose statistics would count.
type counted struct {
	Net           *net
	First, Others *tensor.Tensor // samples
}

var countedLoss = dist.RegisterLoss("counted loss",
	func(s *autograd.Scope, n counted, batch []*tensor.Tensor) *autograd.Var {
		to := n.First
		if s.Const(batch[0]).KeepsBuffers() {
			to = n.Others
		}
		to.AddScalarAtomic(float64(batch[0].Dim(0)))
		return n.Net.loss(s, batch)
	})

func TestDataParallel_OneReplicaWritesBuffers(t *testing.T) {
	ctx, n := testutil.Context(t), counted{newNet(3), tensor.New(tensor.Int64), tensor.New(tensor.Int64)}
	d, err := dist.NewDataParallel(ctx, countedLoss, n, dist.DataParallelOptions{Process: shoal.Options{Workers: 3}})
	testutil.NoError(t, err)
	for i := range uint64(2) {
		_, err := d.Backward(ctx, samples(i, 9)...)
		testutil.NoError(t, err)
	}
	testutil.NoError(t, d.Close())
	if n.First.Item() != 6 || n.Others.Item() != 12 {
		t.Errorf("%v and %v samples, want 6 and 12", n.First, n.Others)
	}
}

func TestDataParallel_RefusesBatchesThatAreNone(t *testing.T) {
	ctx := testutil.Context(t)
	d, err := dist.NewDataParallel(ctx, netLoss, newNet(3),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 2}})
	testutil.NoError(t, err)
	defer d.Close()
	for _, b := range [][]*tensor.Tensor{nil, {ones(2), ones(3)}, {ones()}} {
		if _, err := d.Backward(ctx, b...); !errors.Is(err, dist.ErrTensor) {
			t.Error(err)
		}
	}
	_, err = d.Backward(ctx, samples(1, 4)...)
	testutil.NoError(t, err)
}

// Where there is no room for the pipes of all, those that have begun are ended.
func TestDataParallel_WithoutRoom(t *testing.T) {
	before, err := arena.Default()
	testutil.NoError(t, err)
	local, err := arena.NewLocal(12 << 20)
	testutil.NoError(t, err)
	arena.SetDefault(local)
	defer func() {
		arena.SetDefault(before)
		testutil.NoError(t, local.Close())
	}()
	_, err = dist.NewDataParallel(testutil.Context(t), netLoss, newNet(3),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 200, Start: shoal.GoroutineStart, Grace: watchdog}})
	if !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
	if n := len(shoal.ActiveChildren()); n != 0 {
		t.Errorf("%d are left", n)
	}
}

var failing = dist.RegisterLoss("failing loss", func(_ *autograd.Scope, n *net, batch []*tensor.Tensor) *autograd.Var {
	if batch[0].Sum() > 0 {
		panic("no such label")
	}
	return n.loss(nil, batch)
})

func TestDataParallel_SaysWhyAReplicaFailed(t *testing.T) {
	ctx := testutil.Context(t)
	// The other replica hears of it at once, and may fail first. Nobody is in a hurry to end this
	// one before it has spoken.
	d, err := dist.NewDataParallel(ctx, failing, newNet(3),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 2, Start: shoal.SpawnStart, Grace: watchdog}})
	testutil.NoError(t, err)
	batch := samples(1, 4)
	batch[0].Fill(-1)
	_, err = d.Backward(ctx, batch...)
	testutil.NoError(t, err)
	tensor.SetAt(batch[0], 99., 3, 0) // in the part of rank 1
	var p *shoal.ProcessError
	if _, err = d.Backward(ctx, batch...); !errors.As(err, &p) || !strings.Contains(err.Error(), "rank 1 ") ||
		!strings.Contains(err.Error(), "no such label") {
		t.Errorf("%v", err)
	}
	if _, err := d.Backward(ctx, batch...); !errors.Is(err, dist.ErrClosed) {
		t.Error(err)
	}
}

func TestDataParallel_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(testutil.Context(t))
	d, err := dist.NewDataParallel(ctx, netLoss, newNet(3),
		dist.DataParallelOptions{Process: shoal.Options{Workers: 2, Start: shoal.SpawnStart}})
	testutil.NoError(t, err)
	cancel()
	if _, err := d.Backward(ctx, samples(1, 4)...); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
