package optim_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// job has everything that a worker trains with.
type job struct {
	Net  *nn.Linear
	Adam *optim.Adam
	Loss nn.MSELoss
}

const steps = 50

var train = shoal.Register("optim_test.train", func(_ context.Context, rank int, j job) error {
	defer nn.Close(j.Net)
	defer j.Adam.Close()
	g := tensor.NewGenerator(uint64(rank))
	for range steps {
		x := tensor.RandN(tensor.Float32, g, 8, 2)
		target := tensor.Sum(x, 1).Reshape(8, 1) // to be learned: weights 1 and 1, bias 0
		j.Adam.ZeroGrad()
		j.Loss.Of(j.Net.Forward(autograd.Const(x)), target).Backward()
		j.Adam.Step()
	}
	return nil
})

func TestOptimizer_SharedTrainsTheModuleThatCameAlong(t *testing.T) {
	net := nn.NewLinear(2, 1, tensor.NewGenerator(1))
	defer nn.Close(net)
	adam := optim.NewAdam(nn.Params(net), optim.AdamOptions{LR: 0.05, Atomic: true})
	testutil.NoError(t, adam.Share())
	defer adam.Close()
	testutil.NoError(t, train.Spawn(testutil.Context(t), 2, job{net, adam, nn.MSELoss{}}))
	if d := tensor.Sub(net.Weight.T, tensor.Ones(tensor.Float32, 1, 2)).AbsInPlace().Sum(); d > 0.2 {
		t.Errorf("weights %v, want about 1", net.Weight.T)
	}
	// The state went on: a step by hand is number 101, whose bias correction hardly enlarges the
	// moments.
	before := net.Bias.T.Item()
	for p := range nn.Params(net) {
		p.Grad = tensor.New(tensor.Float32, p.T.Shape()...)
	}
	adam.LR = 0
	adam.Step()
	if net.Bias.T.Item() != before {
		t.Error("a step of rate 0 moved")
	}
	if n := optim.StepsOf(adam); !slices.Equal(n, []int64{2*steps + 1, 2*steps + 1}) {
		t.Errorf("steps %v, want those of both workers and one more", n)
	}
}

// cross sends v through a queue and returns what arrives.
func cross[T any](t *testing.T, v T) T {
	t.Helper()
	q, err := ipc.NewQueue[T](1)
	testutil.NoError(t, err)
	defer q.Close()
	testutil.NoError(t, q.Put(testutil.Context(t), v))
	got, err := q.Get(testutil.Context(t))
	testutil.NoError(t, err)
	return got
}

// inDomain makes a small domain the test's.
func inDomain(t testing.TB) {
	t.Helper()
	d, err := arena.NewLocal(8 << 20)
	testutil.NoError(t, err)
	before := arena.Current()
	arena.SetDefault(d)
	t.Cleanup(func() {
		if n := d.Stats().Blocks; n != 0 {
			t.Errorf("%d blocks are left", n)
		}
		arena.SetDefault(before)
		testutil.NoError(t, d.Close())
	})
}

type everything struct {
	Net     *nn.Sequential
	SGD     *optim.SGD
	Adam    *optim.Adam
	RMSprop *optim.RMSprop
	Adagrad *optim.Adagrad
	Any     any // an nn.SmoothL1Loss
}

func TestOptimizer_ArrivesWithTheParametersOfItsModule(t *testing.T) {
	inDomain(t)
	net := nn.NewSequential(nn.NewLinear(2, 3, nil), nn.NewBatchNorm2d(1))
	e := everything{net, optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.1, Momentum: 0.9, Nesterov: true}),
		optim.NewAdamW(nn.Params(net), optim.AdamOptions{LR: 0.2, WeightDecay: 0.3,
			Betas: &[2]float64{0, 0.5}, Eps: new(0.0)}),
		optim.NewRMSprop(nn.Params(net), optim.RMSpropOptions{LR: 0.3, Centered: true}),
		optim.NewAdagrad(nn.Params(net), optim.AdagradOptions{LR: 0.4, InitialAccumulator: 0.5}),
		nn.SmoothL1Loss{Beta: 2, Reduction: autograd.BySum}}
	testutil.NoError(t, errors.Join(e.RMSprop.Share(), e.Adagrad.Share()))
	got := cross(t, e)
	options := func(e everything) []any {
		return []any{e.SGD.SGDOptions, e.Adam.AdamOptions, e.RMSprop.RMSpropOptions, e.Adagrad.AdagradOptions, e.Any}
	}
	if !reflect.DeepEqual(options(got), options(e)) {
		t.Errorf("options were lost: %+v", got)
	}
	params := slices.Collect(nn.Params(got.Net))
	for _, held := range [][]*autograd.Param{optim.ParamsOf(got.SGD), optim.ParamsOf(got.Adam),
		optim.ParamsOf(got.RMSprop), optim.ParamsOf(got.Adagrad)} {
		if !slices.Equal(held, params) {
			t.Errorf("an optimizer arrived with parameters of its own")
		}
	}
	for _, p := range params {
		p.Grad = tensor.Ones(tensor.Float32, p.T.Shape()...)
	}
	got.RMSprop.Step()
	got.Adam.Step()
	got.Adagrad.Step()
	if n := optim.StepsOf(e.Adagrad); n[0] != 1 {
		t.Errorf("shared sums are not shared: %v steps", n)
	}
	if n := optim.StepsOf(e.RMSprop); n[0] != 1 {
		t.Errorf("shared state is not shared: %v steps", n)
	}
	if n := optim.StepsOf(e.Adam); n != nil {
		t.Errorf("private state is shared: %v steps", n)
	}
	testutil.NoError(t, errors.Join(e.RMSprop.Close(), got.RMSprop.Close(), e.Adagrad.Close(), got.Adagrad.Close(),
		got.Adam.Close(), nn.Close(net), nn.Close(got.Net)))
}

