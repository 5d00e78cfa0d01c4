package optim_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// descend takes three steps down the parabola of p², from 1.
func descend(make func(params func(yield func(*autograd.Param) bool)) optim.Optimizer) {
	p := autograd.NewParam("p", tensor.Ones(tensor.Float64, 1))
	opt := make(slices.Values([]*autograd.Param{p}))
	for range 3 {
		opt.ZeroGrad()
		autograd.Mul(p.Var(), p.Var()).Backward()
		opt.Step()
		fmt.Printf("%.3f ", p.T.Item())
	}
}

// show prints the learning rates of the first epochs.
func show(s optim.Schedule, epochs int) {
	for epoch := range epochs {
		fmt.Printf("%.3g ", optim.LR(s, epoch))
	}
}

func ExampleSGD() {
	descend(func(params func(yield func(*autograd.Param) bool)) optim.Optimizer {
		return optim.NewSGD(params, optim.SGDOptions{LR: 0.1, Momentum: 0.5})
	})
	// Output: 0.800 0.540 0.302
}

func ExampleAdam() {
	descend(func(params func(yield func(*autograd.Param) bool)) optim.Optimizer {
		return optim.NewAdam(params, optim.AdamOptions{LR: 0.1})
	})
	// Output: 0.900 0.800 0.702
}

// Weight decay takes a share of the parameter itself, apart from the step.
func ExampleNewAdamW() {
	descend(func(params func(yield func(*autograd.Param) bool)) optim.Optimizer {
		return optim.NewAdamW(params, optim.AdamOptions{LR: 0.1, WeightDecay: 0.5})
	})
	// Output: 0.850 0.708 0.575
}

func ExampleRMSprop() {
	descend(func(params func(yield func(*autograd.Param) bool)) optim.Optimizer {
		return optim.NewRMSprop(params, optim.RMSpropOptions{LR: 0.1, Alpha: new(0.9)})
	})
	// Output: 0.684 0.499 0.369
}

func ExampleAdagrad() {
	descend(func(params func(yield func(*autograd.Param) bool)) optim.Optimizer {
		return optim.NewAdagrad(params, optim.AdagradOptions{LR: 0.1})
	})
	// Output: 0.900 0.833 0.780
}

// PyTorch's load_state_dict takes what State has written, and Load what PyTorch's state_dict has.
func ExampleState() {
	p := autograd.NewParam("p", tensor.Ones(tensor.Float64, 1))
	p.Grad = tensor.Ones(tensor.Float64, 1)
	params := slices.Values([]*autograd.Param{p})
	adam := optim.NewAdam(params, optim.AdamOptions{LR: 0.1})
	adam.Step()

	path := filepath.Join(os.TempDir(), fmt.Sprintf("opt%d.pt", os.Getpid()))
	defer os.Remove(path)
	if err := pt.Save(path, optim.State(adam)); err != nil {
		panic(err)
	}
	state, err := pt.Load(path, pt.Options{})
	if err != nil {
		panic(err)
	}
	resumed := optim.NewAdam(params, optim.AdamOptions{}) // the learning rate is in the state as well
	fmt.Println(optim.Load(resumed, state), resumed.LR, optim.State(resumed).State[0]["step"])
	// Output: <nil> 0.1 tensor(1.)
}

// PyTorch's optimizers of parameter groups are Groups here.
func ExampleStateDict() {
	g := tensor.NewGenerator(1)
	groups := optim.Groups{
		optim.NewSGD(nn.Params(nn.NewLinear(4, 3, g)), optim.SGDOptions{LR: 0.1}),
		optim.NewSGD(nn.Params(nn.NewLinear(3, 2, g)), optim.SGDOptions{LR: 0.01}),
	}
	var d optim.StateDict = optim.State(groups)
	for _, group := range d.ParamGroups {
		fmt.Println(group["lr"], group["params"])
	}
	// Output:
	// 0.1 [0 1]
	// 0.01 [2 3]
}

func ExampleLoadSchedule() {
	state := optim.ScheduleState(4, optim.StepLR{LR: 0.1, Size: 3, Gamma: 0.1}) // as scheduler.state_dict() in PyTorch
	schedules, epoch, err := optim.LoadSchedule(optim.StepLR{}, state)
	fmt.Println(schedules, epoch, err)
	// Output: [{0.1 3 0.1}] 4 <nil>
}

func ExampleStepLR() {
	show(optim.StepLR{LR: 1, Size: 2, Gamma: 0.5}, 6)
	// Output: 1 1 0.5 0.5 0.25 0.25
}

func ExampleMultiStepLR() {
	show(optim.MultiStepLR{LR: 1, Milestones: []int{1, 4}, Gamma: 0.5}, 6)
	// Output: 1 0.5 0.5 0.5 0.25 0.25
}

