package optim_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// recordings are what PyTorch's optimizers did.
type recordings struct {
	Steps []struct {
		Kind    string
		Options recordedOptions
		Steps   [][]float64
	}
	Schedules []struct {
		Kind      string
		Arguments scheduleArguments
		Rates     []float64
		Momenta   []float64
	}
	Plateaus []struct {
		Options struct {
			Mode              string
			Factor, Threshold *float64
			Patience          *int
			Cooldown          int
			MinLR             float64 `json:"min_lr"`
			ThresholdMode     string  `json:"threshold_mode"`
		}
		Measures []*float64 // nil is NaN
		Rates    []float64
	}
	Clips []struct {
		Limit, Norm float64
		Gradients   []float64
	}
}

type recordedOptions struct {
	Momentum, Dampening float64
	Alpha, Eps          *float64
	WeightDecay         *float64 `json:"weight_decay"`
	Nesterov, Centered  bool
	Maximize, AMSGrad   bool
	Betas               *[2]float64
	LRDecay             float64 `json:"lr_decay"`
	InitialAccumulator  float64 `json:"initial_accumulator_value"`
}

// scheduleArguments are those of all schedules.
type scheduleArguments struct {
	StepSize       int `json:"step_size"`
	Gamma          float64
	TMax           int     `json:"T_max"`
	EtaMin         float64 `json:"eta_min"`
	Milestones     []int
	Factor         float64
	TotalIters     int     `json:"total_iters"`
	StartFactor    float64 `json:"start_factor"`
	EndFactor      float64 `json:"end_factor"`
	Power          float64
	T0             int      `json:"T_0"`
	TMult          int      `json:"T_mult"`
	MaxLR          float64  `json:"max_lr"`
	TotalSteps     int      `json:"total_steps"`
	PctStart       *float64 `json:"pct_start"`
	DivFactor      float64  `json:"div_factor"`
	FinalDivFactor float64  `json:"final_div_factor"`
	AnnealStrategy string   `json:"anneal_strategy"`
	ThreePhase     bool     `json:"three_phase"`
	BaseLR         float64  `json:"base_lr"`
	StepSizeUp     int      `json:"step_size_up"`
	StepSizeDown   int      `json:"step_size_down"`
	Mode           string
	CycleMomentum  *bool    `json:"cycle_momentum"` // nil: true
	BaseMomentum   *float64 `json:"base_momentum"`
	MaxMomentum    *float64 `json:"max_momentum"`
}

func (a scheduleArguments) make(kind string) optim.Schedule {
	const lr = 0.5
	cycles := a.CycleMomentum == nil || *a.CycleMomentum
	switch kind {
	case "StepLR":
		return optim.StepLR{LR: lr, Size: a.StepSize, Gamma: a.Gamma}
	case "MultiStepLR":
		return optim.MultiStepLR{LR: lr, Milestones: a.Milestones, Gamma: a.Gamma}
	case "ExponentialLR":
		return optim.ExponentialLR{LR: lr, Gamma: a.Gamma}
	case "ConstantLR":
		return optim.ConstantLR{LR: lr, Factor: a.Factor, Epochs: a.TotalIters}
	case "LinearLR":
		return optim.LinearLR{LR: lr, Start: a.StartFactor, End: a.EndFactor, Epochs: a.TotalIters}
	case "PolynomialLR":
		return optim.PolynomialLR{LR: lr, Epochs: a.TotalIters, Power: a.Power}
	case "CosineAnnealing":
		return optim.CosineAnnealing{LR: lr, Epochs: a.TMax, Min: a.EtaMin}
	case "CosineAnnealingWarmRestarts":
		return optim.CosineAnnealingWarmRestarts{LR: lr, Epochs: a.T0, Mult: a.TMult, Min: a.EtaMin}
	case "OneCycleLR":
		return optim.OneCycleLR{MaxLR: a.MaxLR, Steps: a.TotalSteps, PctStart: a.PctStart, DivFactor: a.DivFactor,
			FinalDivFactor: a.FinalDivFactor, Linear: a.AnnealStrategy == "linear", ThreePhase: a.ThreePhase,
			CycleMomentum: cycles, BaseMomentum: a.BaseMomentum, MaxMomentum: a.MaxMomentum}
	case "CyclicLR":
		return optim.CyclicLR{LR: a.BaseLR, MaxLR: a.MaxLR, Up: a.StepSizeUp, Down: a.StepSizeDown,
			Halve: a.Mode == "triangular2", Gamma: unless0(a.Gamma),
			CycleMomentum: cycles, BaseMomentum: a.BaseMomentum, MaxMomentum: a.MaxMomentum}
	case "LambdaLR":
		return optim.LambdaLR{LR: lr, Factor: func(epoch int) float64 { return 1 / float64(1+epoch) }}
	case "SequentialLR":
		return optim.SequentialLR{Milestones: a.Milestones, Schedules: []optim.Schedule{
			optim.LinearLR{LR: lr, Start: 0.1, End: 1, Epochs: 4}, optim.ExponentialLR{LR: lr, Gamma: 0.5},
			optim.ConstantLR{LR: lr, Factor: 0.25, Epochs: 2}}}
	}
	panic(kind)
}