func TestOptimizer_SaysWhenThereIsNoRoomToShare(t *testing.T) {
	inDomain(t)
	net := nn.NewLinear(1000, 1000, nil) // moments of 8 MB
	adam := optim.NewAdam(nn.Params(net), optim.AdamOptions{})
	if err := adam.Share(); !errors.Is(err, arena.ErrNoSpace) {
		t.Errorf("%v, want ErrNoSpace", err)
	}
	testutil.NoError(t, adam.Close())
}

func TestOptimizer_MalformedIsRefused(t *testing.T) {
	inDomain(t)
	p := autograd.NewParam("p", tensor.New(tensor.Float32, 2))
	shape := func(n int) *tensor.Tensor { return tensor.New(tensor.Float32, n) }
	steps := func() *tensor.Tensor { return tensor.New(tensor.Int64) }
	momentum := optim.SGDOptions{Momentum: 0.5}
	for name, b := range map[string]optim.Parcel{
		"a rate below 0":  {Options: optim.SGDOptions{LR: -1}, Slots: optim.Slots(p, nil)},
		"no parameter":    {Options: momentum, Slots: optim.Slots(nil, nil)},
		"private state":   {Options: momentum, Slots: optim.Slots(p, steps(), shape(2))},
		"no state":        {Options: momentum, Shared: true, Slots: optim.Slots(p, steps())},
		"no steps":        {Options: momentum, Shared: true, Slots: optim.Slots(p, nil, shape(2))},
		"steps of floats": {Options: momentum, Shared: true, Slots: optim.Slots(p, shape(1), shape(2))},
		"many steps": {Options: momentum, Shared: true,
			Slots: optim.Slots(p, tensor.New(tensor.Int64, 2), shape(2))},
		"state that is short": {Options: momentum, Shared: true, Slots: optim.Slots(p, steps(), shape(1))},
		"too much state":      {Options: momentum, Shared: true, Slots: optim.Slots(p, steps(), shape(2), shape(2))},
		"state of integers": {Options: momentum, Shared: true,
			Slots: optim.Slots(p, steps(), tensor.New(tensor.Int32, 2))},
		"state that is nil": {Options: momentum, Shared: true, Slots: optim.Slots(p, steps(), nil)},
	} {
		if err := asSGD(t, b); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("%s: %v, want ErrFormat", name, err)
		}
		for _, held := range b.Slots {
			for _, x := range append(held.State, held.Steps) {
				if x != nil {
					testutil.NoError(t, x.Close())
				}
			}
		}
	}
	testutil.NoError(t, p.Close())
}

// asSGD reads an SGD from what is none.
func asSGD(t *testing.T, p optim.Parcel) error {
	d, err := arena.Default()
	testutil.NoError(t, err)
	parcels, err := codec.PlanOf[optim.Parcel]()
	testutil.NoError(t, err)
	optimizers, err := codec.PlanOf[*optim.SGD]()
	testutil.NoError(t, err)
	var e codec.Encoder
	e.Reset(nil)
	testutil.NoError(t, parcels.Encode(&e, p))
	defer e.Done(true)
	var dec codec.Decoder
	dec.Reset(e.Message(), blocks{d, e.Message().Blocks})
	_, err = optimizers.Decode(&dec)
	dec.Done(err == nil)
	return err
}

// blocks take the blocks of a message within one process.
type blocks struct {
	d     *arena.Domain
	table []arena.Handle
}

func (b blocks) Take(i int) (arena.Handle, error) { return b.table[i], b.d.Import(b.table[i]) }
