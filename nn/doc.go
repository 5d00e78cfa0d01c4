// Package nn provides the layers and losses of torch.nn, and functions for whole networks:
// parameters, state dicts, files and devices.
//
//	type Net struct{ Hidden, Out *nn.Linear }
//
//	func (n *Net) Forward(x *autograd.Var) *autograd.Var {
//		return n.Out.Forward(autograd.ReLU(n.Hidden.Forward(x)))
//	}
//
//	func run(ctx context.Context) error {
//		g := tensor.NewGenerator(1)
//		net := &Net{nn.NewLinear(784, 64, g), nn.NewLinear(64, 10, g)}
//		sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01})
//		x := autograd.Const(tensor.Ones(tensor.Float32, 1, 784))
//		autograd.Sum(net.Forward(x)).Backward()
//		sgd.Step()
//		return nn.SaveFile(net, "net.safetensors")
//	}
//
// Start with [NewLinear], [Params] and [SaveFile].
//
// A network is a struct of layers with a method that computes its output. Layers are plain structs
// with exported fields. A network can therefore be sent to other processes, which then train the
// same parameters.
//
// Nothing has to be registered: [Params] and [State] find the parameters by reflection in exported
// fields. Layers must be used by pointer; a [Func], such as [ReLU], is a value. Parameters are
// Float32 and are initialised as in PyTorch. State uses PyTorch's names: hidden.weight, out.bias. A
// *tensor.Tensor field is a buffer: it is part of the state and is sent with the module, but it is
// not trained.
//
// In evaluation mode several goroutines may call Forward of one module concurrently. In training
// mode only one goroutine may, because BatchNorm2d updates its running statistics and because
// goroutines would draw from the generator of a Dropout in no fixed order.
//
// # The trap
//
// A network that was sent is shared memory: a receiver that calls [Load] changes it for all
// processes. To change only its own copy, the receiver must [Clone] the network first. The mode of
// a layer is one of its fields and is sent with it. Call [Eval] before testing, and [Train] before
// training resumes.
package nn
