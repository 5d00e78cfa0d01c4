package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// Barrier returns when all ranks have called it.
func (g *Group) Barrier(ctx context.Context) error {
	c, err := g.begin("barrier", "")
	if err != nil {
		return err
	}
	defer g.end()
	return g.turn(ctx, c)
}

// Broadcast gives the tensors of all ranks the elements that those of rank root have. They are contiguous and of one dtype. If
// it fails, what is in them is undefined, as with all calls.
func (g *Group) Broadcast(ctx context.Context, root int, ts ...*tensor.Tensor) error {
	c, err := g.begin("broadcast", strconv.Itoa(root))
	if err != nil {
		return err
	}
	defer g.end(ts...)
	c.of(ts...)
	c.check(ts...)
	c.root(g, root)
	c.both(ts)
	defer touch(ts)
	return g.run(ctx, c, c.in.size, room(g.stage.size), func(at, n int) error {
		if g.Rank() == root {
			if err := c.in.read(at, g.mine()[:n]); err != nil {
				return err
			}
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		if g.Rank() != root {
			if err := c.out.write(at, g.met(root)[:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// AllReduce replaces the elements of the tensors by what op makes of those of all ranks. Tensors are contiguous, of one dtype:
// float32, float64 or an integer. Several tensors in one call are as quick as one of their size together.
func (g *Group) AllReduce(ctx context.Context, op Op, ts ...*tensor.Tensor) error {
	return g.reduce(ctx, "all_reduce", op.String(), op, -1, ts)
}

// Reduce is AllReduce of which only rank root gets the result; the tensors of others stay as they are.
func (g *Group) Reduce(ctx context.Context, root int, op Op, ts ...*tensor.Tensor) error {
	return g.reduce(ctx, "reduce", op.String()+" to "+strconv.Itoa(root), op, root, ts)
}

// reduce reduces to one rank, or to all if root is -1.
func (g *Group) reduce(ctx context.Context, name, arg string, op Op, root int, ts []*tensor.Tensor) error {
	c, err := g.begin(name, arg)
	if err != nil {
		return err
	}
	defer g.end(ts...)
	c.of(ts...)
	c.check(ts...)
	c.reduces(op)
	if root != -1 {
		c.root(g, root)
	}
	c.both(ts)
	gets := root == -1 || root == g.Rank()
	if gets {
		defer touch(ts)
	}
	return g.run(ctx, c, c.in.size, room(g.stage.size), func(at, n int) error {
		if err := c.in.read(at, g.mine()[:n]); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		lo, hi := g.part(g.Rank(), n)
		if err := g.fold(c, lo, lo, hi-lo); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil || !gets {
			return err
		}
		for r := range g.Size() {
			lo, hi := g.part(r, n)
			if err := c.out.write(at+lo, g.met(r)[lo:hi]); err != nil {
				return err
			}
		}
		return nil
	})
}

// AllGather fills dst with the elements that src has in rank 0, then those in rank 1 and so on: torch's all_gather_into_tensor. Both are
// contiguous and of one dtype, and dst has Size() times as many elements.
func (g *Group) AllGather(ctx context.Context, dst, src *tensor.Tensor) error {
	c, err := g.begin("all_gather", "")
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(src)
	c.check(src, dst)
	c.times(g, dst, src)
	c.inOut(src, dst)
	defer dst.Touch()
	return g.run(ctx, c, c.in.size, room(g.stage.size), func(at, n int) error {
		if err := c.in.read(at, g.mine()[:n]); err != nil {
			return err
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		for r := range g.Size() {
			if err := c.out.write(r*c.in.size+at, g.met(r)[:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReduceScatter reduces src, which has Size() times as many elements as dst, and gives each rank its part of the result: the
// first to rank 0 and so on. It is torch's reduce_scatter_tensor. Both are contiguous and of one dtype.
func (g *Group) ReduceScatter(ctx context.Context, op Op, dst, src *tensor.Tensor) error {
	c, err := g.begin("reduce_scatter", op.String())
	if err != nil {
		return err
	}
	defer g.end(dst, src)
	c.of(dst)
	c.check(src, dst)
	c.reduces(op)
	c.times(g, src, dst)
	c.inOut(src, dst)
	defer dst.Touch()
	// A slot has a piece for each rank, which begins at a multiple of 64 bytes.
	limit := room(g.stage.size) / g.Size() &^ 63
	return g.run(ctx, c, c.out.size, limit, func(at, n int) error {
		for r := range g.Size() {
			if err := c.in.read(r*c.out.size+at, g.mine()[r*limit:][:n]); err != nil {
				return err
			}
		}
		if err := g.turn(ctx, c); err != nil {
			return err
		}
		if err := g.fold(c, 0, g.Rank()*limit, n); err != nil {
			return err
		}
		return c.out.write(at, g.mine()[:n])
	})
}

// mine returns the data of this rank's slot in the turn to come, and met those of a rank's in the turn that was.
func (g *Group) mine() []byte        { return g.stage.data(g.turns, g.Rank()) }
func (g *Group) met(rank int) []byte { return g.stage.data(g.turns-1, rank) }

// part returns which of n bytes a rank reduces.
func (g *Group) part(rank, n int) (lo, hi int) {
	size := g.Size()
	lo, hi = n*rank/size&^63, n*(rank+1)/size&^63
	if rank == size-1 {
		hi = n
	}
	return lo, hi
}

// fold reduces n bytes of the slots of the turn that was, those from on, to the slot of the turn to come, those from into on.
func (g *Group) fold(c *call, into, from, n int) error {
	all, err := g.stage.view(c.dtype)
	if err != nil {
		return err
	}
	size := c.dtype.Size()
	place := func(turn int64, rank, at int) int { return (g.stage.at(turn, rank) + headBytes + at) / size }
	c.from = c.from[:0]
	for r := range g.Size() {
		c.from = append(c.from, place(g.turns-1, r, from))
	}
	foldings[c.dtype](c.op, all, place(g.turns, g.Rank(), into), c.from, n/size)
	return nil
}

// root says from or to whom the call goes.
func (c *call) root(g *Group, root int) {
	if root < 0 || root >= g.Size() {
		c.cannot("the ranks are 0 to %d", g.Size()-1)
	}
}

// times wants large to have the elements of small once for each rank.
func (c *call) times(g *Group, large, small *tensor.Tensor) {
	if large.Numel() != g.Size()*small.Numel() {
		c.cannot("%d elements are not %d times %d", large.Numel(), g.Size(), small.Numel())
	}
}

// both makes the tensors input and output.
func (c *call) both(ts []*tensor.Tensor) {
	for _, t := range ts {
		c.inOut(t, t)
	}
}

// inOut adds an input and an output, unless the call cannot be made anyway.
func (c *call) inOut(in, out *tensor.Tensor) {
	if c.problem == nil {
		c.in.add(in)
		c.out.add(out)
	}
}

func touch(ts []*tensor.Tensor) {
	for _, t := range ts {
		t.Touch()
	}
}
