package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// Barrier blocks until all ranks have called it. Like every collective call, it returns a
// [*RankError] if a rank fails, leaves, or makes a different call; see the package documentation.
func (g *Group) Barrier(ctx context.Context) error {
	c, err := g.begin(ctx, "barrier", "")
	if err != nil {
		return err
	}
	defer g.end()
	return g.turn(ctx, c)
}

// Broadcast copies the elements of rank root's tensors into the tensors of all ranks. Tensors must
// be contiguous and of one dtype. After an error of this or another collective call the elements of
// its tensors are undefined.
func (g *Group) Broadcast(ctx context.Context, root int, ts ...*tensor.Tensor) error {
	c, err := g.begin(ctx, "broadcast", strconv.Itoa(root))
	if err != nil {
		return err
	}
	defer g.end(ts...)
	c.of(ts...)
	c.check(ts...)
	c.root(g, root)
	c.both(ts)
	defer touch(ts)
	return g.engine().broadcast(ctx, c, root)
}

// AllReduce replaces each element of the tensors by the reduction op of this element over all
// ranks. Tensors must be contiguous and of one dtype that supports the operation; see [Op]. One
// call on several tensors takes as long as a call on one tensor of their total size. Without
// tensors AllReduce is a [Group.Barrier].
func (g *Group) AllReduce(ctx context.Context, op Op, ts ...*tensor.Tensor) error {
	return g.reduce(ctx, "all_reduce", op.String(), op, everyRank, ts)
}

// Reduce reduces the elements of all ranks by op into the tensors of rank root: torch's reduce. The
// tensors of the other ranks stay unchanged. The requirements of [Group.AllReduce] apply.
func (g *Group) Reduce(ctx context.Context, root int, op Op, ts ...*tensor.Tensor) error {
	return g.reduce(ctx, "reduce", op.String()+" to "+strconv.Itoa(root), op, root, ts)
}

// everyRank, in place of a root rank, means that all ranks get the result.
const everyRank = -1

// reduce implements Reduce and, for root everyRank, AllReduce.
func (g *Group) reduce(ctx context.Context, name, arg string, op Op, root int, ts []*tensor.Tensor) error {
	c, err := g.begin(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.end(ts...)
	c.of(ts...)
	c.check(ts...)
	c.reduces(op)
	c.root(g, root)
	c.both(ts)
	if root == everyRank || root == g.Rank() {
		defer touch(ts)
	}
	return g.engine().reduce(ctx, c, root)
}

// root records an error if root is out of range.
func (c *call) root(g *Group, root int) {
	if root != everyRank && (root < 0 || root >= g.Size()) {
		c.cannot("the ranks are 0 to %d", g.Size()-1)
	}
}

// only records an error unless t is set in the root rank (in all ranks for everyRank) and nil in
// the others.
func (c *call) only(g *Group, root int, t *tensor.Tensor) {
	switch has := root == everyRank || root == g.Rank(); {
	case has && t == nil:
		c.cannot("a tensor of rank %d is missing", g.Rank())
	case !has && t != nil:
		c.cannot("rank %d brings a tensor that only rank %d has", g.Rank(), root)
	}
}

// times records an error unless large has Size() times as many elements as small.
func (c *call) times(g *Group, large, small *tensor.Tensor) {
	if large.Numel() != g.Size()*small.Numel() {
		c.cannot("%d elements are not %d times %d", large.Numel(), g.Size(), small.Numel())
	}
}

// both adds the tensors to the call's input and output.
func (c *call) both(ts []*tensor.Tensor) {
	for _, t := range ts {
		c.input(t)
		c.output(t)
	}
}

// input adds t to the bytes that this rank contributes, and output adds it to those that this rank
// receives. Both do nothing once the call has recorded an error.
func (c *call) input(t *tensor.Tensor) {
	if c.problem == nil {
		c.in.add(t)
	}
}

func (c *call) output(t *tensor.Tensor) {
	if c.problem == nil {
		c.out.add(t)
	}
}

func touch(ts []*tensor.Tensor) {
	for _, t := range ts {
		if t != nil {
			t.Touch()
		}
	}
}
