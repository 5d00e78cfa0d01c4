// Package optim has the optimizers and learning rate schedules of torch.optim.
//
//	sgd := optim.NewSGD(nn.Params(net), optim.SGDOptions{LR: 0.01, Momentum: 0.5})
//	for batch := range batches {
//		sgd.ZeroGrad()
//		nn.NLLLoss.Of(net.Forward(autograd.Const(batch[0])), batch[1]).Backward()
//		sgd.Step()
//	}
//
// # The trap
//
// Gradients add up until ZeroGrad. A parameter whose gradient is zero still moves by its momentum
// and weight decay. To keep it in place, freeze it (autograd.Param.Frozen).
//
// # Schedules
//
// A Schedule says the learning rate of an epoch. A program calls Follow at the beginning of each
// epoch, or of each step. Follow sets the learning rate, and the momentum if the schedule cycles
// it.
//
// # Note [Hogwild]
//
// When several processes train one set of parameters, as in Hogwild! (Niu and others, 2011), each
// process reads and writes them as plain numbers, without a lock. It is the one place where this
// project races on purpose. Two things can happen. If two processes add to an element at the same
// moment, one of the two steps is lost. And a process may compute a gradient from parameters of
// which some are newer than others. A lost step is one of thousands that point the same way. One
// thing cannot happen: a process never reads half of a number, since an element is an aligned word
// of 4 or 8 bytes. Each process has gradients and momentum of its own, unless Share was called.
//
// The race detector does not see such races, since it knows the memory of its own process alone.
// Goroutines that train one tensor would be a data race in the sense of Go: use processes. If no
// step may be lost, set the option Atomic: each element is then added atomically, which takes
// several times as long.
//
// # Note [Shared state]
//
// An optimizer travels to other processes as its options and references to its parameters. If one
// message has an optimizer and its module, the two share Params at the receiver as well.
//
// The state of an optimizer is momentum, moments and the number of steps. It does not travel, and
// the receiver starts with none. After Share the state travels, and all processes go on with one
// state, as the shared RMSprop and Adam of A3C do (Mnih and others, 2016). Steps are counted
// atomically, so each step has a number of its own, and with it the right bias correction.
// Momentum, moments and mean squares are plain words, even with Atomic, since no instruction
// multiplies and adds at once. If two processes change one of them at the same moment, one change
// is lost, which hardly matters in an average over a thousand gradients. Atomic promises that the
// step that a process computed arrives whole in the parameters.
//
// # State dicts
//
// State and Load are PyTorch's state_dict and load_state_dict, with the same values. So a training
// that began in PyTorch goes on in Go, and the other way round. ScheduleState and LoadSchedule do
// the same for schedulers.
//
// Close of an optimizer closes its state. The module closes the parameters.
package optim
