package dist

import "context"

// near is the engine of ranks that share memory; see [stage].
type near struct{ *Group }

// runSteps splits a call on total bytes into steps of at most limit bytes, and calls step with
// the start and the length of each until step fails. Every rank makes the same steps, and at
// least one. If this rank's arguments are invalid, it only tells the other ranks and returns the
// error.
func (g near) runSteps(ctx context.Context, c *call, total, limit int, step func(at, n int) error) error {
	if c.problem != nil {
		return g.awaitTurn(ctx, c)
	}
	for at := 0; at == 0 || at < total; at += limit {
		if err := step(at, min(limit, total-at)); err != nil {
			return err
		}
	}
	return nil
}

// awaitTurn implements [Group.awaitTurn]. After it, each rank may read the data that the others
// wrote to their slots before it.
func (g near) awaitTurn(ctx context.Context, c *call) error {
	rank := g.Rank()
	if !c.agreed {
		writeHead(g.stage.head(g.turns, rank), c.text)
	}
	if err := g.ranks.Set(g.stage.size+rank, g.turns+1); err != nil {
		return err
	}
	if _, err := g.barrier.Wait(ctx); err != nil {
		return g.callError(c, withCause(ctx, err))
	}
	g.turns++
	if c.agreed {
		return nil
	}
	return g.compareHeads(c, func(rank int) []byte { return g.stage.head(g.turns-1, rank) })
}

