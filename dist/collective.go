package dist

import (
	"context"
	"strconv"

	"github.com/shoal-mp/shoal/tensor"
)

// Barrier blocks until all ranks have called it. Like every collective call, it returns a
// [*RankError] if a rank fails, leaves, or makes a different call; see the package documentation.
func (g *Group) Barrier(ctx context.Context) error {
	c, err := g.beginCall(ctx, "barrier", "")
	if err != nil {
		return err
	}
	defer g.endCall()
	return g.awaitTurn(ctx, c)
}

// Broadcast copies the elements of rank root's tensors into the tensors of all ranks. Tensors
// must be contiguous and of one dtype. A rank with an invalid root or tensor gets [ErrTensor],
// and the others get [ErrMismatch]. After an error of this or another collective call the
// elements of its tensors are undefined.
func (g *Group) Broadcast(ctx context.Context, root int, ts ...*tensor.Tensor) error {
	c, err := g.beginCall(ctx, "broadcast", strconv.Itoa(root))
	if err != nil {
		return err
	}
	defer g.endCall(ts...)
	c.recordTensors(ts...)
	c.checkTensors(ts...)
	c.checkRoot(g, root)
	c.addInputOutput(ts)
	defer touchAll(ts)
	return g.engine().broadcast(ctx, c, root)
}

// AllReduce replaces each element of the tensors by the reduction op of this element over all
// ranks. Tensors must be contiguous and of one dtype that supports the operation; see [Op].
// Otherwise this rank gets [ErrTensor] and the others [ErrMismatch]. One call on several tensors
// takes as long as a call on one tensor of their total size. Large tensors in shared memory are
// reduced in place; others are copied first. Without tensors AllReduce is a [Group.Barrier].
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
	c, err := g.beginCall(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.endCall(ts...)
	c.recordTensors(ts...)
	c.checkTensors(ts...)
	c.checkOp(op)
	c.checkRoot(g, root)
	c.addInputOutput(ts)
	if root == everyRank || root == g.Rank() {
		defer touchAll(ts)
	}
	return g.engine().reduce(ctx, c, root)
}

// checkRoot records an error if root is neither a rank of g nor everyRank.
func (c *call) checkRoot(g *Group, root int) {
	if root != everyRank && (root < 0 || root >= g.Size()) {
		c.recordProblem("root out of range, want 0 to %d", g.Size()-1)
	}
}

// checkOnlyRoot records an error unless t is set in the root rank (in all ranks for everyRank) and
// nil in the others.
func (c *call) checkOnlyRoot(g *Group, root int, t *tensor.Tensor) {
	switch has := root == everyRank || root == g.Rank(); {
	case has && t == nil:
		c.recordProblem("tensor of rank %d is nil", g.Rank())
	case !has && t != nil:
		c.recordProblem("tensor of rank %d is not nil, want a tensor on rank %d only", g.Rank(), root)
	}
}

// checkSizes records an error unless large has Size() times as many elements as small.
func (c *call) checkSizes(g *Group, large, small *tensor.Tensor) {
	if large.Numel() != g.Size()*small.Numel() {
		c.recordProblem("large tensor has %d elements, want %d times %d", large.Numel(), g.Size(), small.Numel())
	}
}

// addInputOutput adds the tensors to the call's input and output.
func (c *call) addInputOutput(ts []*tensor.Tensor) {
	for _, t := range ts {
		c.addInput(t)
		c.addOutput(t)
	}
}

// addInput adds t to the bytes that this rank contributes, and addOutput adds it to those that this
// rank receives. Both do nothing once the call has recorded an error.
func (c *call) addInput(t *tensor.Tensor) {
	if c.problem == nil {
		c.in.appendTensor(t)
	}
}

func (c *call) addOutput(t *tensor.Tensor) {
	if c.problem == nil {
		c.out.appendTensor(t)
	}
}

func touchAll(ts []*tensor.Tensor) {
	for _, t := range ts {
		if t != nil {
			t.Touch()
		}
	}
}
