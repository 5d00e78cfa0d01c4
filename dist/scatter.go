package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// Scatter divides the src of rank root into Size() equal parts and copies part r to dst of rank
// r: torch's scatter. src must be nil in the other ranks. dst and src must be contiguous and of
// one dtype, and src must have Size() times as many elements as dst. Otherwise this rank gets
// [ErrTensor] and the others [ErrMismatch].
func (g *Group) Scatter(ctx context.Context, root int, dst, src *tensor.Tensor) error {
	c, err := g.beginCall(ctx, "scatter", strconv.Itoa(root))
	if err != nil {
		return err
	}
	defer g.endCall(dst, src)
	c.recordTensors(dst)
	c.checkTensors(dst)
	c.checkRoot(g, root)
	c.checkOnlyRoot(g, root, src)
	c.addOutput(dst)
	if src != nil {
		c.checkTensors(src)
		c.checkSizes(g, src, dst)
		c.addInput(src)
	}
	defer dst.Touch()
	return g.engine().scatter(ctx, c, root)
}

// AllToAll sends one part of src to each rank, and concatenates the received parts in rank order
// into dst: torch's all_to_all_single. dst and src must be contiguous and of one dtype.
//
// If both splits are nil, the parts are equal: dst and src must have the same number of
// elements, a multiple of Size(). Otherwise srcSplits[r] is the number of rows of src for rank
// r, and dstSplits[r] the number of rows of dst from rank r. A row is one index of the first
// dimension. The splits must add up to the number of rows. Either all ranks must pass splits, or
// none.
//
// A rank with an invalid argument gets [ErrTensor], and the others get [ErrMismatch]. If the
// splits of two ranks do not fit together, all ranks get ErrMismatch.
func (g *Group) AllToAll(ctx context.Context, dst, src *tensor.Tensor, dstSplits, srcSplits []int) error {
	if dstSplits != nil || srcSplits != nil {
		return g.allToAllSplits(ctx, dst, src, dstSplits, srcSplits)
	}
	c, err := g.beginCall(ctx, "all_to_all", "")
	if err != nil {
		return err
	}
	defer g.endCall(dst, src)
	c.recordTensors(src)
	c.checkTensors(src, dst)
	if dst.Numel() != src.Numel() || src.Numel()%g.Size() != 0 {
		c.recordProblem("source has %d elements, destination %d, want equal counts divisible by %d ranks",
			src.Numel(), dst.Numel(), g.Size())
	}
	c.addInput(src)
	c.addOutput(dst)
	defer dst.Touch()
	return g.engine().allToAll(ctx, c)
}

// ReduceScatter reduces src over all ranks by op, divides the result into Size() equal parts,
// and writes part r to dst of rank r: torch's reduce_scatter_tensor. dst and src must be
// contiguous and of one dtype that supports op, and src must have Size() times as many elements
// as dst. Otherwise this rank gets [ErrTensor] and the others [ErrMismatch].
func (g *Group) ReduceScatter(ctx context.Context, op Op, dst, src *tensor.Tensor) error {
	c, err := g.beginCall(ctx, "reduce_scatter", op.String())
	if err != nil {
		return err
	}
	defer g.endCall(dst, src)
	c.recordTensors(dst)
	c.checkTensors(src, dst)
	c.checkOp(op)
	c.checkSizes(g, src, dst)
	c.addInput(src)
	c.addOutput(dst)
	defer dst.Touch()
	return g.engine().reduceScatter(ctx, c)
}
