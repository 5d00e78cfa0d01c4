// Package nn has the parts of neural networks: layers, losses, and what is done with a network as a
// whole.
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
// Nothing is registered: [Params] and [State] find the parameters in the fields. Layers are used by
// pointer; a [Func], such as [ReLU], is a value. Parameters are float32 and start as PyTorch's do.
// [State] names them as PyTorch does: hidden.weight, out.bias. *tensor.Tensor fields are buffers,
// which are in the state and travel, but are not trained.
//
// Any number of goroutines may call Forward of one module after [Eval]. In training they may not:
// BatchNorm2d changes its statistics, and Dropout draws from one generator, so that which goroutine
// gets which numbers is up to the scheduler.
//
// # The trap
//
// A network that was sent is shared: a receiver that calls [Load] changes it for all. [Clone]
// first. Whether layers drop is a field of theirs and travels as it is: call [Eval] before testing,
// and [Train] again before going on.
package nn
