// Package dist implements collective communication between processes.
//
//	var sum = shoal.Register("sum", addRanks)
//
//	func addRanks(ctx context.Context, rank int, g *dist.Group) error {
//		defer g.Close()
//		if err := g.Join(rank); err != nil {
//			return err
//		}
//		t := tensor.Full(tensor.Float32, float64(rank), 3)
//		return g.AllReduce(ctx, dist.Sum, t) // 0 + 1 + 2 + 3 in every rank
//	}
//
//	func run(ctx context.Context) error { // called by shoal.Main
//		g, err := dist.NewGroup(4)
//		if err != nil {
//			return err
//		}
//		return errors.Join(sum.Spawn(ctx, 4, g), g.Close())
//	}
//
// Start with [NewGroup], [Group.Join] and [Group.AllReduce].
//
// Ranks broadcast, reduce and gather tensors to train together, in the style of torch.distributed.
// Tensors may be on the heap, in shared memory or on a device. The ranks of one machine exchange
// elements through shared memory. Each element is reduced by one rank, in rank order, and the other
// ranks copy the result. The result is therefore bitwise identical in all ranks and in every run.
//
// [Group.AllGatherTensors] and [Group.AllToAllTensors] exchange tensors with shapes that differ
// between ranks. [Init] creates the group of a job that a launcher such as mpirun has started, on
// one machine or on several.
//
// # Point-to-point messages
//
// [Group.Send] and [Group.Recv] copy a tensor from one rank to another. [SendValue] and [RecvValue]
// send a value of any type that package ipc can send; its tensors are shared, not copied. These
// calls do not wait for collective calls. [BroadcastValue], [ScatterValues], [GatherValues] and
// [AllGatherValues] are collective calls on values.
//
// # Subgroups and asynchronous calls
//
// [Group.NewGroup] creates a group of some of the ranks, which may use it beside the first one.
// [Group.Async] starts collective calls and returns a [Work] at once. All ranks must start them in
// the same order.
//
// # Errors
//
// All ranks must make the same collective calls in the same order, on tensors of the same dtypes
// and shapes. If they do not, all ranks get [ErrMismatch] and may continue. If a rank is killed,
// closes its Group, or its context ends, the group is broken. Then blocked ranks get an error at
// once, other ranks get it in their next call, and no rank hangs. The error is a [*RankError],
// which names the ranks at fault.
//
// A Send or a Recv returns an error if its peer is gone. Other ranks do not affect it, and the end
// of its context does not break the group.
//
// # Data parallelism
//
// A [DistributedDataParallel] wraps the network of each rank. Its Backward averages the gradients,
// as the torch class of the same name does.
//
// A rank may also exchange parameters and gradients itself:
//
//	params := nn.Params(net) // net is a private copy
//	if err := g.BroadcastParams(ctx, 0, params); err != nil { // rank 0's values
//		return err
//	}
//	for batch := range batches {
//		sgd.ZeroGrad()
//		loss(batch).Backward()
//		if err := g.AverageGrads(ctx, params); err != nil {
//			return err
//		}
//		sgd.Step() // the same in every rank, to the last bit
//	}
//
// A [DataParallel] is the counterpart of torch.nn.DataParallel: one process has the network and its
// optimizer, and other processes compute the gradients of parts of each batch. docs/training.md
// explains how to choose between them.
//
// # The trap
//
// A worker must close its Group before it returns. A Group in the argument of the worker's function
// is closed when the function returns. A process that got its Group in another way, such as a task
// of a pool, and returns without Close has not left the group: other ranks wait for it until their
// contexts end.
package dist
