package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// Scatter fills dst with this rank's part of the src of rank root: the first part for rank 0 and so
// on. It is torch's scatter. src is nil in the other ranks. dst and src are contiguous and of one
// dtype, and src has Size() times the elements of dst.
func (g *Group) Scatter(ctx context.Context, root int, dst, src *tensor.Tensor) error {
	c, err := g.begin(ctx, "scatter", strconv.Itoa(root))
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(dst)
	c.check(dst)
	c.root(g, root)
	c.only(g, root, src)
	c.output(dst)
	if src != nil {
		c.check(src)
		c.times(g, src, dst)
		c.input(src)
	}
	defer dst.Touch()
	piece := g.piece()
	return g.run(ctx, c, c.out.size, piece, func(at, n int) error {
		if src != nil {
			if err := g.deal(c, c.out.size, at, n); err != nil {
				return err
			}
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		return c.out.write(at, g.met(root)[g.Rank()*piece:][:n])
	})
}

// AllToAll sends a part of src to each rank, and fills dst with the part from rank 0, then that
// from rank 1 and so on: torch's all_to_all_single. dst and src are contiguous and of one dtype.
//
// If both splits are nil, the parts are equal: dst and src have the same number of elements, a
// multiple of Size(). Otherwise srcSplits[r] is how many rows of src go to rank r, and dstSplits[r]
// how many rows of dst come from rank r. A row is an index of the first dimension. The splits add
// up to the number of rows. Either all ranks have splits, or none.
func (g *Group) AllToAll(ctx context.Context, dst, src *tensor.Tensor, dstSplits, srcSplits []int) error {
	if dstSplits != nil || srcSplits != nil {
		return g.allToAllSplits(ctx, dst, src, dstSplits, srcSplits)
	}
	c, err := g.begin(ctx, "all_to_all", "")
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(src)
	c.check(src, dst)
	if dst.Numel() != src.Numel() || src.Numel()%g.Size() != 0 {
		c.cannot("%d elements to %d, which are not as many for each of %d ranks", src.Numel(), dst.Numel(), g.Size())
	}
	c.input(src)
	c.output(dst)
	defer dst.Touch()
	part, piece := src.Nbytes()/g.Size(), g.piece()
	return g.run(ctx, c, part, piece, func(at, n int) error {
		if err := g.deal(c, part, at, n); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		for r := range g.Size() {
			if err := c.out.write(r*part+at, g.met(r)[g.Rank()*piece:][:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReduceScatter reduces src over all ranks by op, and fills dst with this rank's part of the
// result: the first part for rank 0 and so on. It is torch's reduce_scatter_tensor. dst and src are
// contiguous and of one dtype, and src has Size() times the elements of dst.
func (g *Group) ReduceScatter(ctx context.Context, op Op, dst, src *tensor.Tensor) error {
	c, err := g.begin(ctx, "reduce_scatter", op.String())
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(dst)
	c.check(src, dst)
	c.reduces(op)
	c.times(g, src, dst)
	c.input(src)
	c.output(dst)
	defer dst.Touch()
	piece := g.piece()
	return g.run(ctx, c, c.out.size, piece, func(at, n int) error {
		if err := g.deal(c, c.out.size, at, n); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		if err := g.fold(c, 0, g.Rank()*piece, n); err != nil {
			return err
		}
		return c.out.write(at, g.mine()[:n])
	})
}

// piece is for how many bytes a slot has room for each rank: they begin at a multiple of 64.
func (g *Group) piece() int { return room(g.stage.size) / g.Size() &^ 63 }

// deal writes n bytes of each rank's part of the input, those from at on, to the pieces of this
// rank's slot.
func (g *Group) deal(c *call, part, at, n int) error {
	piece := g.piece()
	for r := range g.Size() {
		if err := c.in.read(r*part+at, g.mine()[r*piece:][:n]); err != nil {
			return err
		}
	}
	return nil
}
