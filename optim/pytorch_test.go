package optim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// recordings are what PyTorch's optimizers did.
type recordings struct {
	Steps []struct {
		Kind    string
		Options recordedOptions
		Steps   [][]float64
	}
	Schedules []struct {
		Kind             string
		Arguments, Rates []float64
	}
	Clips []struct {
		Limit, Norm float64
		Gradients   []float64
	}
}

type recordedOptions struct {
	Momentum, Dampening, Eps float64
	Alpha                    *float64
	WeightDecay              *float64 `json:"weight_decay"`
	Nesterov, Centered       bool
	Betas                    []float64
}

// given is a number that was recorded, as an option.
func given(v float64) float64 {
	if v == 0 {
		return optim.Zero
	}
	return v
}

// decay returns the weight decay, of which PyTorch's optimizers have different defaults.
func (o recordedOptions) decay(otherwise float64) float64 {
	if o.WeightDecay == nil {
		return otherwise
	}
	return *o.WeightDecay
}

func (o recordedOptions) make(kind string, p *autograd.Param, atomic bool) optim.Optimizer {
	params := slices.Values([]*autograd.Param{p})
	adam := optim.AdamOptions{LR: 0.1, Eps: o.Eps, WeightDecay: o.decay(0), Atomic: atomic}
	if o.Betas != nil {
		adam.Beta1, adam.Beta2 = given(o.Betas[0]), given(o.Betas[1])
	}
	switch kind {
	case "sgd":
		return optim.NewSGD(params, optim.SGDOptions{LR: 0.1, Momentum: o.Momentum, Dampening: o.Dampening, WeightDecay: o.decay(0), Nesterov: o.Nesterov, Atomic: atomic})
	case "adam":
		return optim.NewAdam(params, adam)
	case "adamw":
		adam.WeightDecay = o.decay(0.01)
		return optim.NewAdamW(params, adam)
	case "rmsprop":
		alpha := 0.0
		if o.Alpha != nil {
			alpha = given(*o.Alpha)
		}
		return optim.NewRMSprop(params, optim.RMSpropOptions{LR: 0.1, Alpha: alpha, Eps: o.Eps, WeightDecay: o.decay(0), Momentum: o.Momentum, Centered: o.Centered, Atomic: atomic})
	}
	panic(kind)
}

func recorded(t *testing.T) (r recordings) {
	b, err := os.ReadFile("testdata/optimizers.json")
	check(t, err)
	check(t, json.Unmarshal(b, &r))
	if len(r.Steps) == 0 || len(r.Schedules) == 0 || len(r.Clips) == 0 {
		t.Fatal("nothing is recorded")
	}
	return r
}

func near(got, want []float64, tolerance float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance })
}

func TestStepsAreThoseOfPyTorch(t *testing.T) {
	for _, c := range recorded(t).Steps {
		for dt, tolerance := range map[tensor.DType]float64{tensor.Float64: 1e-13, tensor.Float32: 2e-6} {
			for _, atomic := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %+v %v atomic %v", c.Kind, c.Options, dt, atomic), func(t *testing.T) {
					p := autograd.NewParam("p", values(1, 7).To(dt))
					o := c.Options.make(c.Kind, p, atomic)
					for k, want := range c.Steps {
						p.Grad = values(k+2, 7).To(dt)
						o.Step()
						if got := tensor.Data[float64](p.T.To(tensor.Float64)); !near(got, want, tolerance) {
							t.Fatalf("step %d: %v, want %v", k+1, got, want)
						}
					}
				})
			}
		}
	}
}

func TestSchedulesAreThoseOfPyTorch(t *testing.T) {
	for _, c := range recorded(t).Schedules {
		var s optim.Schedule = optim.StepLR{LR: 0.5, Size: int(c.Arguments[0]), Gamma: c.Arguments[1]}
		if c.Kind == "CosineAnnealing" {
			s = optim.CosineAnnealing{LR: 0.5, Epochs: int(c.Arguments[0]), Min: c.Arguments[1]}
		}
		for epoch, want := range c.Rates {
			if got := s.At(epoch); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, epoch %d: %v, want %v", c.Kind, epoch, got, want)
			}
		}
	}
}

func TestGradientsAreClippedAsInPyTorch(t *testing.T) {
	for _, c := range recorded(t).Clips {
		a, b, none := autograd.NewParam("a", values(1, 7)), autograd.NewParam("b", values(2, 3)), autograd.NewParam("c", values(3, 2))
		a.Grad, b.Grad = values(4, 7), values(5, 3)
		norm := optim.ClipGradNorm(slices.Values([]*autograd.Param{a, b, none}), c.Limit)
		got := slices.Concat(tensor.Data[float64](a.Grad), tensor.Data[float64](b.Grad))
		if math.Abs(norm-c.Norm) > 1e-12 || !near(got, c.Gradients, 1e-12) {
			t.Errorf("to %v: norm %v, want %v; %v, want %v", c.Limit, norm, c.Norm, got, c.Gradients)
		}
	}
}

func TestOptionsThatMakeNoSensePanic(t *testing.T) {
	none := slices.Values([]*autograd.Param(nil))
	for name, f := range map[string]func(){
		"sgd rate":       func() { optim.NewSGD(none, optim.SGDOptions{LR: -1}) },
		"sgd NaN":        func() { optim.NewSGD(none, optim.SGDOptions{LR: math.NaN()}) },
		"sgd momentum":   func() { optim.NewSGD(none, optim.SGDOptions{Momentum: -1}) },
		"sgd decay":      func() { optim.NewSGD(none, optim.SGDOptions{WeightDecay: -1}) },
		"nesterov":       func() { optim.NewSGD(none, optim.SGDOptions{Nesterov: true}) },
		"nesterov damp":  func() { optim.NewSGD(none, optim.SGDOptions{Nesterov: true, Momentum: 1, Dampening: 1}) },
		"adam rate":      func() { optim.NewAdam(none, optim.AdamOptions{LR: -1}) },
		"adam beta":      func() { optim.NewAdam(none, optim.AdamOptions{Beta1: 1}) },
		"adam eps":       func() { optim.NewAdam(none, optim.AdamOptions{Eps: -1}) },
		"adam decay":     func() { optim.NewAdam(none, optim.AdamOptions{WeightDecay: -1}) },
		"rmsprop rate":   func() { optim.NewRMSprop(none, optim.RMSpropOptions{LR: -1}) },
		"rmsprop alpha":  func() { optim.NewRMSprop(none, optim.RMSpropOptions{Alpha: 2}) },
		"rmsprop moment": func() { optim.NewRMSprop(none, optim.RMSpropOptions{Momentum: -1}) },
		"clip":           func() { optim.ClipGradNorm(none, -1) },
		"step of none":   func() { optim.StepLR{}.At(1) },
		"cosine of none": func() { optim.CosineAnnealing{}.At(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			f()
		}()
	}
}

func TestAStepAllocatesNothing(t *testing.T) {
	p := autograd.NewParam("p", values(1, 100))
	p.Grad = values(2, 100)
	for _, kind := range []string{"sgd", "adam", "rmsprop"} {
		o := recordedOptions{Momentum: 0.5}.make(kind, p, kind == "adam")
		o.Step()
		if n := testing.AllocsPerRun(100, o.Step); n > 0 {
			t.Errorf("a step of %s allocates %v times", kind, n)
		}
	}
}
