package optim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// values returns the numbers that nn/testdata/record.py calls values(seed, 1, n).
func values(seed, n int) *tensor.Tensor {
	t := tensor.New(tensor.Float64, n)
	for i, d := 0, tensor.Data[float64](t); i < n; i++ {
		d[i] = float64((i*7919+seed*104729)%1009)/504.5 - 1
	}
	return t
}

// recorded are runs of torch.optim.SGD.
func recorded(t *testing.T) (cases []struct {
	Options struct {
		Momentum, Dampening float64
		WeightDecay         float64 `json:"weight_decay"`
		Nesterov            bool
	}
	Steps [][]float64
}) {
	b, err := os.ReadFile("testdata/sgd.json")
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	return cases
}

func TestStepsAreThoseOfPyTorch(t *testing.T) {
	for _, c := range recorded(t) {
		for dt, tolerance := range map[tensor.DType]float64{tensor.Float64: 1e-14, tensor.Float32: 1e-6} {
			for _, atomic := range []bool{false, true} {
				t.Run(fmt.Sprintf("%+v %v atomic %v", c.Options, dt, atomic), func(t *testing.T) {
					p := autograd.NewParam("p", values(1, 7).To(dt))
					sgd := optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 0.1, Momentum: c.Options.Momentum,
						Dampening: c.Options.Dampening, WeightDecay: c.Options.WeightDecay, Nesterov: c.Options.Nesterov, Atomic: atomic})
					for k, want := range c.Steps {
						p.Grad = values(k+2, 7).To(dt)
						sgd.Step()
						got := tensor.Data[float64](p.T.To(tensor.Float64))
						if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance }) {
							t.Fatalf("step %d: %v, want %v", k+1, got, want)
						}
					}
				})
			}
		}
	}
}

func TestAtomicStepsOfManyAreAllTaken(t *testing.T) {
	const goroutines, steps = 4, 500
	shared := tensor.New(tensor.Float32, 3)
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() { // each has a Param of its own, as a process has
			p := autograd.NewParam("p", shared.View(3))
			p.Grad = tensor.Ones(tensor.Float32, 3)
			sgd := optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 1, Atomic: true})
			for range steps {
				sgd.Step()
			}
		})
	}
	all.Wait()
	if want := tensor.Full(tensor.Float32, -goroutines*steps, 3); !tensor.Equal(shared, want) {
		t.Errorf("%v, want %v", shared, want)
	}
}

func TestParametersWithoutAGradientAndFrozenOnesStay(t *testing.T) {
	without, frozen, moved := autograd.NewParam("a", values(1, 3)), autograd.NewParam("b", values(1, 3)), autograd.NewParam("c", values(1, 3))
	frozen.Grad, moved.Grad = values(2, 3), values(2, 3)
	frozen.Frozen = true
	sgd := optim.NewSGD(slices.Values([]*autograd.Param{without, frozen, moved}), optim.SGDOptions{LR: 1, Momentum: 0.9})
	sgd.Step()
	if !tensor.Equal(without.T, values(1, 3)) || !tensor.Equal(frozen.T, values(1, 3)) || tensor.Equal(moved.T, values(1, 3)) {
		t.Error(without.T, frozen.T, moved.T)
	}
	sgd.ZeroGrad()
	if without.Grad != nil || !tensor.Equal(moved.Grad, tensor.New(tensor.Float64, 3)) {
		t.Error("after ZeroGrad:", without.Grad, moved.Grad)
	}
}

func TestAStepBetweenForwardAndBackwardIsNoticed(t *testing.T) {
	p := autograd.NewParam("p", values(1, 3))
	p.Grad = values(2, 3)
	loss := autograd.Sum(autograd.Mul(p.Var(), p.Var()))
	optim.NewSGD(slices.Values([]*autograd.Param{p}), optim.SGDOptions{LR: 1}).Step()
	defer func() {
		if s, _ := recover().(string); !strings.Contains(s, "changed in place") {
			t.Errorf("panic %q", s)
		}
	}()
	loss.Backward()
}

func TestOptionsThatMakeNoSensePanic(t *testing.T) {
	for _, o := range []optim.SGDOptions{{LR: -1}, {LR: math.NaN()}, {Momentum: -1}, {WeightDecay: -1}, {Nesterov: true}, {Nesterov: true, Momentum: 1, Dampening: 1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was accepted", o)
				}
			}()
			optim.NewSGD(slices.Values([]*autograd.Param(nil)), o)
		}()
	}
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
