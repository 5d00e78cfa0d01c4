package dist_test

import (
	"errors"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/devicetest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestDataParallelOnADevice(t *testing.T) {
	dev := devicetest.Shared("test:0")
	dataParallel(t, dev)
	emptied(t, dev)
}

func TestDataParallelOnSeveralDevices(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1"), devicetest.Shared("test:2")}
	dataParallel(t, devs[0], devs[0], devs[1], devs[2])
	for _, dev := range devs {
		emptied(t, dev)
	}
}

func TestDataParallelBeginsWhereTheNetworkIs(t *testing.T) {
	_, err := dist.NewDataParallel(deadline(t), netLoss, newNet(1), shoal.Options{}, devicetest.Shared("test:0"))
	if !errors.Is(err, dist.ErrTensor) || !strings.Contains(err.Error(), "w1 is on cpu, and the first device is test:0") {
		t.Errorf("%v", err)
	}
}

// A still is a net with a buffer, which its loss reads.
type still struct {
	Net   *net
	Scale *tensor.Tensor
}

func (s *still) Params() iter.Seq[*autograd.Param] { return s.Net.Params() }

func (s *still) Buffers() iter.Seq2[string, *tensor.Tensor] {
	return func(yield func(string, *tensor.Tensor) bool) { yield("scale", s.Scale) }
}

var stillLoss = dist.RegisterLoss("stillLoss", func(s *autograd.Scope, n *still, batch []*tensor.Tensor) *autograd.Var {
	return n.Net.loss(s, []*tensor.Tensor{tensor.Mul(batch[0], n.Scale), batch[1]})
})

// Parameters and buffers change between batches.
func TestReplicasHaveTheBuffersOfTheNetwork(t *testing.T) {
	devs := []*devicetest.Device{devicetest.Shared("test:0"), devicetest.Shared("test:1")}
	here, there := newNet(1), &still{newNet(1), devicetest.On(t, devs[0], tensor.Ones(tensor.Float64, 5))}
	for p := range there.Params() {
		p.T.Set(devicetest.On(t, devs[0], p.T))
	}
	d, err := dist.NewDataParallel(deadline(t), stillLoss, there, shoal.Options{}, devs[0], devs[1])
	check(t, err)
	for i := range 3 {
		there.Scale.Fill(float64(i + 1))
		batch := samples(uint64(i), 8)
		zeroGrad(here)
		zeroGrad(there.Net)
		want := here.loss(autograd.NewScope(), []*tensor.Tensor{batch[0].Clone().MulScalar(float64(i + 1)), batch[1]})
		want.Backward()
		got, err := d.Backward(deadline(t), devicetest.On(t, devs[0], batch[0]), devicetest.On(t, devs[0], batch[1]))
		check(t, err)
		if math.Abs(got-want.Item()) > 1e-9 {
			t.Errorf("batch %d: a loss of %v, want %v", i, got, want.Item())
		}
		step(here)
		step(there.Net)
	}
	check(t, d.Close())
	wants, stop := iter.Pull(here.Params())
	defer stop()
	for p := range there.Params() {
		want, _ := wants()
		devicetest.Same(t, p.T, want.T, 1e-6)
		check(t, p.Close())
	}
	check(t, there.Scale.Close())
	for _, dev := range devs {
		emptied(t, dev)
	}
}

// dataParallel has processes compute on the device that the network is on, whose parameters and gradients they share, or one on each of all.
func dataParallel(t *testing.T, dev tensor.Device, all ...tensor.Device) {
	const steps, batch = 3, 7
	want := alone(1, steps, batch)
	n := newNet(1)
	for p := range n.Params() {
		p.T.Set(devicetest.On(t, dev, p.T))
	}
	d, err := dist.NewDataParallel(deadline(t), netLoss, n, shoal.Options{Workers: 2}, all...)
	check(t, err)
	for i := range steps {
		zeroGrad(n)
		var there []*tensor.Tensor
		for _, x := range samples(uint64(i), batch) {
			there = append(there, devicetest.On(t, dev, x))
		}
		_, err := d.Backward(deadline(t), there...)
		check(t, err)
		step(n)
	}
	check(t, d.Close())
	wants := map[string]*tensor.Tensor{}
	for p := range want.Params() {
		wants[p.Name] = p.T
	}
	for p := range n.Params() {
		if p.T.Device() != dev {
			t.Errorf("%s is on %v", p.Name, p.T.Device())
		}
		devicetest.Same(t, p.T, wants[p.Name], 1e-6)
		check(t, p.Close())
	}
}

// emptied waits until the collector has found what was not closed.
func emptied(t *testing.T, dev *devicetest.Device) {
	t.Helper()
	for ctx := deadline(t); dev.Used() != 0; tensor.Collect() {
		if ctx.Err() != nil {
			t.Fatalf("%d bytes are left on the device", dev.Used())
		}
	}
}
