package dist

import "context"

// An engine moves the bytes of a call between ranks. [near] uses shared memory, [farEngine] a
// library. All ranks must call the same method in the same order; each returns when this rank has
// its result.
type engine interface {
	// awaitTurn is a barrier of all ranks. The first turn of a call also compares the call across
	// ranks, and fails in all of them if it differs.
	awaitTurn(ctx context.Context, c *call) error

	broadcast(ctx context.Context, c *call, root int) error
	reduce(ctx context.Context, c *call, root int) error // everyRank: all-reduce
	reduceScatter(ctx context.Context, c *call) error
	gather(ctx context.Context, c *call, root int) error // everyRank: all-gather
	scatter(ctx context.Context, c *call, root int) error
	allToAll(ctx context.Context, c *call) error
	exchange(ctx context.Context, c *call, u *uneven) error
}

// engine returns the group's engine: shared memory, or a library that connects machines.
func (g *Group) engine() engine {
	if g.far != nil {
		return farEngine{g}
	}
	return near{g}
}
