package dist_test

import (
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/devicetest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestDataParallelOnADevice(t *testing.T) {
	dev := devicetest.Shared("test:0")
	dataParallel(t, dev)
	emptied(t, dev)
}

// dataParallel has processes compute on the device that the network is on, whose parameters and gradients they share.
func dataParallel(t *testing.T, dev tensor.Device) {
	const steps, batch = 3, 7
	want := alone(1, steps, batch)
	n := newNet(1)
	for p := range n.Params() {
		p.T.Set(devicetest.On(t, dev, p.T))
	}
	d, err := dist.NewDataParallel(deadline(t), netLoss, n, shoal.Options{Workers: 2})
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