func (g near) broadcast(ctx context.Context, c *call, root int) error {
	return g.runSteps(ctx, c, c.in.size, slotCapacity(g.stage.size), func(at, n int) error {
		if g.Rank() == root {
			if err := c.in.readAt(at, g.ownSlot()[:n]); err != nil {
				return err
			}
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		if g.Rank() != root {
			if err := c.out.writeAt(at, g.lastSlot(root)[:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g near) reduce(ctx context.Context, c *call, root int) error {
	gets := root == everyRank || root == g.Rank()
	large := g.Size() > 1 && c.in.size > slotCapacity(g.stage.size)
	if root == everyRank && large && !c.agreed && c.problem == nil {
		if done, err := g.reduceDirect(ctx, c); done {
			return err
		}
	}
	return g.runSteps(ctx, c, c.in.size, slotCapacity(g.stage.size), func(at, n int) error {
		if err := c.in.readAt(at, g.ownSlot()[:n]); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		lo, hi := g.reduceRange(g.Rank(), n)
		if err := g.reduceSlots(c, lo, lo, hi-lo); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil || !gets {
			return err
		}
		for r := range g.Size() {
			lo, hi := g.reduceRange(r, n)
			if err := c.out.writeAt(at+lo, g.lastSlot(r)[lo:hi]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g near) gather(ctx context.Context, c *call, root int) error {
	return g.runSteps(ctx, c, c.in.size, slotCapacity(g.stage.size), func(at, n int) error {
		if err := c.in.readAt(at, g.ownSlot()[:n]); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil || root != everyRank && root != g.Rank() {
			return err
		}
		for r := range g.Size() {
			if err := c.out.writeAt(r*c.in.size+at, g.lastSlot(r)[:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g near) scatter(ctx context.Context, c *call, root int) error {
	piece := g.pieceSize()
	return g.runSteps(ctx, c, c.out.size, piece, func(at, n int) error {
		if g.Rank() == root {
			if err := g.writePieces(c, c.out.size, at, n); err != nil {
				return err
			}
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		return c.out.writeAt(at, g.lastSlot(root)[g.Rank()*piece:][:n])
	})
}

func (g near) allToAll(ctx context.Context, c *call) error {
	part, piece := c.in.size/g.Size(), g.pieceSize()
	return g.runSteps(ctx, c, part, piece, func(at, n int) error {
		if err := g.writePieces(c, part, at, n); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		for r := range g.Size() {
			if err := c.out.writeAt(r*part+at, g.lastSlot(r)[g.Rank()*piece:][:n]); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g near) reduceScatter(ctx context.Context, c *call) error {
	piece := g.pieceSize()
	return g.runSteps(ctx, c, c.out.size, piece, func(at, n int) error {
		if err := g.writePieces(c, c.out.size, at, n); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		if err := g.reduceSlots(c, 0, g.Rank()*piece, n); err != nil {
			return err
		}
		return c.out.writeAt(at, g.ownSlot()[:n])
	})
}

// exchange exchanges parts of different lengths. If the call has one part for each rank, each part
// has its own piece of the slot; otherwise all ranks read the whole slot.
func (g near) exchange(ctx context.Context, c *call, u *uneven) error {
	limit, place := slotCapacity(g.stage.size), 0
	if u.parts != nil {
		limit = g.pieceSize()
		place = g.Rank() * limit
	}
	if c.problem == nil {
		u.encodeCounts(g.ownSlot())
	}
	if err := g.awaitTurn(ctx, c); err != nil {
		return err
	}
	longest, err := u.compareCounts(g.lastSlot)
	if err != nil {
		return err
	}
	for at := 0; at < longest; at += limit {
		if err := g.writeParts(c, u, at, limit); err != nil {
			return err
		}
		if err := g.awaitTurn(ctx, c); err != nil {
			return err
		}
		for r, v := range u.results {
			if err := v.writeAt(at, g.lastSlot(r)[place:][:stepBytes(u.in[r], at, limit)]); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeParts copies up to limit bytes of the data that this rank sends, starting at byte at, to
// this rank's slot. That is one piece of each of u.parts, limit bytes apart, or a piece of the
// call's input if u.parts is nil.
func (g near) writeParts(c *call, u *uneven, at, limit int) error {
	if u.parts == nil {
		return c.in.readAt(at, g.ownSlot()[:stepBytes(u.out[0], at, limit)])
	}
	for r, v := range u.parts {
		if err := v.readAt(at, g.ownSlot()[r*limit:][:stepBytes(u.out[r], at, limit)]); err != nil {
			return err
		}
	}
	return nil
}

// ownSlot returns the data of this rank's slot for the next turn. lastSlot returns the data of a
// rank's slot for the last turn.
func (g near) ownSlot() []byte          { return g.stage.data(g.turns, g.Rank()) }
func (g near) lastSlot(rank int) []byte { return g.stage.data(g.turns-1, rank) }

// reduceRange returns the half-open range of n bytes that a rank reduces. It starts at a
// multiple of 64.
func (g near) reduceRange(rank, n int) (lo, hi int) {
	size := g.Size()
	lo, hi = n*rank/size&^63, n*(rank+1)/size&^63
	if rank == size-1 {
		hi = n
	}
	return lo, hi
}

// pieceSize returns the size of each rank's piece of a slot in bytes, a multiple of 64.
func (g near) pieceSize() int { return slotCapacity(g.stage.size) / g.Size() &^ 63 }

// writePieces copies n bytes of each rank's part of the input, starting at byte at of the part, to
// the pieces of this rank's slot.
func (g near) writePieces(c *call, part, at, n int) error {
	piece := g.pieceSize()
	for r := range g.Size() {
		if err := c.in.readAt(r*part+at, g.ownSlot()[r*piece:][:n]); err != nil {
			return err
		}
	}
	return nil
}

// reduceSlots reduces n bytes, starting at byte from, of all slots of the last turn. It writes the
// result at byte into of this rank's slot for the next turn.
func (g near) reduceSlots(c *call, into, from, n int) error {
	if n == 0 {
		return nil
	}
	how := reductions[c.dtype]
	all, err := g.stage.view(how.as)
	if err != nil {
		return err
	}
	size := how.as.Size()
	place := func(turn int64, rank, at int) operand {
		return operand{all, (g.stage.slotOffset(turn, rank) + headBytes + at) / size}
	}
	c.from = c.from[:0]
	for r := range g.Size() {
		c.from = append(c.from, place(g.turns-1, r, from))
	}
	how.fold(c.op, place(g.turns, g.Rank(), into), c.from, n/size)
	return nil
}
