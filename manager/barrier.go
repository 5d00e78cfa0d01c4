package manager

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/wire"
)

// A Barrier lets a number of callers go on together. If one of those that wait dies, is cancelled or reaches its deadline,
// the barrier is broken for all, until Reset.
type Barrier struct{ Proxy }

// NewBarrier makes a barrier for that many parties. The caller closes it.
func NewBarrier(ctx context.Context, m *Manager, parties int) (*Barrier, error) {
	p, err := m.create(ctx, "Barrier", in(parties))
	return &Barrier{p}, err
}

// Wait waits for all parties and returns the order in which the caller came, 0 to parties-1: an action that only one of
// them is to take is that of who got 0. It returns ErrBroken if the barrier is broken, with the process id of who died.
func (b *Barrier) Wait(ctx context.Context) (int, error) { return one[int](b.call(ctx, "wait")) }

// Abort breaks the barrier: who waits, and who comes, gets ErrBroken.
func (b *Barrier) Abort(ctx context.Context) error { return b.call(ctx, "abort").none() }

// Reset makes the barrier as new. Who waits gets ErrBroken.
func (b *Barrier) Reset(ctx context.Context) error { return b.call(ctx, "reset").none() }

// Waiting returns how many wait.
func (b *Barrier) Waiting(ctx context.Context) (int, error) {
	return one[int](b.call(ctx, "waiting"))
}

// Broken reports whether the barrier is broken.
func (b *Barrier) Broken(ctx context.Context) (bool, error) { return one[bool](b.call(ctx, "broken")) }

// MarshalWire lets a Barrier be part of a value that is sent.
func (b *Barrier) MarshalWire(e *wire.Encoder) error { return b.marshal(e, "Barrier") }

// UnmarshalWire is the counterpart of MarshalWire. The error is ErrType if it is a proxy of another type.
func (b *Barrier) UnmarshalWire(d *wire.Decoder) error { return b.unmarshal(d, "Barrier") }

// A barrier is the state of a Barrier: the round that is going on.
type barrier struct {
	parties int
	*round
}

type round struct {
	arrived int
	over    bool
	err     error // why it is broken
}

type arrival struct {
	*round
	place int
}

func init() {
	kinds["Barrier"] = &kind{"Barrier", newBarrier, map[string]method{
		"wait": on((*barrier).wait), "abort": on((*barrier).abort), "reset": on((*barrier).reset),
		"waiting": on((*barrier).waiting), "broken": on((*barrier).isBroken),
	}}
}

func newBarrier(c *call) (any, error) {
	n, err := arg[int](c, 1)
	if err == nil && n < 1 {
		err = fmt.Errorf("%w: %d parties", ErrArgument, n)
	}
	return &barrier{n, new(round)}, err
}

func (b *barrier) wait(c *call) error {
	a, ok := c.arrived.(arrival)
	if !ok {
		if b.err != nil {
			return b.err
		}
		a = arrival{b.round, b.arrived}
		b.arrived++
		if b.arrived == b.parties {
			b.over = true
			b.round = new(round)
		}
		c.arrived, c.abandon = a, func() { a.breakUp(c) }
	}
	switch {
	case a.over:
		return give(c, a.place)
	case a.err != nil:
		return a.err
	}
	return errWait
}

// breakUp is what a waiter does that leaves.
func (r *round) breakUp(c *call) {
	if r.over || r.err != nil {
		return
	}
	r.err = ErrBroken
	if context.Cause(c.ctx) == errGone {
		r.err = &OwnerError{PID: c.session().pid, Err: ErrBroken}
	}
}

func (b *barrier) abort(*call) error {
	b.err = ErrBroken
	return nil
}

func (b *barrier) reset(*call) error {
	if b.err == nil && b.arrived > 0 {
		b.err = ErrBroken
	}
	b.round = new(round)
	return nil
}

func (b *barrier) waiting(c *call) error {
	if b.err != nil {
		return give(c, 0)
	}
	return give(c, b.arrived)
}

func (b *barrier) isBroken(c *call) error { return give(c, b.err != nil) }
