package dist

import (
	"context"
	"errors"
	"fmt"
	"strconv"
)

// tagValues is the tag of letters that are part of a call of all ranks. The tags of users are at
// least 0.
const tagValues = -1

// BroadcastValue returns, in all ranks, the value v of rank root: torch's broadcast_object_list. T
// is any type that crosses processes, the same in all ranks. The root gets v itself. The others
// share the memory of v's tensors with the root, and close the value that they get. All ranks make
// the call; the errors are those of calls of a [Group].
func BroadcastValue[T any](ctx context.Context, g *Group, root int, v T) (T, error) {
	err := calls(ctx, g, "broadcast_value", strconv.Itoa(root), root, func() []T {
		if g.Rank() == root {
			return []T{v}
		}
		return nil
	}, func(x *exchange[T]) (err error) {
		if g.Rank() == root {
			return x.toAll(x.own[0])
		}
		v, err = x.from(root)
		return err
	})
	return zeroOf(v, err)
}

// ScatterValues returns, in each rank r, element r of the vs of rank root: torch's
// scatter_object_list. vs is nil in the other ranks. Types, ownership and errors are those of
// [BroadcastValue].
func ScatterValues[T any](ctx context.Context, g *Group, root int, vs []T) (v T, err error) {
	err = calls(ctx, g, "scatter_values", strconv.Itoa(root), root, func() []T { return vs },
		func(x *exchange[T]) (err error) {
			if g.Rank() != root {
				v, err = x.from(root)
				return err
			}
			v = vs[root]
			for r := range g.Size() {
				if r != root {
					err = errors.Join(err, x.to(r, x.own[r]))
				}
			}
			return err
		})
	return zeroOf(v, err)
}

// GatherValues returns, in rank root, the values v of all ranks in their order, and nil in the
// other ranks: torch's gather_object. Types, ownership and errors are those of [BroadcastValue].
func GatherValues[T any](ctx context.Context, g *Group, root int, v T) (all []T, err error) {
	err = calls(ctx, g, "gather_values", strconv.Itoa(root), root, func() []T { return []T{v} },
		func(x *exchange[T]) (err error) {
			if g.Rank() != root {
				return x.to(root, x.own[0])
			}
			all, err = x.fromAll(v)
			return err
		})
	return zeroOf(all, err)
}

// AllGatherValues returns, in all ranks, the values v of all ranks in their order: torch's
// all_gather_object. Types, ownership and errors are those of [BroadcastValue].
func AllGatherValues[T any](ctx context.Context, g *Group, v T) (all []T, err error) {
	err = calls(ctx, g, "all_gather_values", "", everyRank, func() []T { return []T{v} },
		func(x *exchange[T]) (err error) {
			if err := x.toAll(x.own[0]); err != nil {
				return err
			}
			all, err = x.fromAll(v)
			return err
		})
	return zeroOf(all, err)
}

// zeroOf returns nothing beside an error.
func zeroOf[T any](v T, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return v, nil
}

// An exchange is a call by which values go from rank to rank.
type exchange[T any] struct {
	g   *Group
	c   *call
	ctx context.Context
	own []parcel
}

// calls makes a call of all ranks. values returns what this one has to send, and f exchanges it.
func calls[T any](ctx context.Context, g *Group, name, arg string, root int, values func() []T,
	f func(x *exchange[T]) error) error {
	c, err := g.begin(ctx, name, arg)
	if err != nil {
		return err
	}
	defer g.end()
	c.text = append(append(c.text, " of "...), kindOf[T]()...)
	c.root(g, root)
	x := &exchange[T]{g: g, c: c, ctx: ctx}
	vs := values()
	if name == "scatter_values" {
		c.oneForEach(g, root, len(vs), vs != nil)
	}
	for _, v := range vs {
		p, done, err := pack(v, g.far != nil)
		if err != nil {
			c.cannot("%v", err)
			break
		}
		defer done(true)
		x.own = append(x.own, p)
	}
	return g.meet(ctx, c, func() error { return f(x) })
}

// oneForEach wants the root, and nobody else, to have a value for each rank.
func (c *call) oneForEach(g *Group, root, n int, has bool) {
	switch {
	case g.Rank() != root && has:
		c.cannot("rank %d brings values that only rank %d has", g.Rank(), root)
	case g.Rank() == root && n != g.Size():
		c.cannot("%d values are not one for each of %d ranks", n, g.Size())
	}
}

// meet makes a call that is f between two turns: before it, all ranks agree on the call, and nobody
// leaves until all are done. If f fails, so does the call of all ranks, and the group is broken.
func (g *Group) meet(ctx context.Context, c *call, f func() error) error {
	if err := g.turn(ctx, c); err != nil {
		return err
	}
	g.watch()
	if g.far == nil {
		if err := g.ranks.Set(g.size+g.Rank(), g.turns+1); err != nil { // it is on the way
			return err
		}
	}
	if err := f(); err != nil {
		return g.fails(c, err)
	}
	return g.turn(ctx, c)
}

// to sends a parcel to a rank.
func (x *exchange[T]) to(rank int, p parcel) error {
	at := x.g.box.lines[rank].stand()
	defer at.leave()
	return x.g.post(x.ctx, string(x.c.text), rank, tagValues, at, func() (letter, func(bool), error) {
		return letter{value: p}, func(bool) {}, nil
	})
}

func (x *exchange[T]) toAll(p parcel) error {
	for r := range x.g.Size() {
		if r == x.g.Rank() {
			continue
		}
		if err := x.to(r, p); err != nil {
			return err
		}
	}
	return nil
}

// from receives what a rank has sent.
func (x *exchange[T]) from(rank int) (v T, err error) {
	l, err := x.g.expect(&wanted{from: rank, tag: tagValues, breakable: true})(x.ctx, string(x.c.text))
	if err != nil {
		return v, err
	}
	return open[T](l)
}

// fromAll receives what every other rank has sent, beside the own.
func (x *exchange[T]) fromAll(own T) ([]T, error) {
	all := make([]T, x.g.Size())
	for r := range all {
		if r == x.g.Rank() {
			all[r] = own
			continue
		}
		v, err := x.from(r)
		if err != nil {
			return nil, err
		}
		all[r] = v
	}
	return all, nil
}

// fails ends the calls of all ranks, because this one cannot go on with its own, and returns why.
func (g *Group) fails(c *call, err error) error {
	switch e := new(RankError); {
	case errors.Is(err, ErrClosed):
		return ErrClosed
	case g.far != nil:
		return g.failFar(c, err, g.Rank())
	case errors.Is(err, ErrBroken) && !errors.As(err, &e): // another rank could not go on
		return g.blame(c, err)
	}
	g.ranks.Set(g.size+g.Rank(), g.turns)
	g.abort()
	return fmt.Errorf("%w (%w)", err, ErrBroken)
}
