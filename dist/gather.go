package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// AllGather concatenates the src of all ranks in rank order into dst: torch's
// all_gather_into_tensor. dst and src must be contiguous and of one dtype, and dst must have
// Size() times as many elements as src. Otherwise this rank gets [ErrTensor] and the others
// [ErrMismatch].
func (g *Group) AllGather(ctx context.Context, dst, src *tensor.Tensor) error {
	return g.gather(ctx, "all_gather", "", everyRank, dst, src)
}

// Gather concatenates the src of all ranks in rank order into dst of rank root: torch's gather. dst
// must be nil in the other ranks. The requirements of [Group.AllGather] apply.
func (g *Group) Gather(ctx context.Context, root int, dst, src *tensor.Tensor) error {
	return g.gather(ctx, "gather", strconv.Itoa(root), root, dst, src)
}

// gather implements Gather and, for root everyRank, AllGather.
func (g *Group) gather(ctx context.Context, name, arg string, root int, dst, src *tensor.Tensor) error {
	c, err := g.beginCall(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.endCall(dst, src)
	c.recordTensors(src)
	c.checkTensors(src)
	c.checkRoot(g, root)
	c.checkOnlyRoot(g, root, dst)
	c.addInput(src)
	if dst != nil {
		c.checkTensors(dst)
		c.checkSizes(g, dst, src)
		c.addOutput(dst)
		defer dst.Touch()
	}
	return g.engine().gather(ctx, c, root)
}
