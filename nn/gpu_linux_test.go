package nn_test

import (
	"errors"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/cuda"
	"github.com/shoal-mp/shoal/internal/cudriver/sim"
	"github.com/shoal-mp/shoal/internal/devicetest"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
)

// A step of a small network by the kernels' own texts, which the simulated GPU interprets, is the host's.
func TestAStepOnASimulatedGPUIsTheHosts(t *testing.T) {
	devices, err := sim.Create(1, 64<<20)
	check(t, err)
	t.Setenv(cuda.SimulateKey, devices.Paths()[0])
	domain, err := shm.New(shm.Options{Budget: 16 << 20})
	check(t, err)
	before := shm.Current()
	shm.SetDefault(domain)
	dev, err := cuda.ParseDevice("cuda")
	check(t, err)
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); ; tensor.Collect() { // what the graph and the optimizer have made
			check(t, cuda.EmptyCache())
			used, err := devices.Used(0)
			check(t, err)
			if used == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d bytes are left on the device", used)
			}
		}
		shm.SetDefault(before)
		check(t, errors.Join(cuda.Close(), domain.Close(), devices.Close()))
	})
	g := tensor.NewGenerator(2)
	images, labels := tensor.RandN(tensor.Float32, g, 3, 1, 8, 8), tensor.RandInt(g, 0, 4, 3)
	step := func(dev tensor.Device) (state map[string]*tensor.Tensor, loss *tensor.Tensor) {
		g := tensor.NewGenerator(1)
		m := nn.NewSequential(nn.NewConv2d(1, 2, 3, g), nn.NewMaxPool2d(2), nn.ReLU{}, nn.Flatten{}, nn.NewDropout(0), nn.NewLinear(18, 4, g), nn.LogSoftmax{})
		check(t, nn.To(m, dev))
		o := optim.NewSGD(m.Params(), optim.SGDOptions{LR: 0.1, Momentum: 0.5})
		l := nn.NLLLoss(m.Forward(autograd.NewScope().Const(on(t, dev, images))), on(t, dev, labels))
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
