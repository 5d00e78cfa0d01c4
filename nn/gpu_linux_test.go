package nn_test

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/cuda/sim"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// simulated returns a GPU for this process and its children, which runs the kernels' own texts.
// Nothing may be left on it.
func simulated(t *testing.T) tensor.Device {
	t.Helper()
	devices, err := sim.Create(1, 256<<20)
	testutil.NoError(t, err)
	t.Setenv(cuda.SimulateKey, devices.Paths()[0])
	domain, err := arena.New(arena.Options{Budget: 16 << 20})
	testutil.NoError(t, err)
	before := arena.Current()
	arena.SetDefault(domain)
	dev, err := tensor.ParseDevice("cuda")
	testutil.NoError(t, err)
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); ; { // what the graph and the optimizer have made
			testutil.NoError(t, tensor.EmptyCache())
			used, err := devices.Used(0)
			testutil.NoError(t, err)
			if used == 0 || t.Failed() { // a test that has failed leaves what it leaves
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d bytes are left on the device", used)
			}
		}
		arena.SetDefault(before)
		testutil.NoError(t, errors.Join(cuda.Close(), domain.Close(), devices.Close()))
	})
	return dev
}

// A step of a small network by the kernels' own texts, which the simulated GPU interprets, is the
// host's.
func TestLayer_OnASimulatedGPUIsThatOfTheHost(t *testing.T) {
	dev := simulated(t)
	g := tensor.NewGenerator(2)
	images, labels := tensor.RandN(tensor.Float32, g, 3, 1, 8, 8), tensor.RandInt(g, 0, 4, 3)
	step := func(dev tensor.Device) (state map[string]*tensor.Tensor, loss *tensor.Tensor) {
		g := tensor.NewGenerator(1)
		m := nn.NewSequential(nn.NewConv2d(1, 2, 3, g), nn.NewMaxPool2d(2), nn.ReLU, nn.Flatten,
			&nn.Dropout{P: 0}, nn.NewLinear(18, 4, g), nn.LogSoftmax)
		testutil.NoError(t, nn.To(m, dev))
		o := optim.NewSGD(nn.Params(m), optim.SGDOptions{LR: 0.1, Momentum: 0.5})
		l := nn.NLLLoss{}.Of(m.Forward(autograd.NewScope().Const(on(t, dev, images))), on(t, dev, labels))
		l.Backward()
		o.Step()
		return nn.State(m), l.T()
	}
	want, wantLoss := step(nil)
	got, loss := step(dev)
	devicetest.Same(t, loss, wantLoss, 1e-5)
	for name, w := range want {
		if got[name].Device() != dev {
			t.Errorf("%s is on %v", name, got[name].Device())
		}
		devicetest.Same(t, got[name], w, 1e-5)
	}
}

// A trainee is what a worker of a Hogwild on a device gets.
type trainee struct {
	Net   *nn.Linear
	Steps *ipc.Sender[int] // tells the rank after each step
	Stop  *ipc.Event
}

var trainThere = shoal.Register("train on a device", func(ctx context.Context, rank int, w trainee) error {
	dev := w.Net.Weight.T.Device()
	x, err := tensor.RandN(tensor.Float32, tensor.NewGenerator(uint64(rank)), 3, 4).ToDevice(dev)
	if err != nil {
		return err
	}
	y, err := tensor.FromSlice([]int64{0, 1, 1}, 3).ToDevice(dev)
	if err != nil {
		return err
	}
	sgd, scope := optim.NewSGD(nn.Params(w.Net), optim.SGDOptions{LR: 0.01}), autograd.NewScope()
	for !w.Stop.IsSet() {
		sgd.ZeroGrad()
		autograd.CrossEntropy(w.Net.Forward(scope.Const(x)), y, autograd.Classification{}).Backward()
		sgd.Step()
		scope.Reset()
		if err := tensor.Synchronize(dev); err != nil {
			return err
		}
		if err := w.Steps.Put(ctx, rank); err != nil {
			return err
		}
	}
	return errors.Join(x.Close(), y.Close())
})

// A worker that is killed while it changes the parameters, which are one memory on the device for
// all, leaves others and their training alone.
func TestLayer_InHogwildOnASimulatedGPUGoesOnWithoutTheKilled(t *testing.T) {
	dev, ctx := simulated(t), testutil.Context(t)
	net := nn.NewLinear(4, 2, tensor.NewGenerator(1))
	testutil.NoError(t, nn.To(net, dev))
	steps, err := ipc.NewQueue[int](1)
	testutil.NoError(t, err)
	stop, err := ipc.NewEvent()
	testutil.NoError(t, err)
	const workers = 3
	var groups [workers]*shoal.Group // of its own each, so that none is cancelled by another's end
	var processes [workers]*shoal.Process
	for rank := range workers {
		groups[rank] = shoal.NewGroup(ctx, shoal.Options{Workers: workers, FirstRank: rank})
		processes[rank] = trainThere.Go(groups[rank], trainee{net, steps.Sender(), stop})
	}
	// have waits until each of some ranks has made n more steps.
	have := func(n int, ranks ...int) {
		seen := map[int]int{}
		for done := 0; done < len(ranks); {
			rank, err := steps.Get(ctx)
			testutil.NoError(t, err)
			if seen[rank]++; seen[rank] == n && slices.Contains(ranks, rank) {
				done++
			}
		}
	}
	weight := func() *tensor.Tensor {
		w, err := net.Weight.T.CPU()
		testutil.NoError(t, err)
		return w
	}
	have(1, 0, 1, 2)
	testutil.NoError(t, syscall.Kill(processes[1].PID(), syscall.SIGKILL))
	died, ok := errors.AsType[*shoal.ProcessError](groups[1].Wait())
	if !ok || died.Signal != syscall.SIGKILL {
		t.Fatalf("%v", died)
	}
	before := weight()
	have(3, 0, 2)
	testutil.NoError(t, stop.Set())
	testutil.NoError(t, steps.Close()) // some are still to be told
	for _, rank := range []int{0, 2} {
		if err := groups[rank].Wait(); err != nil && !errors.Is(err, ipc.ErrClosed) {
			t.Error(err)
		}
	}
	after := weight()
	if tensor.Equal(before, after) || !(tensor.Abs(after).Sum() < 100) { // NaN is not
		t.Errorf("%v became %v", before, after)
	}
	testutil.NoError(t, errors.Join(before.Close(), after.Close(), stop.Close(), nn.Close(net)))
}
