// Package nn has the layers and losses of torch.nn, and functions for whole networks: parameters,
// state dicts, files and devices.
//
// A network is a struct of layers with a method that computes. Layers are plain structs with
// exported fields, so a network can be sent to other processes, which then train the same
// parameters:
//
//	type Net struct{ Hidden, Out *nn.Linear }
//
//	func (n *Net) Forward(x *autograd.Var) *autograd.Var {
//		return autograd.LogSoftmax(n.Out.Forward(autograd.ReLU(n.Hidden.Forward(x))), -1)
//	}
//
// A network registers nothing: [Params] and [State] find the parameters in the fields. Layers are
// used by pointer; a [Func], such as [ReLU], is a value. Parameters are Float32 and are initialised
// as PyTorch's. State names them as PyTorch does: hidden.weight, out.bias. A *tensor.Tensor field
// is a buffer, which is in the state and travels, and is not trained.
//
// After Eval several goroutines may call Forward of one module at once. In training only one may,
// since BatchNorm2d changes its statistics, and goroutines would draw from the generator of a
// Dropout in no fixed order.
//
// # The trap
//
// A network that was sent is shared: a receiver that calls Load changes it for all processes. Clone
// it first. The mode of a layer is one of its fields and travels with it. Call Eval before testing,
// and Train before training goes on.
package nn
