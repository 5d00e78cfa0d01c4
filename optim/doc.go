// Package optim changes parameters so that a loss becomes smaller.
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
// and weight decay; freeze it (autograd.Param.Frozen) if it must not.
//
// # Schedules
//
// A [Schedule] says the learning rate of an epoch. [Follow] sets it, and the momentum where that is
// cycled, at the beginning of each epoch, or of each step.
//
// # Note [Hogwild]
//
// When several processes train one set of parameters, as in Hogwild! (Niu and others, 2011), each
// reads and writes them as plain numbers, without a lock: the one place where this project races on
// purpose. What can happen: two processes add to an element at the same moment and one of the steps
// is lost, and a gradient is computed from parameters of which some are newer than others. What
// cannot: an element is an aligned word of 4 or 8 bytes, so nobody reads half of a number, and a
// lost step is one of thousands that all point down the hill. Gradients and momentum belong to each
// process, so nothing else is shared, unless Share was called.
//
// The race detector does not see it, as it knows only the memory of its own process. Goroutines
// that train one tensor would be a data race in the sense of Go: use processes. Where no step may
// be lost, the option Atomic adds each element atomically, which takes several times as long.
//
// # Note [Shared state]
//
// An optimizer travels to other processes as its numbers and references to its parameters; sent in
// one message with its module, it arrives with the Params that the module has there. Its state
// (momentum, moments, the number of steps) stays at home, and the receiver starts with none, unless
// Share was called before: then all go on with one state, as the shared RMSprop and Adam of A3C do.
// The numbers of steps are counted atomically: each step has a number of its own, and with it the
// right bias correction. Momentum, moments and mean squares are plain words, with Atomic as well,
// since they are multiplied as they are added to, which no single instruction does: of what two
// processes make of one at the same moment, one is lost, which an average over a thousand gradients
// does not notice. What Atomic promises is that the step that a process computed from them arrives
// whole in the parameters.
//
// # State dicts
//
// [State] and [Load] are PyTorch's state_dict and load_state_dict, and what they return and take is
// what PyTorch's do: training that was begun there goes on here, and the other way round.
// [ScheduleState] and [LoadSchedule] are those of its schedulers.
//
// Close gives up the state. The parameters are their module's to close.
package optim