// unless0 is a number that was recorded, as an option.
func unless0(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
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
	adam := optim.AdamOptions{LR: 0.1, Betas: o.Betas, Eps: o.Eps, WeightDecay: o.decay(0), AMSGrad: o.AMSGrad,
		Maximize: o.Maximize, Atomic: atomic}
	switch kind {
	case "sgd":
		return optim.NewSGD(params, optim.SGDOptions{LR: 0.1, Momentum: o.Momentum, Dampening: o.Dampening,
			WeightDecay: o.decay(0), Nesterov: o.Nesterov, Maximize: o.Maximize, Atomic: atomic})
	case "adam":
		return optim.NewAdam(params, adam)
	case "adamw":
		adam.WeightDecay = o.decay(0.01)
		return optim.NewAdamW(params, adam)
	case "rmsprop":
		return optim.NewRMSprop(params, optim.RMSpropOptions{LR: 0.1, Alpha: o.Alpha, Eps: o.Eps,
			WeightDecay: o.decay(0), Momentum: o.Momentum, Centered: o.Centered, Maximize: o.Maximize, Atomic: atomic})
	case "adagrad":
		return optim.NewAdagrad(params, optim.AdagradOptions{LR: 0.1, LRDecay: o.LRDecay,
			WeightDecay: o.decay(0), InitialAccumulator: o.InitialAccumulator,
			Eps: o.Eps, Maximize: o.Maximize, Atomic: atomic})
	}
	panic(kind)
}

func recorded(t *testing.T) (r recordings) {
	b, err := os.ReadFile("testdata/optimizers.json")
	testutil.NoError(t, err)
	testutil.NoError(t, json.Unmarshal(b, &r))
	if len(r.Steps) == 0 || len(r.Schedules) == 0 || len(r.Clips) == 0 {
		t.Fatal("nothing is recorded")
	}
	return r
}

func near(got, want []float64, tolerance float64) bool {
	return slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) <= tolerance })
}

