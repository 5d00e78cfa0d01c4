package autograd

import "github.com/shoal-mp/shoal/tensor"

// SetWorkspace sets how many bytes a convolution on a device may take, and returns how many it
// might before.
func SetWorkspace(n int) (before int) {
	before, workspace = workspace, n
	return before
}

// Once is an operation without a rule for CreateGraph.
func Once(x *Var) *Var {
	return recordUnary("Once", x, x.t.Clone(), nil, func(dy *tensor.Tensor) *tensor.Tensor { return dy })
}
