package nn_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// normal is a net with what the MNIST net has not.
func normal() nn.Module {
	g := tensor.NewGenerator(1)
	conv := nn.NewConv2d(1, 4, 5, g)
	conv.Bias = nil // its gradient would be 0 but for rounding, of which Adam takes steps
	return nn.NewSequential(conv, nn.NewBatchNorm2d(4), nn.Flatten, nn.NewLinear(4*24*24, 10, g), nn.LogSoftmax)
}

func someOptimizers(m nn.Module) map[string]optim.Optimizer {
	return map[string]optim.Optimizer{
		"sgd":     optim.NewSGD(nn.Params(m), optim.SGDOptions{LR: 0.05, Momentum: 0.5, WeightDecay: 0.01}),
		"plain":   optim.NewSGD(nn.Params(m), optim.SGDOptions{LR: 0.05, Atomic: true}),
		"adam":    optim.NewAdam(nn.Params(m), optim.AdamOptions{LR: 0.001, Atomic: true}),
		"rmsprop": optim.NewRMSprop(nn.Params(m), optim.RMSpropOptions{LR: 0.001, Momentum: 0.1, Centered: true}),
		"amsgrad": optim.NewAdamW(nn.Params(m), optim.AdamOptions{LR: 0.001, WeightDecay: 0.01, AMSGrad: true}),
		"adagrad": optim.NewAdagrad(nn.Params(m), optim.AdagradOptions{LR: 0.001, InitialAccumulator: 0.1}),
	}
}

func TestLayer_TrainsOnADeviceAsOnTheHost(t *testing.T) {
	g := tensor.NewGenerator(2)
	images, labels := tensor.RandN(tensor.Float32, g, 4, 1, 28, 28), tensor.RandInt(g, 0, 10, 4)
	for name, fresh := range map[string]func() nn.Module{
		"mnist":  func() nn.Module { m := NewMNISTNet(tensor.NewGenerator(1)); nn.Eval(m); return m },
		"normal": normal,
	} {
		for kind := range someOptimizers(fresh()) {
			t.Run(name+" "+kind, func(t *testing.T) {
				dev := devicetest.New("test:0")
				train := func(dev tensor.Device) map[string]*tensor.Tensor {
					m := fresh()
					o := someOptimizers(m)[kind] // before the module moves
					testutil.NoError(t, nn.To(m, dev))
					x, y := on(t, dev, images), on(t, dev, labels)
					scope := autograd.NewScope()
					for range 3 {
						o.ZeroGrad()
						nn.NLLLoss{}.Of(m.(nn.Layer).Forward(scope.Const(x)), y).Backward()
						optim.ClipGradNorm(nn.Params(m), 1)
						o.Step()
						scope.Reset()
					}
					return nn.State(m)
				}
				want, got := train(nil), train(dev)
				for name, w := range want {
					if got[name].Device() != dev {
						t.Errorf("%s is on %v", name, got[name].Device())
					}
					devicetest.Same(t, got[name], w, 1e-3)
				}
			})
		}
	}
}

func on(t *testing.T, dev tensor.Device, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	there, err := x.ToDevice(dev)
	testutil.NoError(t, err)
	return there
}

func TestTo_MovesAModuleThatStaysWhatItIs(t *testing.T) {
	dev := devicetest.New("test:0")
	m := normal()
	before := nn.State(nn.Clone(m))
	params := slices.Collect(nn.Params(m))
	params[0].Grad = tensor.Ones(tensor.Float32, params[0].T.Shape()...)
	dev.Fail(errors.New("no room"))
	if err := nn.To(m, dev); err == nil || !strings.Contains(err.Error(), "no room") ||
		params[0].T.Device() != nil || params[2].T.Device() != nil {
		t.Errorf("%v", err)
	}
	dev.Fail(nil)
	testutil.NoError(t, nn.To(m, dev))
	if now := slices.Collect(nn.Params(m)); !slices.Equal(now, params) || params[0].T.Device() != dev ||
		params[0].Grad.Device() != dev {
		t.Error("the parameters are others, or somewhere else")
	}
	testutil.NoError(t, nn.Load(m, before)) // from the host
	c := nn.Clone(m)
	if d := slices.Collect(nn.Params(c))[0].T.Device(); d != dev {
		t.Errorf("a clone is on %v", d)
	}
	testutil.NoError(t, nn.Average(c, before, nn.State(c)))
	for name, x := range nn.State(c) {
		devicetest.Same(t, x, before[name], 1e-6)
	}
	testutil.NoError(t, nn.To(m, nil))
	for name, x := range nn.State(m) {
		if x.Device() != nil {
			t.Errorf("%s is on %v", name, x.Device())
		}
		devicetest.Same(t, x, before[name], 0)
	}
	testutil.NoError(t, errors.Join(nn.Close(m), nn.Close(c)))
	testutil.EventuallyNoError(t, func() error {
		if n := dev.Used(); n != 0 {
			runtime.GC() // frees the tensors that Average has made
			return fmt.Errorf("%d bytes are left on the device", n)
		}
		return nil
	})
}

func TestTo_IsNeededOfEveryTensor(t *testing.T) {
	dev := devicetest.New("test:0")
	m := nn.NewLinear(3, 2, nil)
	testutil.NoError(t, nn.To(m, dev))
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got,
			"expected all tensors to be on the same device, but found at least two devices, test:0 and cpu") {
			t.Error(got)
		}
	}()
	m.Forward(autograd.Const(tensor.New(tensor.Float32, 1, 3)))
}
