package hogwild

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

// Net is the network of the PyTorch example: two convolutions and two linear layers with 21,840
// parameters. Once it is shared, processes that receive it use the same parameters.
type Net struct {
	Conv1, Conv2 *nn.Conv2d
	Conv2Drop    *nn.Dropout2d
	FC1, FC2     *nn.Linear
	Drop         *nn.Dropout
}

// newNet returns a network in training mode, initialized as in PyTorch from the given seed.
func newNet(seed uint64) *Net {
	g := tensor.NewGenerator(seed)
	return &Net{
		Conv1: nn.NewConv2d(1, 10, 5, g), Conv2: nn.NewConv2d(10, 20, 5, g), Conv2Drop: &nn.Dropout2d{P: 0.5},
		FC1: nn.NewLinear(320, 50, g), FC2: nn.NewLinear(50, 10, g), Drop: &nn.Dropout{P: 0.5},
	}
}

// Forward returns the log-probabilities of the ten digits, of shape (N, 10), for images x of shape
// (N, 1, 28, 28).
func (n *Net) Forward(x *autograd.Var) *autograd.Var {
	two := autograd.Window{Size: [2]int{2, 2}}
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv1.Forward(x), two))                      // (N, 10, 12, 12)
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv2Drop.Forward(n.Conv2.Forward(x)), two)) // (N, 20, 4, 4)
	x = autograd.ReLU(n.FC1.Forward(autograd.Flatten(x)))
	return autograd.LogSoftmax(n.FC2.Forward(n.Drop.Forward(x)), -1)
}
