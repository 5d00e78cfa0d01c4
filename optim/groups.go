package optim

// Groups are several optimizers that step together, like PyTorch's parameter groups. Each optimizer
// has its own parameters and options, and may be of a different class.
//
//	opt := optim.Groups{
//		optim.NewAdamW(nn.Params(backbone), optim.AdamOptions{LR: 1e-5, WeightDecay: 0.01}),
//		optim.NewAdamW(nn.Params(head), optim.AdamOptions{LR: 1e-3, WeightDecay: 0.01}),
//	}
type Groups []Optimizer

// ZeroGrad sets the gradients of all optimizers to zeros.
func (g Groups) ZeroGrad() {
	for _, o := range g {
		o.ZeroGrad()
	}
}

// Step takes one step of each optimizer, in order.
func (g Groups) Step() {
	for _, o := range g {
		o.Step()
	}
}