func ExampleExponentialLR() {
	show(optim.ExponentialLR{LR: 1, Gamma: 0.5}, 4)
	// Output: 1 0.5 0.25 0.125
}

func ExampleConstantLR() {
	show(optim.ConstantLR{LR: 1, Factor: 0.25, Epochs: 2}, 4)
	// Output: 0.25 0.25 1 1
}

func ExampleLinearLR() {
	show(optim.LinearLR{LR: 1, Start: 0.25, End: 1, Epochs: 3}, 5)
	// Output: 0.25 0.5 0.75 1 1
}

func ExamplePolynomialLR() {
	show(optim.PolynomialLR{LR: 1, Epochs: 4, Power: 2}, 6)
	// Output: 1 0.562 0.25 0.0625 0 0
}

func ExampleCosineAnnealing() {
	show(optim.CosineAnnealing{LR: 1, Epochs: 4, Min: 0.2}, 5)
	// Output: 1 0.883 0.6 0.317 0.2
}

func ExampleCosineAnnealingWarmRestarts() {
	show(optim.CosineAnnealingWarmRestarts{LR: 1, Epochs: 2, Mult: 2}, 7)
	// Output: 1 0.5 1 0.854 0.5 0.146 1
}

// It is asked at each step.
func ExampleOneCycleLR() {
	show(optim.OneCycleLR{MaxLR: 1, Steps: 10}, 10)
	// Output: 0.04 0.52 1 0.95 0.812 0.611 0.389 0.188 0.0495 4e-06
}

// Follow cycles the momentum as well, against the rate.
func ExampleFollow() {
	sgd := optim.NewSGD(slices.Values([]*autograd.Param{autograd.NewParam("p", tensor.Ones(tensor.Float32, 1))}),
		optim.SGDOptions{Momentum: 0.9})
	for step := range 5 {
		optim.Follow(sgd, step, optim.CyclicLR{LR: 0.1, MaxLR: 0.5, Up: 2, CycleMomentum: true})
		fmt.Printf("%.2f %.2f, ", sgd.LR, sgd.Momentum)
	}
	// Output: 0.10 0.90, 0.30 0.85, 0.50 0.80, 0.30 0.85, 0.10 0.90,
}

func ExampleCyclicLR() {
	show(optim.CyclicLR{LR: 0.25, MaxLR: 1, Up: 3, Halve: true}, 10)
	// Output: 0.25 0.5 0.75 1 0.75 0.5 0.25 0.375 0.5 0.625
}

func ExampleLambdaLR() {
	show(optim.LambdaLR{LR: 1, Factor: func(epoch int) float64 { return 1 / float64(1+epoch) }}, 4)
	// Output: 1 0.5 0.333 0.25
}

func ExampleGroups() {
	g := tensor.NewGenerator(1)
	backbone, head := nn.NewLinear(4, 3, g), nn.NewLinear(3, 2, g)
	opt := optim.Groups{
		optim.NewAdamW(nn.Params(backbone), optim.AdamOptions{LR: 1e-5, WeightDecay: 0.01}),
		optim.NewSGD(nn.Params(head), optim.SGDOptions{LR: 0.1, Momentum: 0.9}),
	}
	opt.ZeroGrad()
	opt.Step()
	fmt.Println(len(opt))
	// Output: 2
}

func ExampleSequentialLR() {
	warm := optim.SequentialLR{
		Schedules: []optim.Schedule{
			optim.LinearLR{LR: 1, Start: 0.25, End: 1, Epochs: 3},
			optim.CosineAnnealing{LR: 1, Epochs: 4},
		},
		Milestones: []int{3},
	}
	for epoch := range 8 {
		fmt.Printf("%.2f ", optim.LR(warm, epoch))
	}
	// Output: 0.25 0.50 0.75 1.00 0.85 0.50 0.15 0.00
}

func ExampleReduceLROnPlateau() {
	plateau := &optim.ReduceLROnPlateau{LR: 0.1, Patience: new(1)}
	for _, loss := range []float64{1, 0.5, 0.5, 0.5, 0.4} {
		fmt.Printf("%.3g ", plateau.Step(loss))
	}
	// Output: 0.1 0.1 0.1 0.01 0.01
}

// Options that are nil have PyTorch's defaults; one that is 0 is 0.
func ExampleAdamOptions() {
	p := autograd.NewParam("p", tensor.Ones(tensor.Float64, 1))
	opt := optim.NewAdam(slices.Values([]*autograd.Param{p}),
		optim.AdamOptions{LR: 0.1, Betas: &[2]float64{0, 0.999}, Eps: new(0.0)})
	group := optim.State(opt).ParamGroups[0]
	fmt.Println(group["betas"], group["eps"])
	opt.LR = 0.01 // as a schedule does
	// Output: [0 0.999] 0
}
