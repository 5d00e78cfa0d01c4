package optim_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

// values returns the numbers that nn/testdata/record.py calls values(seed, 1, n).
func values(seed, n int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, n)
	for i, d := 0, tensor.Data[float64](t); i < n; i++ {
		d[i] = float64((i*7919+seed*104729)%1009)/504.5 - 1
	}
	return t
}

func TestOptimizer_AtomicStepsOfManyAreAllTaken(t *testing.T) {
	const goroutines, steps = 4, 500
	for name, c := range map[string]struct {
		make func(p *autograd.Param) optim.Optimizer
		near float64
	}{
		"SGD": {func(p *autograd.Param) optim.Optimizer {
			return optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 1, Atomic: true})
		}, 0},
		// whose steps are of LR where the gradient is always the same
		"Adam": {func(p *autograd.Param) optim.Optimizer {
			return optim.NewAdam(slices.Values([]*autograd.Param{p}), optim.AdamOptions{LR: 1, Atomic: true})
		}, 0.1},
	} {
		shared := tensor.New(tensor.Float64, 3)
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() { // each has a Param of its own, as a process has
				p := autograd.NewParam("p", shared.View(3))
				p.Grad = tensor.Ones(tensor.Float64, 3)
				o := c.make(p)
				for range steps {
					o.Step()
				}
			})
		}
		all.Wait()
		if d := tensor.Sub(shared, tensor.Full(tensor.Float64, -goroutines*steps, 3)).AbsInPlace().Sum(); d > c.near {
			t.Errorf("%s: %v, want %v", name, shared, -goroutines*steps)
		}
	}
}

// Options without a learning rate train, as PyTorch's optimizers without lr do. A rate that is set
// to 0 afterwards, as a schedule does, is 0.
func TestOptimizer_WithoutALearningRateHasPyTorchs(t *testing.T) {
	net := nn.NewLinear(2, 1, tensor.NewGenerator(1))
	defer nn.Close(net)
	params := nn.Params(net)
	sgd, adam := optim.NewSGD(params, optim.SGDOptions{}), optim.NewAdam(params, optim.AdamOptions{})
	adamw := optim.NewAdamW(params, optim.AdamOptions{WeightDecay: 0.1})
	rms, ada := optim.NewRMSprop(params, optim.RMSpropOptions{}), optim.NewAdagrad(params, optim.AdagradOptions{})
	got, want := []float64{sgd.LR, adam.LR, adamw.LR, rms.LR, ada.LR}, []float64{1e-3, 1e-3, 1e-3, 1e-2, 1e-2}
	if !slices.Equal(got, want) {
		t.Errorf("learning rates %v, want %v", got, want)
	}
	adam.LR = 0
	if got := cross(t, adam); got.LR != 0 {
		t.Errorf("a learning rate of 0 arrives as %v", got.LR)
	}
}

func TestOptimizer_LeavesParametersWithoutAGradientAndFrozenOnes(t *testing.T) {
	without, frozen, moved := autograd.NewParam("a", values(1, 3)), autograd.NewParam("b", values(1, 3)),
		autograd.NewParam("c", values(1, 3))
	frozen.Grad, moved.Grad = values(2, 3), values(2, 3)
	frozen.Frozen = true
	sgd := optim.NewSGD(slices.Values([]*autograd.Param{without, frozen, moved}),
		optim.SGDOptions{LR: 1, Momentum: 0.9})
	sgd.Step()
	if !tensor.Equal(without.T, values(1, 3)) || !tensor.Equal(frozen.T, values(1, 3)) ||
		tensor.Equal(moved.T, values(1, 3)) {
		t.Error(without.T, frozen.T, moved.T)
	}
	sgd.ZeroGrad()
	if without.Grad != nil || !tensor.Equal(moved.Grad, tensor.New(tensor.Float64, 3)) {
		t.Error("after ZeroGrad:", without.Grad, moved.Grad)
	}
}

// A parameter and its gradient that were computed from transposed tensors lie as these do.
func TestOptimizer_StepsInAnyOrderOfMemory(t *testing.T) {
	dev := devicetest.New("test:0")
	for name, make := range map[string]func(p iter.Seq[*autograd.Param]) optim.Optimizer{
		"SGD": func(p iter.Seq[*autograd.Param]) optim.Optimizer {
			return optim.NewSGD(p, optim.SGDOptions{LR: 0.1, Momentum: 0.9})
		},
		"Adam": func(p iter.Seq[*autograd.Param]) optim.Optimizer {
			return optim.NewAdam(p, optim.AdamOptions{LR: 0.1})
		},
		"Adagrad": func(p iter.Seq[*autograd.Param]) optim.Optimizer {
			return optim.NewAdagrad(p, optim.AdagradOptions{LR: 0.1})
		},
		"RMSprop": func(p iter.Seq[*autograd.Param]) optim.Optimizer {
			return optim.NewRMSprop(p, optim.RMSpropOptions{LR: 0.1})
		},
	} {
		after := func(lay func(t *tensor.Tensor) *tensor.Tensor, turnedGrad bool) *tensor.Tensor {
			p := autograd.NewParam("p", lay(tensor.Neg(values(1, 12).View(3, 4).T())))
			o := make(slices.Values([]*autograd.Param{p}))
			for seed := range 3 {
				p.Grad = lay(values(seed+2, 12).View(3, 4).T())
				if !turnedGrad {
					p.Grad = p.Grad.Contiguous()
				}
				o.Step()
			}
			return p.T
		}
		want := after((*tensor.Tensor).Contiguous, false)
		for _, turned := range []bool{false, true} {
			here := after(func(t *tensor.Tensor) *tensor.Tensor { return t }, turned)
			there := after(func(x *tensor.Tensor) *tensor.Tensor {
				return devicetest.On(t, dev, x.T().Contiguous()).T()
			}, turned)
			if here.IsContiguous() || there.IsContiguous() {
				t.Errorf("%s: a parameter has strides %v and %v", name, here.Strides(), there.Strides())
			}
			t.Run(name, func(t *testing.T) {
				devicetest.Same(t, here, want, 0)
				devicetest.Same(t, there, want, 1e-13)
			})
		}
	}
}

func TestOptimizer_StepBetweenForwardAndBackwardIsNoticed(t *testing.T) {
	p := autograd.NewParam("p", values(1, 3))
	p.Grad = values(2, 3)
	loss := autograd.Sum(autograd.Mul(p.Var(), p.Var()))
	optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 1}).Step()
	defer func() {
		if s := fmt.Sprint(recover()); !strings.Contains(s, "modified in place") {
			t.Errorf("panic %q", s)
		}
	}()
	loss.Backward()
}

func Example() {
	p := autograd.NewParam("p", tensor.FromSlice([]float64{4}, 1))
	sgd := optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 0.1})
	for range 3 { // the minimum of p² is at 0
		sgd.ZeroGrad()
		autograd.Sum(autograd.Mul(p.Var(), p.Var())).Backward()
		sgd.Step()
		fmt.Printf("%.3f\n", p.T.Item())
	}
	// Output:
	// 3.200
	// 2.560
	// 2.048
}
