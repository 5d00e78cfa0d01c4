package nn_test

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestBatchNorm2d_InAScopeThatKeepsBuffers(t *testing.T) {
	b, x := nn.NewBatchNorm2d(2), tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 4, 2, 3, 3)
	keeping := autograd.NewScope()
	keeping.KeepBuffers()
	kept := b.Forward(keeping.Const(x)).T().Clone()
	if b.RunningMean.Sum() != 0 || b.NumBatchesTracked.Item() != 0 {
		t.Errorf("the mean is %v after %v batches", b.RunningMean, b.NumBatchesTracked)
	}
	y := b.Forward(autograd.NewScope().Const(x)).T()
	if !tensor.Equal(kept, y) || b.RunningMean.Sum() == 0 || b.NumBatchesTracked.Item() != 1 {
		t.Errorf("the mean is %v after %v batches, and results are equal: %v", b.RunningMean,
			b.NumBatchesTracked, tensor.Equal(kept, y))
	}
}

func TestBuffers_AreInTheStateTravelAndAreShared(t *testing.T) {
	inDomain(t)
	m := nn.NewSequential(nn.NewConv2d(1, 2, 3, nil), nn.NewBatchNorm2d(2))
	x := autograd.NoGrad(values(5, 2, 3, 1, 5, 5))
	testutil.NoError(t, nn.Share(m))
	got := cross(t, m)
	got.Forward(x) // trains the statistics of both
	for name, b := range nn.Buffers(m) {
		if !b.IsShared() {
			t.Errorf("%s is not shared", name)
		}
	}
	state := nn.State(m)
	if n := tensor.At[int64](state["1.num_batches_tracked"]); n != 1 {
		t.Errorf("%d batches tracked, want the receiver's", n)
	}
	if m := state["1.running_mean"]; !tensor.Equal(m, nn.State(got)["1.running_mean"]) ||
		tensor.Equal(m, tensor.New(tensor.Float32, 2)) {
		t.Errorf("running mean %v", m)
	}
	nn.Eval(m)
	nn.Eval(got)
	if !tensor.Equal(m.Forward(x).T(), got.Forward(x).T()) {
		t.Error("the same layer computes differently there")
	}

	c := nn.Clone(m)
	nn.Train(c)
	c.Forward(x)
	if n := tensor.At[int64](state["1.num_batches_tracked"]); n != 1 {
		t.Errorf("a clone's batch is counted: %d", n)
	}
	testutil.NoError(t, nn.Load(c, state))
	if !maps.EqualFunc(nn.State(c), state, tensor.Equal) {
		t.Error("Load left something")
	}
	delete(state, "1.running_var")
	if err := nn.Load(c, state); !errors.Is(err, nn.ErrMissing) {
		t.Errorf("%v, want ErrMissing for a buffer", err)
	}
	testutil.NoError(t, errors.Join(nn.Close(m), nn.Close(got)))
}

func TestBatchNorm2d_OfOneElementHasNoVariance(t *testing.T) {
	mustPanic(t, "at most 1 element per channel", func() {
		nn.NewBatchNorm2d(1).Forward(autograd.Const(tensor.New(tensor.Float32, 1, 1, 1, 1)))
	})
	mustPanic(t, "want (3)", func() {
		b := nn.NewBatchNorm2d(2)
		nn.Eval(b)
		b.Forward(autograd.Const(tensor.New(tensor.Float32, 1, 3, 1, 1)))
	})
	mustPanic(t, "want one that ends in [3]",
		func() { nn.NewLayerNorm(3).Forward(autograd.Const(tensor.New(tensor.Float32, 3, 2))) })
}

func TestEmbedding_StartsNormal(t *testing.T) {
	e := nn.NewEmbedding(500, 40, tensor.NewGenerator(6))
	w := e.Weight.T
	n := float64(w.Numel())
	if mean, std := w.Mean(), tensor.Std(w).Item(); math.Abs(mean) > 5/math.Sqrt(n) ||
		math.Abs(std-1) > 5/math.Sqrt(2*n) {
		t.Errorf("mean %v, deviation %v, want 0 and 1", mean, std)
	}
	idx := tensor.FromSlice([]int64{3, 3}, 2)
	if e.Forward(autograd.NoGrad(idx)).RequiresGrad() || !e.Forward(autograd.Const(idx)).RequiresGrad() {
		t.Error("an embedding does not follow its input")
	}
	mustPanic(t, "out of range", func() { e.Forward(autograd.Const(tensor.FromSlice([]int64{500}, 1))) })
}

// everyLayer has one of each kind.
func everyLayer() *nn.Sequential {
	g := tensor.NewGenerator(1)
	return nn.NewSequential(nn.NewEmbedding(7, 36, g), images{}, nn.NewConv2d(1, 2, 3, g),
		nn.NewBatchNorm2d(2), nn.ReLU, &nn.Dropout2d{P: 0.5},
		nn.NewMaxPool2d(2), nn.NewAvgPool2d(2), nn.Flatten, nn.NewLinear(2, 8, g), nn.GELU,
		nn.NewLayerNorm(8), nn.LeakyReLU(0.1),
		&nn.Dropout{P: 0.5}, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Softmax, nn.LogSoftmax)
}

// images makes images of 6 by 6 of rows of 36.
type images struct{}

func (images) Forward(x *autograd.Var) *autograd.Var { return autograd.Reshape(x, -1, 1, 6, 6) }

func TestEval_IsSafeFromManyGoroutines(t *testing.T) {
	inDomain(t)
	m := everyLayer()
	nn.Eval(m)
	testutil.NoError(t, nn.Share(m))
	x := tensor.FromSlice([]int64{0, 6, 3, 3}, 4)
	want := m.Forward(autograd.NoGrad(x)).T()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				in := autograd.NoGrad(x)
				if i%2 == 0 {
					in = autograd.NewScope().Const(x) // records a graph, from which nobody goes back
				}
				if got := m.Forward(in).T(); !tensor.Equal(got, want) {
					t.Errorf("%v, want %v", got, want)
					return
				}
			}
		})
	}
	all.Wait()
	testutil.NoError(t, nn.Close(m))
}

func TestLayer_Travels(t *testing.T) {
	inDomain(t)
	m := everyLayer()
	m.Layers = slices.Delete(m.Layers, 1, 2) // is of this test alone
	got := cross(t, m)
	for i, l := range m.Layers {
		if a, b := slices.Collect(maps.Keys(nn.State(l))),
			slices.Collect(maps.Keys(nn.State(got.Layers[i]))); len(a) != len(b) {
			t.Errorf("layer %d has %v, arrived with %v", i, a, b)
		}
	}
	if l, ok := got.Layers[10].(*nn.LayerNorm); !ok || l.Eps != 1e-5 {
		t.Errorf("%+v", got.Layers[10])
	}
	if l, ok := got.Layers[11].(nn.Func); !ok || l != nn.LeakyReLU(0.1) {
		t.Errorf("%+v", got.Layers[11])
	}
	testutil.NoError(t, errors.Join(nn.Close(m), nn.Close(got)))
}

func TestParams_ArriveTied(t *testing.T) {
	inDomain(t)
	l := nn.NewLinear(2, 2, nil)
	got := cross(t, &Net{l, &nn.Linear{Weight: l.Weight}})
	if got.Hidden.Weight != got.Out.Weight {
		t.Error("one weight arrived as two")
	}
	testutil.NoError(t, errors.Join(nn.Close(l), nn.Close(got)))
}