func TestOptimizer_StepsAsInPyTorch(t *testing.T) {
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

func TestFollow_SetsTheRatesAndMomentaOfPyTorch(t *testing.T) {
	for _, c := range recorded(t).Schedules {
		s, sgd := c.Arguments.make(c.Kind), optim.NewSGD(oneParam(), optim.SGDOptions{})
		adam := optim.NewAdam(oneParam(), optim.AdamOptions{Betas: &[2]float64{0, 0.99}})
		for epoch, want := range c.Rates {
			optim.Follow(optim.Groups{sgd, adam}, epoch, s)
			momentum := c.Momenta[epoch]
			if math.Abs(sgd.LR-want) > 1e-12 || math.Abs(sgd.Momentum-momentum) > 1e-12 {
				t.Errorf("%s %+v, epoch %d: %v and momentum %v, want %v and %v", c.Kind, c.Arguments, epoch, sgd.LR,
					sgd.Momentum, want, momentum)
			}
			if adam.LR != sgd.LR || *adam.Betas != [2]float64{sgd.Momentum, 0.99} {
				t.Errorf("%s %+v, epoch %d: Adam has %v and %v", c.Kind, c.Arguments, epoch, adam.LR, *adam.Betas)
			}
		}
	}
}

func oneParam() iter.Seq[*autograd.Param] {
	return slices.Values([]*autograd.Param{autograd.NewParam("p", values(1, 2))})
}

func TestReduceLROnPlateau_IsThatOfPyTorch(t *testing.T) {
	for i, c := range recorded(t).Plateaus {
		o := c.Options
		p := &optim.ReduceLROnPlateau{LR: 0.5, Maximize: o.Mode == "max", Factor: o.Factor,
			Threshold: o.Threshold, Absolute: o.ThresholdMode == "abs",
			Patience: o.Patience, Cooldown: o.Cooldown, MinLR: o.MinLR}
		for epoch, want := range c.Rates {
			measure := math.NaN()
			if m := c.Measures[epoch]; m != nil {
				measure = *m
			}
			if got := p.Step(measure); math.Abs(got-want) > 1e-12 {
				t.Errorf("plateau %d, epoch %d: %v, want %v", i, epoch, got, want)
			}
		}
	}
}

func TestGroups_TakeTheirStepsTogether(t *testing.T) {
	slow, fast := autograd.NewParam("slow", values(1, 7)), autograd.NewParam("fast", values(1, 7))
	groups := optim.Groups{
		optim.NewSGD(slices.Values([]*autograd.Param{slow}), optim.SGDOptions{LR: 0.1}),
		optim.NewSGD(slices.Values([]*autograd.Param{fast}), optim.SGDOptions{LR: 1}),
	}
	slow.Grad, fast.Grad = values(2, 7), values(2, 7)
	groups.Step()
	for i, at := range tensor.Data[float64](values(1, 7)) {
		little, much := at-tensor.Data[float64](slow.T)[i], at-tensor.Data[float64](fast.T)[i]
		if math.Abs(10*little-much) > 1e-12 || much == 0 {
			t.Fatalf("element %d moved by %v and %v", i, little, much)
		}
	}
	groups.ZeroGrad()
	if slow.Grad.AbsInPlace().Sum() != 0 || fast.Grad.AbsInPlace().Sum() != 0 {
		t.Fatal("gradients are left")
	}
}

func TestClipGradNorm_IsThatOfPyTorch(t *testing.T) {
	for _, c := range recorded(t).Clips {
		a, b, none := autograd.NewParam("a", values(1, 7)), autograd.NewParam("b", values(2, 3)),
			autograd.NewParam("c", values(3, 2))
		a.Grad, b.Grad = values(4, 7), values(5, 3)
		norm := optim.ClipGradNorm(slices.Values([]*autograd.Param{a, b, none}), c.Limit)
		got := slices.Concat(tensor.Data[float64](a.Grad), tensor.Data[float64](b.Grad))
		if math.Abs(norm-c.Norm) > 1e-12 || !near(got, c.Gradients, 1e-12) {
			t.Errorf("to %v: norm %v, want %v; %v, want %v", c.Limit, norm, c.Norm, got, c.Gradients)
		}
	}
}

func TestOptimizer_PanicsOfOptionsThatMakeNoSense(t *testing.T) {
	none, some := slices.Values([]*autograd.Param(nil)),
		slices.Values([]*autograd.Param{autograd.NewParam("p", values(1, 2))})
	for name, f := range map[string]func(){
		"no parameters":  func() { optim.NewSGD(none, optim.SGDOptions{LR: 1}) },
		"sgd rate":       func() { optim.NewSGD(some, optim.SGDOptions{LR: -1}) },
		"sgd NaN":        func() { optim.NewSGD(some, optim.SGDOptions{LR: math.NaN()}) },
		"sgd momentum":   func() { optim.NewSGD(some, optim.SGDOptions{Momentum: -1}) },
		"sgd decay":      func() { optim.NewSGD(some, optim.SGDOptions{WeightDecay: -1}) },
		"nesterov":       func() { optim.NewSGD(some, optim.SGDOptions{Nesterov: true}) },
		"nesterov damp":  func() { optim.NewSGD(some, optim.SGDOptions{Nesterov: true, Momentum: 1, Dampening: 1}) },
		"adam rate":      func() { optim.NewAdam(some, optim.AdamOptions{LR: -1}) },
		"adam beta":      func() { optim.NewAdam(some, optim.AdamOptions{Betas: &[2]float64{1, 0}}) },
		"adam eps":       func() { optim.NewAdam(some, optim.AdamOptions{Eps: new(-1.0)}) },
		"adam decay":     func() { optim.NewAdam(some, optim.AdamOptions{WeightDecay: -1}) },
		"rmsprop rate":   func() { optim.NewRMSprop(some, optim.RMSpropOptions{LR: -1}) },
		"rmsprop alpha":  func() { optim.NewRMSprop(some, optim.RMSpropOptions{Alpha: new(2.0)}) },
		"rmsprop moment": func() { optim.NewRMSprop(some, optim.RMSpropOptions{Momentum: -1}) },
		"adagrad rate":   func() { optim.NewAdagrad(some, optim.AdagradOptions{LR: -1}) },
		"adagrad start":  func() { optim.NewAdagrad(some, optim.AdagradOptions{InitialAccumulator: math.NaN()}) },
		"cycle of one":   func() { optim.LR(optim.OneCycleLR{MaxLR: 1, Steps: 1}, 0) },
		"cyclic":         func() { optim.LR(optim.CyclicLR{Up: 1, Down: -1}, 0) },
		"restarts":       func() { optim.LR(optim.CosineAnnealingWarmRestarts{Epochs: 1, Mult: -1}, 0) },
		"sequence":       func() { optim.LR(optim.SequentialLR{Milestones: []int{1}}, 0) },
		"plateau":        func() { (&optim.ReduceLROnPlateau{Factor: new(1.0)}).Step(0) },
		"clip":           func() { optim.ClipGradNorm(some, -1) },
		"momentum of adagrad": func() {
			optim.Follow(optim.NewAdagrad(some, optim.AdagradOptions{}), 0, optim.CyclicLR{Up: 1, CycleMomentum: true})
		},
		"schedules of groups": func() {
			one := optim.NewSGD(some, optim.SGDOptions{})
			optim.Follow(optim.Groups{one, one, one}, 0, optim.StepLR{Size: 1}, optim.StepLR{Size: 1})
		},
		"step of none":   func() { optim.LR(optim.StepLR{}, 1) },
		"cosine of none": func() { optim.LR(optim.CosineAnnealing{}, 1) },
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

func TestOptimizer_StepsWithoutAllocating(t *testing.T) {
	p := autograd.NewParam("p", values(1, 100))
	p.Grad = values(2, 100)
	for _, kind := range []string{"sgd", "adam", "rmsprop", "adagrad"} {
		o := recordedOptions{Momentum: 0.5}.make(kind, p, kind == "adam")
		o.Step()
		if n := testing.AllocsPerRun(100, o.Step); n > 0 {
			t.Errorf("a step of %s allocates %v times", kind, n)
		}
	}
}
