package dist

import "context"

// An engine is the way from rank to rank of what calls have in their vectors.
type engine interface {
	// turn is where all ranks meet. In the first turn of a call they agree on it.
	turn(ctx context.Context, c *call) error

	broadcast(ctx context.Context, c *call, root int) error
	reduce(ctx context.Context, c *call, root int) error // everyRank: to all
	reduceScatter(ctx context.Context, c *call) error
	gather(ctx context.Context, c *call, root int) error // everyRank: in all
	scatter(ctx context.Context, c *call, root int) error
	allToAll(ctx context.Context, c *call) error
	exchange(ctx context.Context, c *call, u *uneven) error
}

// engine returns that of the group: memory that the ranks share, or a library that reaches other
// machines.
func (g *Group) engine() engine {
	if g.far != nil {
		return farEngine{g}
	}
	return near{g}
}
