package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// AllGather fills dst with the src of rank 0, then that of rank 1 and so on: torch's
// all_gather_into_tensor. dst and src are contiguous and of one dtype, and dst has Size() times the
// elements of src.
func (g *Group) AllGather(ctx context.Context, dst, src *tensor.Tensor) error {
	return g.gather(ctx, "all_gather", "", everyRank, dst, src)
}

// Gather fills dst of rank root with the src of rank 0, then that of rank 1 and so on: torch's
// gather. dst is nil in the other ranks. Dtypes and sizes are those of AllGather.
func (g *Group) Gather(ctx context.Context, root int, dst, src *tensor.Tensor) error {
	return g.gather(ctx, "gather", strconv.Itoa(root), root, dst, src)
}

// gather gathers in one rank, or in all.
func (g *Group) gather(ctx context.Context, name, arg string, root int, dst, src *tensor.Tensor) error {
	c, err := g.begin(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(src)
	c.check(src)
	c.root(g, root)
	c.only(g, root, dst)
	c.input(src)
	if dst != nil {
		c.check(dst)
		c.times(g, dst, src)
		c.output(dst)
		defer dst.Touch()
	}
	return g.engine().gather(ctx, c, root)
}
