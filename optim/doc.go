// Package optim provides the optimizers and learning rate schedules of torch.optim.
//
//	net := nn.NewLinear(2, 1, tensor.NewGenerator(1))
//	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{Momentum: 0.5})
//	x := autograd.Const(tensor.FromSlice([]float32{1, 2, 3, 4}, 2, 2))
//	y := tensor.FromSlice([]float32{5, 6}, 2, 1)
//	for epoch := range 100 {
//		optim.Follow(sgd, epoch, optim.StepLR{LR: 0.01, Size: 30, Gamma: 0.1})
//		sgd.ZeroGrad()
//		nn.MSELoss{}.Of(net.Forward(x), y).Backward()
//		sgd.Step()
//	}
//
// Start with [NewSGD], [NewAdamW] and [Follow].
//
// # The trap
//
// Gradients accumulate until ZeroGrad, which must be called before each backward pass. A parameter
// with a zero gradient still moves by its momentum and weight decay. To keep it in place, freeze
// it: see [autograd.Param.Frozen].
//
// # Schedules
//
// A [Schedule] computes the learning rate of an epoch. A program should call [Follow] at the
// beginning of each epoch, or of each step. Follow sets the learning rate, and the momentum if the
// schedule cycles it.
//
// # Note [Hogwild]
//
// Several processes may train one set of parameters, as in Hogwild! (Niu et al., 2011,
// https://arxiv.org/abs/1106.5730). Each process then reads and writes the parameters as plain
// numbers without a lock. This is the only intentional data race of this project. It has two
// consequences. If two processes add to an element at the same time, one of the two steps is lost.
// And a process may compute a gradient from parameters of different ages. Training tolerates both,
// because a lost step is one of thousands in a similar direction. Torn reads do not occur: an
// element is an aligned word of 4 or 8 bytes. Each process has its own gradients and, unless Share
// was called, its own momentum.
//
// The race detector does not see such races, because it only observes the memory of its own
// process. Goroutines must not train one tensor concurrently, since that is a data race in Go: use
// processes. If no step may be lost, set the option Atomic. Each element is then added atomically,
// which takes several times as long.
//
// # Note [Shared state]
//
// An optimizer is sent to other processes as its options and references to its parameters. If one
// message contains an optimizer and its module, the receiver's copies share their Params as well.
//
// The state of an optimizer consists of momentum, moments and the number of steps. By default it is
// not sent, and the receiver starts without state. After Share the state is sent too, and all
// processes update the same state, like the shared RMSprop and Adam of A3C (Mnih et al., 2016,
// https://arxiv.org/abs/1602.01783). Steps are counted atomically, so each step has a unique number
// and the right bias correction. Momentum, moments and mean squares are plain words, even with
// Atomic, because no instruction multiplies and adds atomically. If two processes update one of
// them at the same time, one update is lost, which hardly matters in an average over a thousand
// gradients. Atomic only guarantees that each computed step is added to the parameters completely.
//
// # State dicts
//
// [State] and [Load] correspond to PyTorch's state_dict and load_state_dict and use the same
// values. A training run can therefore move from PyTorch to Go and back. [ScheduleState] and
// [LoadSchedule] do the same for schedulers.
//
// Close of an optimizer closes its state. The parameters must be closed by the module.
package optim
