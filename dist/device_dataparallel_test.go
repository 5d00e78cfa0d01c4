package dist_test

import (
	"errors"
	"iter"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestDataParallel_OnADevice(t *testing.T) {
	dev := devicetest.Shared("test:0")
	dataParallel(t, dev)
	emptied(t, dev)
}

func TestDataParallel_OnSeveralDevices(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1"), devicetest.Shared("test:2")}
	dataParallel(t, devs[0], devs[0], devs[1], devs[2])
	for _, dev := range devs {
		emptied(t, dev)
	}
}

func TestDataParallel_BeginsWhereTheNetworkIs(t *testing.T) {
	_, err := dist.NewDataParallel(testutil.Context(t), netLoss, newNet(1),
		dist.DataParallelOptions{Devices: []tensor.Device{devicetest.Shared("test:0")}})
	if !errors.Is(err, dist.ErrTensor) ||
		!strings.Contains(err.Error(), "w1 is on cpu, want the first device, test:0") {
		t.Errorf("%v", err)
	}
}

// A still is a net with a buffer, which its loss reads.
type still struct {
	Net   *net
	Scale *tensor.Tensor
}

var stillLoss = dist.RegisterLoss("stillLoss", func(s *autograd.Scope, n *still, batch []*tensor.Tensor) *autograd.Var {
	return n.Net.loss(s, []*tensor.Tensor{tensor.Mul(batch[0], n.Scale), batch[1]})
})

// Parameters and buffers change between batches.
func TestDataParallel_ReplicasHaveTheBuffersOfTheNetwork(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1")}
	here, there := newNet(1), &still{newNet(1), devicetest.On(t, devs[0], tensor.Ones(tensor.Float64, 5))}
	for p := range nn.Params(there) {
		p.T.Set(devicetest.On(t, devs[0], p.T))
	}
	d, err := dist.NewDataParallel(testutil.Context(t), stillLoss, there,
		dist.DataParallelOptions{Devices: []tensor.Device{devs[0], devs[1]}})
	testutil.NoError(t, err)
	for i := range 3 {
		there.Scale.Fill(float64(i + 1))
		batch := samples(uint64(i), 8)
		zeroGrad(here)
		zeroGrad(there.Net)
		scaled := batch[0].Clone().MulScalarInPlace(float64(i + 1))
		want := here.loss(autograd.NewScope(), []*tensor.Tensor{scaled, batch[1]})
		want.Backward()
		got, err := d.Backward(testutil.Context(t), devicetest.On(t, devs[0], batch[0]),
			devicetest.On(t, devs[0], batch[1]))
		testutil.NoError(t, err)
		if math.Abs(got-want.Item()) > 1e-9 {
			t.Errorf("batch %d: a loss of %v, want %v", i, got, want.Item())
		}
		step(here)
		step(there.Net)
	}
	testutil.NoError(t, d.Close())
	wants, stop := iter.Pull(nn.Params(here))
	defer stop()
	for p := range nn.Params(there) {
		want, _ := wants()
		devicetest.Same(t, p.T, want.T, 1e-6)
		testutil.NoError(t, p.Close())
	}
	testutil.NoError(t, there.Scale.Close())
	for _, dev := range devs {
		emptied(t, dev)
	}
}

// dataParallel has processes compute on the device that the network is on, whose parameters and
// gradients they share, or one on each of all. Parts of a batch are of different sizes, and in the
// last one some have no samples.
func dataParallel(t *testing.T, dev tensor.Device, all ...tensor.Device) {
	n, single := newNet(1), newNet(1)
	for p := range nn.Params(n) {
		p.T.Set(devicetest.On(t, dev, p.T))
	}
	d, err := dist.NewDataParallel(testutil.Context(t), netLoss, n,
		dist.DataParallelOptions{Devices: all, Process: shoal.Options{Workers: 2}})
	testutil.NoError(t, err)
	for i, size := range []int{7, 5, 1} {
		zeroGrad(n)
		zeroGrad(single)
		loss, err := d.Backward(testutil.Context(t), there(t, dev, samples(uint64(i), size))...)
		testutil.NoError(t, err)
		whole := single.loss(nil, samples(uint64(i), size))
		whole.Backward()
		if math.Abs(loss-whole.Item()) > 1e-6 {
			t.Errorf("%d samples: a loss of %v, not %v", size, loss, whole.Item())
		}
		same(t, dev, n, single)
		step(n)
		step(single)
	}
	testutil.NoError(t, d.Close())
	for p := range nn.Params(n) {
		testutil.NoError(t, p.Close())
	}
}

// there returns a batch on a device.
func there(t *testing.T, dev tensor.Device, batch []*tensor.Tensor) (all []*tensor.Tensor) {
	t.Helper()
	for _, x := range batch {
		all = append(all, devicetest.On(t, dev, x))
	}
	return all
}

// same wants a module on a device to have the parameters, gradients and buffers that one on the
// host has.
func same(t *testing.T, dev tensor.Device, got, want nn.Module) {
	t.Helper()
	wants, stop := iter.Pull(nn.Params(want))
	defer stop()
	for p := range nn.Params(got) {
		w, _ := wants()
		if p.T.Device() != dev || p.Grad.Device() != dev {
			t.Errorf("%s is on %v, its gradient on %v", p.Name, p.T.Device(), p.Grad.Device())
		}
		devicetest.Same(t, p.T, w.T, 1e-5)
		devicetest.Same(t, p.Grad, w.Grad, 1e-5)
	}
	buffers, halt := iter.Pull2(nn.Buffers(want))
	defer halt()
	for _, b := range nn.Buffers(got) {
		_, w, _ := buffers()
		devicetest.Same(t, b, w, 1e-5)
	}
}

// normalised returns a network with running statistics.
func normalised() *nn.Sequential {
	g := tensor.NewGenerator(4)
	return nn.NewSequential(nn.NewConv2d(1, 2, 3, g), nn.NewBatchNorm2d(2), nn.Flatten,
		nn.NewLinear(8, 3, g), nn.LogSoftmax)
}

var normalisedLoss = dist.RegisterLoss("normalised loss",
	func(s *autograd.Scope, m *nn.Sequential, batch []*tensor.Tensor) *autograd.Var {
		return nn.NLLLoss{}.Of(m.Forward(s.Const(batch[0])), batch[1])
	})

func TestDataParallel_StatisticsAreThoseOfTheFirstDevice(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1")}
	statistics(t, devs[0], devs[1])
	statistics(t, devs[0], devs[0])
	for _, dev := range devs {
		emptied(t, dev)
	}
}

// statistics has each of two devices normalise its part of a batch by itself, as PyTorch's do, and
// keeps what the first one has seen.
func statistics(t *testing.T, devs ...tensor.Device) {
	m, single := normalised(), normalised()
	testutil.NoError(t, nn.To(m, devs[0]))
	d, err := dist.NewDataParallel(testutil.Context(t), normalisedLoss, m, dist.DataParallelOptions{Devices: devs})
	testutil.NoError(t, err)
	scope := autograd.NewScope()
	for i, size := range []int{5, 1} { // all of one is the first part
		for _, net := range []nn.Module{m, single} {
			for p := range nn.Params(net) {
				p.ZeroGrad()
			}
		}
		g := tensor.NewGenerator(uint64(i))
		batch := []*tensor.Tensor{tensor.RandN(tensor.Float32, g, size, 1, 4, 4), tensor.RandInt(g, 0, 3, size)}
		_, err := d.Backward(testutil.Context(t), there(t, devs[0], batch)...)
		testutil.NoError(t, err)
		for rank := range devs {
			from, to := (size+1)/2*rank, min(size, (size+1)/2*(rank+1))
			if from == to {
				continue
			}
			scope.Reset()
			if rank == 1 {
				scope.KeepBuffers()
			}
			part := []*tensor.Tensor{batch[0].Narrow(0, from, to-from), batch[1].Narrow(0, from, to-from)}
			loss := nn.NLLLoss{}.Of(single.Forward(scope.Const(part[0])), part[1])
			autograd.MulScalar(loss, float64(to-from)/float64(size)).Backward()
		}
		scope = autograd.NewScope()
		same(t, devs[0], m, single)
		for p := range nn.Params(m) {
			p.T.AxpyInPlace(-0.1, p.Grad)
		}
		for p := range nn.Params(single) {
			p.T.AxpyInPlace(-0.1, p.Grad)
		}
	}
	testutil.NoError(t, d.Close())
	testutil.NoError(t, nn.Close(m))
}

// A thin is a weight for each feature, of which half are dropped.
type thin struct {
	Weight *autograd.Param
	Drop   *nn.Dropout
}

var thinLoss = dist.RegisterLoss("thin loss", func(s *autograd.Scope, n *thin, batch []*tensor.Tensor) *autograd.Var {
	return autograd.Mean(autograd.Mul(n.Drop.Forward(s.Const(batch[0])), n.Weight.Var()))
})

func TestDataParallel_ReplicasDropOthers(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1")}
	dropout(t, devs[0], devs[1])
	dropout(t, nil, nil)
	for _, dev := range devs {
		emptied(t, dev)
	}
}

// dropout has two replicas of one sample each. Where one of them drops a feature and the other does
// not, its gradient is half of the largest.
func dropout(t *testing.T, devs ...tensor.Device) {
	const features = 200
	var seen []*tensor.Tensor
	for range 2 {
		tensor.ManualSeed(5)
		n := &thin{autograd.NewParam("weight", tensor.Ones(tensor.Float32, features)), &nn.Dropout{P: 0.5}}
		testutil.NoError(t, nn.To(n, devs[0]))
		d, err := dist.NewDataParallel(testutil.Context(t), thinLoss, n, dist.DataParallelOptions{Devices: devs})
		testutil.NoError(t, err)
		_, err = d.Backward(testutil.Context(t), there(t, devs[0],
			[]*tensor.Tensor{tensor.Ones(tensor.Float32, 2, features)})...)
		testutil.NoError(t, err)
		grad, err := n.Weight.Grad.CPU()
		testutil.NoError(t, err)
		times := map[float32]int{}
		for _, g := range tensor.Data[float32](grad) {
			times[g*features]++
		}
		if times[0]+times[1]+times[2] != features || times[0] == 0 || times[1] == 0 || times[2] == 0 {
			t.Errorf("on %v: gradients, and how often each: %v", devs, times)
		}
		seen = append(seen, grad.Clone())
		testutil.NoError(t, errors.Join(d.Close(), nn.Close(n), grad.Close()))
	}
	want(t, "the same seed", seen[1], seen[0])
}

// dying is what kills the replica that finds a negative label.
var dying = dist.RegisterLoss("dying loss", func(s *autograd.Scope, n *net, batch []*tensor.Tensor) *autograd.Var {
	if here, err := batch[1].CPU(); err != nil || here.Select(0, 0).Item() < 0 {
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			p.Kill()
		}
	}
	return n.loss(s, batch)
})

