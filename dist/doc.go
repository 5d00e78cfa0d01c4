// Package dist lets the processes of one machine compute together: they broadcast, reduce and
// gather tensors, under the names that torch.distributed has for it.
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
// Tensors may be anywhere; what ranks exchange goes through memory that the group shares. Each
// element is reduced by one rank, in the order of the ranks, and copied by the others: all have the
// same bits, and have them again in the next run.
//
// [Group.AllGatherTensors] and [Group.AllToAllTensors] exchange tensors whose shapes differ by
// rank.
//
// # From one rank to another
//
// [Group.Send] and [Group.Recv] take tensors from one rank to another by copy, [SendValue] and
// [RecvValue] values of any type that processes can send each other, in which tensors go by
// reference. They take part in no call of all ranks, and wait for none. [BroadcastValue],
// [ScatterValues], [GatherValues] and [AllGatherValues] are calls of all ranks on values.
//
// # Some of the ranks, and calls that do not wait
//
// [Group.NewGroup] makes a group of some ranks, which they use beside the first. [Group.Async] has
// the calls that return a [Work] at once. They happen in the order in which they were made, on all
// ranks.
//
// # When something goes wrong
//
// Every rank makes the same calls in the same order, on tensors of the same dtypes and shapes. If
// one does not, all get ErrMismatch and may go on. If one is killed, closes its Group or lets its
// context end, the group is broken: ranks that wait are told at once, later ones when they come,
// and no rank hangs. The error is a *RankError that names the ranks.
//
// A rank that sends to another, or receives from it, is told when that one is gone, and of no
// other. The end of its context breaks nothing.
//
// # Data parallelism
//
// A [DistributedDataParallel] wraps the network of each rank: its Backward averages gradients, as
// torch's of that name.
//
// A [DataParallel] is the counterpart of torch.nn.DataParallel: one process has the network and its
// optimizer, others compute the gradients of parts of each batch. See docs/training.md for what to
// take when.
//
// # The trap
//
// A rank leaves by Close, or by its death. One whose function returns without Close has done
// neither, and the others wait for it as long as their contexts let them.
package dist
