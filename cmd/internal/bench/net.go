package bench

import (
	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/optim"
	"github.com/shoal-mp/shoal/tensor"
)

// A digitNet is the network of PyTorch's MNIST Hogwild example.
type digitNet struct {
	Conv1, Conv2 *nn.Conv2d
	Conv2Drop    *nn.Dropout2d
	FC1, FC2     *nn.Linear
	Drop         *nn.Dropout
}

func newDigitNet() *digitNet {
	g := tensor.NewGenerator(1)
	return &digitNet{
		Conv1: nn.NewConv2d(1, 10, 5, g), Conv2: nn.NewConv2d(10, 20, 5, g), Conv2Drop: &nn.Dropout2d{P: 0.5},
		FC1: nn.NewLinear(320, 50, g), FC2: nn.NewLinear(50, 10, g), Drop: &nn.Dropout{P: 0.5},
	}
}

func (n *digitNet) Forward(x *autograd.Var) *autograd.Var {
	two := autograd.Window{Size: [2]int{2, 2}}
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv1.Forward(x), two))
	x = autograd.ReLU(autograd.MaxPool2d(n.Conv2Drop.Forward(n.Conv2.Forward(x)), two))
	x = autograd.ReLU(n.FC1.Forward(autograd.Flatten(x)))
	return autograd.LogSoftmax(n.FC2.Forward(n.Drop.Forward(x)), -1)
}

// newPerceptron returns a network of linear layers for images of 28×28 pixels in 10 classes.
func newPerceptron() *nn.Sequential {
	g := tensor.NewGenerator(1)
	return nn.NewSequential(nn.Flatten, nn.NewLinear(28*28, 512, g), nn.ReLU, nn.NewLinear(512, 512, g), nn.ReLU,
		nn.NewLinear(512, 10, g), nn.LogSoftmax)
}

// A trainer trains a network on batches that are prepared in advance, so that only the network is
// measured.
type trainer struct {
	net            nn.Layer
	images, labels []*tensor.Tensor // by batch
	scope          *autograd.Scope
	sgd            *optim.SGD
	steps          int
}

// poolBatches is the number of distinct batches.
const poolBatches = 32

func newTrainer(net nn.Layer) *trainer {
	t := &trainer{net: net, scope: autograd.NewScope(),
		sgd: optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01, Momentum: 0.5})}
	g := tensor.NewGenerator(2)
	for range poolBatches {
		t.images = append(t.images, tensor.RandN(tensor.Float32, g, batch, 1, 28, 28))
		t.labels = append(t.labels, tensor.RandInt(g, 0, 10, batch))
	}
	return t
}

// runSteps performs n steps.
func (t *trainer) runSteps(n int) {
	for range n {
		t.computeGradients()
		t.runStep()
	}
}

// computeGradients computes the gradients for the next batch.
func (t *trainer) computeGradients() {
	i := t.steps % poolBatches
	t.steps++
	t.sgd.ZeroGrad()
	nn.NLLLoss{}.Of(t.net.Forward(t.scope.Const(t.images[i])), t.labels[i]).Backward()
}

func (t *trainer) runStep() {
	t.sgd.Step()
	t.scope.Reset()
}