func TestDataParallel_NoticesAKilledReplicaOnADevice(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1")}
	killedReplica(t, devs[0], devs[1])
	for _, dev := range devs {
		emptied(t, dev)
	}
}

// killedReplica kills the last replica, which everybody hears of, and has others go on with the
// same parameters.
func killedReplica(t *testing.T, devs ...tensor.Device) {
	n, single := newNet(1), newNet(1)
	for p := range nn.Params(n) {
		p.T.Set(devicetest.On(t, devs[0], p.T))
	}
	start := func() *dist.DataParallel {
		// The other replica hears of it at once, and may fail first. Nobody is in a hurry to end
		// this one before it has spoken.
		d, err := dist.NewDataParallel(testutil.Context(t), dying, n,
			dist.DataParallelOptions{Devices: devs, Process: shoal.Options{Grace: watchdog}})
		testutil.NoError(t, err)
		return d
	}
	d, batch := start(), samples(1, 4)
	bad := batch[1].Clone()
	tensor.SetAt(bad, int64(-1), 2)
	_, err := d.Backward(testutil.Context(t), there(t, devs[0], []*tensor.Tensor{batch[0], bad})...)
	died, ok := errors.AsType[*shoal.ProcessError](err)
	if !ok || died.Signal != syscall.SIGKILL || died.Rank != 1 {
		t.Errorf("%v", err)
	}
	if _, err := d.Backward(testutil.Context(t), there(t, devs[0], batch)...); !errors.Is(err, dist.ErrClosed) {
		t.Errorf("%v", err)
	}
	zeroGrad(n)
	d = start()
	_, err = d.Backward(testutil.Context(t), there(t, devs[0], batch)...)
	testutil.NoError(t, err)
	single.loss(nil, batch).Backward()
	same(t, devs[0], n, single)
	testutil.NoError(t, d.Close())
	for p := range nn.Params(n) {
		testutil.NoError(t, p.Close())
	}
}

// emptied waits until the collector has found what was not closed.
func emptied(t *testing.T, dev *devicetest.Device) {
	t.Helper()
	for ctx := testutil.Context(t); dev.Used() != 0; testutil.NoError(t, tensor.EmptyCache()) {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are left on the device", dev.Used())
		}
	}
}
