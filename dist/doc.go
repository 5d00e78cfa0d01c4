// Package dist lets the processes of one machine compute together. They broadcast, reduce and
// gather tensors by the calls of torch.distributed.
//
//	var train = shoal.Register("train", func(ctx context.Context, rank int, j job) error {
//		defer j.Group.Close()
//		if err := j.Group.Join(rank); err != nil {
//			return err
//		}
//		params := nn.Params(j.Net) // of a private copy
//		if err := j.Group.BroadcastParams(ctx, 0, params); err != nil { // all begin with those of rank 0
//			return err
//		}
//		for batch := range batches {
//			sgd.ZeroGrad()
//			loss(batch).Backward()
//			if err := j.Group.AverageGrads(ctx, params); err != nil {
//				return err
//			}
//			sgd.Step() // the same in every rank, to the last bit
//		}
//		return nil
//	})
//
//	group, err := dist.NewGroup(4) // it travels, like a queue
//	err = train.Spawn(ctx, 4, job{group, net})
//
// Tensors may be on the heap, in shared memory or on a device. Ranks exchange elements through
// memory that the group shares. One rank reduces each element, in the order of the ranks, and the
// others copy the result. So all ranks have the same bits, in every run.
//
// [Group.AllGatherTensors] and [Group.AllToAllTensors] exchange tensors whose shapes differ by
// rank.
//
// # From one rank to another
//
// [Group.Send] and [Group.Recv] copy a tensor from one rank to another. [SendValue] and [RecvValue]
// send a value of any type that crosses processes; its tensors are shared and not copied. These
// calls do not wait for calls of all ranks. [BroadcastValue], [ScatterValues], [GatherValues] and
// [AllGatherValues] are calls of all ranks on values.
//
// # Some of the ranks, and calls that do not wait
//
// [Group.NewGroup] makes a group of some ranks, which they use beside the first. [Group.Async]
// begins calls and returns a [Work] at once. All ranks do such calls in the order in which they
// were begun.
//
// # When something goes wrong
//
// Every rank makes the same calls in the same order, on tensors of the same dtypes and shapes. If
// one does not, all ranks get ErrMismatch and may go on. If a rank is killed, closes its Group or
// lets its context end, the group is broken. Then waiting ranks get an error at once, later ones in
// their next call, and no rank hangs. The error is a [*RankError] that names the ranks.
//
// A Send or a Recv returns an error when its peer is gone, and is not concerned by other ranks. The
// end of its context does not break the group.
//
// # Data parallelism
//
// A [DistributedDataParallel] wraps the network of each rank, and its Backward averages gradients,
// as the class of this name in torch does.
//
// A [DataParallel] is the counterpart of torch.nn.DataParallel: one process has the network and its
// optimizer, and others compute the gradients of parts of each batch. docs/training.md says which
// of the two to choose.
//
// # The trap
//
// A rank leaves a group by Close, by its death, or when the function returns that has the Group in
// its argument. A rank that has its Group by another way, such as a task of a pool, and returns
// without Close, is waited for by the others until their contexts end.
package dist
