package manager

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Barrier lets a number of callers go on together. If a caller that waits dies, is cancelled or
// reaches its deadline, the barrier is broken for all until Reset.
type Barrier struct {
	typed[Barrier]

	// Action is called once in each turn, by the last caller that comes, before any caller goes on.
	// If it returns an error or panics, or its process dies, the barrier is broken. A function does
	// not travel with a proxy, so set Action in every process that may be the last.
	Action func() error `wire:"-"`
}

// NewBarrier makes a barrier for a number of parties. The caller closes it.
func NewBarrier(ctx context.Context, m *Manager, parties int) (*Barrier, error) {
	p, err := create[Barrier](ctx, m, barrierKind, in(parties))
	return &Barrier{typed: p}, err
}

// Wait waits for all parties and returns the order in which the caller came, 0 to parties-1. Let
// the caller that gets 0 do what only one of them is to do.
//
// If ctx ends first, the barrier is broken until Reset: every Wait returns ErrBroken, and the
// caller's error is also that of ctx. An Abort, an Action that fails and the death of a caller that
// waits break it as well; after a death the error is a *shm.PeerError that names the process.
func (b *Barrier) Wait(ctx context.Context) (int, error) {
	place, turn, err := pair[int, uint64](b.callUndo(ctx, barrierMiss.with, barrierWait, in(b.Action != nil)))
	switch {
	case err == nil && turn != 0:
		err = b.act(ctx, turn)
	case ctx.Err() != nil && errors.As(err, new(unsent)):
		b.tell(ctx, barrierAbort)
		fallthrough
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return place, err
}

// act runs the action of a turn and ends the turn.
func (b *Barrier) act(ctx context.Context, turn uint64) error {
	done := false
	defer func() {
		if !done { // it panics
			b.end(ctx, turn, false)
		}
	}()
	err := b.Action()
	done = true
	if e := b.end(ctx, turn, err == nil); err == nil {
		return e
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// end tells the server how the action went. The others wait for that.
func (b *Barrier) end(ctx context.Context, turn uint64, well bool) error {
	return b.tell(ctx, barrierEnd, in(turn), in(well))
}

// tell makes a call that is made also if ctx has ended; only this caller does not wait for it then.
func (b *Barrier) tell(ctx context.Context, method *method, args ...argument) error {
	told := make(chan error, 1)
	go func() { told <- b.call(context.WithoutCancel(ctx), method, args...).none() }()
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-told:
		return err
	case <-time.After(giveUpTime):
		return cause(ctx, method.name)
	}
}

// Abort breaks the barrier: every Wait returns ErrBroken until Reset.
func (b *Barrier) Abort(ctx context.Context) error { return b.call(ctx, barrierAbort).none() }

// Reset makes the barrier as new. A Wait that is going on returns ErrBroken.
func (b *Barrier) Reset(ctx context.Context) error { return b.call(ctx, barrierReset).none() }

// Parties returns how many parties the barrier waits for.
func (b *Barrier) Parties(ctx context.Context) (int, error) {
	return one[int](b.call(ctx, barrierCount))
}

// Waiting returns how many parties are waiting.
func (b *Barrier) Waiting(ctx context.Context) (int, error) {
	return one[int](b.call(ctx, barrierWaiting))
}

// Broken reports whether the barrier is broken.
func (b *Barrier) Broken(ctx context.Context) (bool, error) {
	return one[bool](b.call(ctx, barrierIsBroken))
}

// A barrier is the state of a Barrier: the round that is going on.
type barrier struct {
	parties int
	last    uint64 // number of a round, which is not 0
	*round
}

type round struct {
	number  uint64
	arrived int
	actor   *session // the last one to come, at its action
	over    bool
	err     error // why it is broken
}

type arrival struct {
	*round
	place int
}

// What can be asked of a Barrier.
var (
	barrierKind = newKind("Barrier", newBarrier)

	barrierWait     = define(barrierKind, "wait", (*barrier).wait)
	barrierEnd      = define(barrierKind, "end", (*barrier).end)
	barrierMiss     = define(barrierKind, "miss", (*barrier).miss)
	barrierAbort    = define(barrierKind, "abort", (*barrier).abort)
	barrierReset    = define(barrierKind, "reset", (*barrier).reset)
	barrierCount    = define(barrierKind, "parties", (*barrier).count)
	barrierWaiting  = define(barrierKind, "waiting", (*barrier).waiting)
	barrierIsBroken = define(barrierKind, "broken", (*barrier).isBroken)
)

func newBarrier(c *call) (any, error) {
	n, err := arg[int](c, 0)
	if err == nil && n < 1 {
		err = fmt.Errorf("%w: %d parties", ErrArgument, n)
	}
	b := &barrier{parties: n}
	b.next()
	return b, err
}

// next begins a round.
func (b *barrier) next() {
	b.last++
	b.round = &round{number: b.last}
}

// wait gives the caller's place, and the number of the round if it is to act and to end it.
func (b *barrier) wait(c *call) error {
	a, ok := c.arrived.(arrival)
	if !ok {
		acts, err := arg[bool](c, 0)
		switch {
		case err != nil:
			return err
		case b.err != nil:
			return b.err
		case b.actor != nil:
			return errWait // for the next round
		}
		a = arrival{b.round, b.arrived}
		b.arrived++
		if b.arrived == b.parties && acts {
			b.actor = c.session()
			return b.place(c, a.place, b.number)
		}
		if b.arrived == b.parties {
			b.pass()
		}
		c.arrived, c.abandon = a, func() { a.breakUp(c) }
	}
	switch {
	case a.over:
		return b.place(c, a.place, 0)
	case a.err != nil:
		return a.err
	}
	return errWait
}

func (b *barrier) place(c *call, place int, turn uint64) error {
	if err := give(c, place); err != nil {
		return err
	}
	return give(c, turn)
}

// pass lets everybody go on.
func (b *barrier) pass() {
	b.over = true
	b.next()
}

// end is what the actor of a round says: whether all went well.
func (b *barrier) end(c *call) error {
	number, err := arg[uint64](c, 0)
	if err != nil {
		return err
	}
	well, err := arg[bool](c, 1)
	switch {
	case err != nil:
		return err
	case number != b.number || b.actor != c.session(): // it was reset meanwhile
		return ErrBroken
	case b.err != nil:
		return b.err
	case well:
		b.pass()
	default:
		b.err = ErrBroken
	}
	return nil
}

// miss is for a caller that was to act, and is not there any more.
func (b *barrier) miss(c *call) error {
	if number, err := arg[uint64](c, 1); err != nil || number != b.number || b.actor != c.session() || b.err != nil {
		return err
	}
	b.err = ErrBroken
	return nil
}

// breakUp is what a waiter does that leaves.
func (r *round) breakUp(c *call) {
	if r.over || r.err != nil {
		return
	}
	r.err = ErrBroken
	if context.Cause(c.ctx) == errGone {
		r.err = died(c.session().pid, ErrBroken)
	}
}

// leave breaks the barrier if it is the actor who is gone.
func (b *barrier) leave(s *session) {
	if b.actor == s && b.err == nil {
		b.err = died(s.pid, ErrBroken)
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
	b.next()
	return nil
}

func (b *barrier) count(c *call) error { return give(c, b.parties) }

func (b *barrier) waiting(c *call) error {
	if b.err != nil {
		return give(c, 0)
	}
	return give(c, b.arrived)
}

func (b *barrier) isBroken(c *call) error { return give(c, b.err != nil) }
