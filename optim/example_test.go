package optim_test

import (
	"fmt"

	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

func ExampleGroups() {
	g := tensor.NewGenerator(1)
	backbone, head := nn.NewLinear(4, 3, g), nn.NewLinear(3, 2, g)
	opt := optim.Groups{
		optim.NewAdamW(backbone.Params(), optim.AdamOptions{LR: 1e-5, WeightDecay: 0.01}),
		optim.NewSGD(head.Params(), optim.SGDOptions{LR: 0.1, Momentum: 0.9}),
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
		fmt.Printf("%.2f ", warm.At(epoch))
	}
	// Output: 0.25 0.50 0.75 1.00 0.85 0.50 0.15 0.00
}

func ExampleReduceLROnPlateau() {
	plateau := &optim.ReduceLROnPlateau{LR: 0.1, Patience: 1}
	for _, loss := range []float64{1, 0.5, 0.5, 0.5, 0.4} {
		fmt.Printf("%.3g ", plateau.Step(loss))
	}
	// Output: 0.1 0.1 0.1 0.01 0.01
}
