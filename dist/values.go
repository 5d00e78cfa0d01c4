package dist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// tagValues is the tag of letters that belong to a collective call. Tags of users are not negative.
const tagValues = -1

// BroadcastValue returns the value v of rank root in all ranks: torch's broadcast_object_list. T
// may be any type that package ipc can send, and must be the same in all ranks. The root gets v
// itself. The other ranks get a value that shares the memory of v's tensors, and must close its
// resources. All ranks must make the call. It fails like the collective calls of a [Group].
func BroadcastValue[T any](ctx context.Context, g *Group, root int, v T) (T, error) {
	err := runValues(ctx, g, "broadcast_value", strconv.Itoa(root), root, func() []T {
		if g.Rank() == root {
			return []T{v}
		}
		return nil
	}, func(x *exchange[T]) (err error) {
		if g.Rank() == root {
			return x.sendToAll(x.own[0])
		}
		v, err = x.recvFrom(root)
		return err
	})
	return zeroOf(v, err)
}

// ScatterValues returns element r of rank root's vs in each rank r: torch's scatter_object_list. vs
// must have Size() elements in the root and be nil in the other ranks. The rules of
// [BroadcastValue] for types, ownership and errors apply.
func ScatterValues[T any](ctx context.Context, g *Group, root int, vs []T) (v T, err error) {
	err = runValues(ctx, g, "scatter_values", strconv.Itoa(root), root, func() []T { return vs },
		func(x *exchange[T]) (err error) {
			if g.Rank() != root {
				v, err = x.recvFrom(root)
				return err
			}
			v = vs[root]
			for r := range g.Size() {
				if r != root {
					err = errors.Join(err, x.sendTo(r, x.own[r]))
				}
			}
			return err
		})
	return zeroOf(v, err)
}

// GatherValues returns the values v of all ranks, in rank order, in rank root: torch's
// gather_object. It returns nil in the other ranks. The rules of [BroadcastValue] for types,
// ownership and errors apply.
func GatherValues[T any](ctx context.Context, g *Group, root int, v T) (all []T, err error) {
	err = runValues(ctx, g, "gather_values", strconv.Itoa(root), root, func() []T { return []T{v} },
		func(x *exchange[T]) (err error) {
			if g.Rank() != root {
				return x.sendTo(root, x.own[0])
			}
			all, err = x.recvFromAll(v)
			return err
		})
	return zeroOf(all, err)
}

// AllGatherValues returns the values v of all ranks, in rank order, in all ranks: torch's
// all_gather_object. The rules of [BroadcastValue] for types, ownership and errors apply.
func AllGatherValues[T any](ctx context.Context, g *Group, v T) (all []T, err error) {
	err = runValues(ctx, g, "all_gather_values", "", everyRank, func() []T { return []T{v} },
		func(x *exchange[T]) (err error) {
			if err := x.sendToAll(x.own[0]); err != nil {
				return err
			}
			all, err = x.recvFromAll(v)
			return err
		})
	return zeroOf(all, err)
}

// zeroOf returns v, or the zero value if err is not nil.
func zeroOf[T any](v T, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// An exchange is a collective call on values. Values travel as letters.
type exchange[T any] struct {
	g   *Group
	c   *call
	ctx context.Context
	own []payload
}

// runValues runs a collective call on values. values returns the values that this rank sends; f
// exchanges them, after the ranks have agreed on the call. The error of f breaks the group.
func runValues[T any](ctx context.Context, g *Group, name, arg string, root int, values func() []T,
	f func(x *exchange[T]) error) error {
	c, err := g.beginCall(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.endCall()
	c.text = append(append(c.text, " of "...), kindOf[T]()...)
	c.checkRoot(g, root)
	x := &exchange[T]{g: g, c: c, ctx: ctx}
	vs := values()
	if name == "scatter_values" {
		c.checkOnePerRank(g, root, len(vs), vs != nil)
	}
	for _, v := range vs {
		p, done, err := packValue(v, g.far != nil)
		if err != nil {
			c.recordProblem("%v", err)
			break
		}
		defer done(true)
		x.own = append(x.own, p)
	}
	return g.runBetweenTurns(ctx, c, func() error { return f(x) })
}

// checkOnePerRank records an error unless the root, and no other rank, has one value for each rank.
func (c *call) checkOnePerRank(g *Group, root, n int, has bool) {
	switch {
	case g.Rank() != root && has:
		c.recordProblem("values of rank %d are not nil, want values on rank %d only", g.Rank(), root)
	case g.Rank() == root && n != g.Size():
		c.recordProblem("%d values, want %d, one per rank", n, g.Size())
	}
}

// runBetweenTurns runs f between two turns. In the first one the ranks agree on the call; the
// second one keeps every rank from leaving until all are done. If f fails, the group is broken.
func (g *Group) runBetweenTurns(ctx context.Context, c *call, f func() error) error {
	if err := g.awaitTurn(ctx, c); err != nil {
		return err
	}
	g.startWatchman()
	if g.far == nil {
		if err := g.ranks.Set(g.size+g.Rank(), g.turns+1); err != nil { // already in the next turn
			return err
		}
	}
	if err := f(); err != nil {
		return g.failCall(c, err)
	}
	return g.awaitTurn(ctx, c)
}

// sendTo sends a payload to a rank. The caller keeps the payload.
func (x *exchange[T]) sendTo(rank int, p payload) error {
	at := x.g.box.lines[rank].takeTicket()
	defer at.release()
	return x.g.sendInOrder(x.ctx, string(x.c.text), rank, tagValues, at, func() (letter, func(bool), error) {
		return letter{value: p}, func(bool) {}, nil
	})
}

func (x *exchange[T]) sendToAll(p payload) error {
	for r := range x.g.Size() {
		if r == x.g.Rank() {
			continue
		}
		if err := x.sendTo(r, p); err != nil {
			return err
		}
	}
	return nil
}

// recvFrom receives the value that a rank has sent in this call. It also fails if the group
// breaks. The caller must close the resources in the value.
func (x *exchange[T]) recvFrom(rank int) (v T, err error) {
	l, err := x.g.expectLetter(&wanted{from: rank, tag: tagValues, breakable: true})(x.ctx, string(x.c.text))
	if err != nil {
		return v, err
	}
	return openLetter[T](l)
}

// recvFromAll receives the values of all other ranks and returns them with own, in rank order.
func (x *exchange[T]) recvFromAll(own T) ([]T, error) {
	all := make([]T, x.g.Size())
	for r := range all {
		if r == x.g.Rank() {
			all[r] = own
			continue
		}
		v, err := x.recvFrom(r)
		if err != nil {
			return nil, err
		}
		all[r] = v
	}
	return all, nil
}

// failCall breaks the group because this rank's call failed with err, and returns the error of
// the call. If another rank had broken the group, the error names the ranks at fault. It is
// [ErrClosed] if this process has closed the group.
func (g *Group) failCall(c *call, err error) error {
	switch e := new(RankError); {
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case g.far != nil:
		return g.failFar(c, err, g.Rank())
	case errors.Is(err, ErrBroken) && !errors.As(err, &e): // another rank failed
		return g.callError(c, err)
	}
	g.ranks.Set(g.size+g.Rank(), g.turns)
	g.abortCalls()
	return fmt.Errorf("%w (%w)", err, ErrBroken)
}
