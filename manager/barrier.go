package manager

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Barrier blocks a fixed number of callers until all of them have arrived. If a waiting caller
// dies, is canceled or exceeds its deadline, the barrier breaks for all callers until
// [Barrier.Reset].
type Barrier struct {
	typed[Barrier]

	// Action, if not nil, is called once per round by the last caller to arrive, before any caller
	// is released. The barrier breaks if Action returns an error or panics, or if its process dies.
	// Action is not sent with a proxy, so every process that may arrive last must set it.
	Action func() error `wire:"-"`
}

// NewBarrier creates a barrier for the given number of parties. The caller must close it. It
// returns [ErrArgument] if parties is less than 1.
func NewBarrier(ctx context.Context, m *Manager, parties int) (*Barrier, error) {
	p, err := createTyped[Barrier](ctx, m, barrierKind, encodeArg(parties))
	return &Barrier{typed: p}, err
}

// Wait blocks until all parties have arrived and the Action, if any, has succeeded. It returns
// the caller's position in the order of arrival, from 0 to parties-1, so that exactly one caller
// gets 0 and can act as the leader.
//
// If ctx is done first, Wait breaks the barrier until [Barrier.Reset]: all callers get
// [ErrBroken], and the error of this caller also wraps the error of ctx. [Barrier.Abort], a
// failing Action and the death of a waiting caller break it as well. After a death the error is
// a *shm.PeerError that identifies the process.
func (b *Barrier) Wait(ctx context.Context) (int, error) {
	place, turn, err := twoResults[int, uint64](b.callUndo(ctx, barrierMiss.newRequest, barrierWait,
		encodeArg(b.Action != nil)))
	switch {
	case err == nil && turn != 0:
		err = b.runAction(ctx, turn)
	case ctx.Err() != nil && errors.As(err, new(unsent)):
		b.callRegardless(ctx, barrierAbort)
		fallthrough
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		err = fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return place, err
}

// runAction runs b.Action and then reports to the server that the round with number turn has
// ended. If Action fails, the error wraps [ErrBroken] and the error of Action.
func (b *Barrier) runAction(ctx context.Context, turn uint64) error {
	done := false
	defer func() {
		if !done { // Action panics
			b.endRound(ctx, turn, false)
		}
	}()
	err := b.Action()
	done = true
	if e := b.endRound(ctx, turn, err == nil); err == nil {
		return e
	}
	return fmt.Errorf("%w: %w", ErrBroken, err)
}

// endRound reports the outcome of the action of round turn to the server: well is true if it
// succeeded. The server then releases the other callers or breaks the barrier. It returns
// [ErrBroken] if the barrier was broken or reset during the action.
func (b *Barrier) endRound(ctx context.Context, turn uint64, well bool) error {
	return b.callRegardless(ctx, barrierEnd, encodeArg(turn), encodeArg(well))
}

// callRegardless makes a call even if ctx is done. In that case it waits at most [giveUpTime]
// for the reply, and then returns the error of ctx; the call may still be executed.
func (b *Barrier) callRegardless(ctx context.Context, method *method, args ...argument) error {
	told := make(chan error, 1)
	go func() { told <- b.call(context.WithoutCancel(ctx), method, args...).noResult() }()
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-told:
		return err
	case <-time.After(giveUpTime):
		return contextError(ctx, method.name)
	}
}

// Abort breaks the barrier: every Wait returns [ErrBroken] until [Barrier.Reset].
func (b *Barrier) Abort(ctx context.Context) error { return b.call(ctx, barrierAbort).noResult() }

// Reset restores the barrier to its initial state. Waiting callers get [ErrBroken].
func (b *Barrier) Reset(ctx context.Context) error { return b.call(ctx, barrierReset).noResult() }

// Parties returns the number of parties.
func (b *Barrier) Parties(ctx context.Context) (int, error) {
	return oneResult[int](b.call(ctx, barrierCount))
}

// Waiting returns the number of waiting parties.
func (b *Barrier) Waiting(ctx context.Context) (int, error) {
	return oneResult[int](b.call(ctx, barrierWaiting))
}

// Broken reports whether the barrier is broken.
func (b *Barrier) Broken(ctx context.Context) (bool, error) {
	return oneResult[bool](b.call(ctx, barrierIsBroken))
}

// A barrier is the server's state of a Barrier, with the current round.
type barrier struct {
	parties int
	last    uint64 // number of the last round; rounds start at 1
	*round
}

type round struct {
	number  uint64
	arrived int
	actor   *session // the last party to arrive, which runs the action
	over    bool
	err     error // why the barrier is broken
}

type arrival struct {
	*round
	place int
}

// Methods of a Barrier.
var (
	barrierKind = newKind("Barrier", newBarrier)

	barrierWait     = defineMethod(barrierKind, "wait", (*barrier).wait)
	barrierEnd      = defineMethod(barrierKind, "end", (*barrier).endRound)
	barrierMiss     = defineMethod(barrierKind, "miss", (*barrier).breakMissedEnd)
	barrierAbort    = defineMethod(barrierKind, "abort", (*barrier).abort)
	barrierReset    = defineMethod(barrierKind, "reset", (*barrier).reset)
	barrierCount    = defineMethod(barrierKind, "parties", (*barrier).count)
	barrierWaiting  = defineMethod(barrierKind, "waiting", (*barrier).waiting)
	barrierIsBroken = defineMethod(barrierKind, "broken", (*barrier).isBroken)
)

func newBarrier(c *call) (any, error) {
	n, err := decodeArg[int](c, 0)
	if err == nil && n < 1 {
		err = fmt.Errorf("%w: %d parties, want at least 1", ErrArgument, n)
	}
	b := &barrier{parties: n}
	b.startRound()
	return b, err
}

// startRound starts a new round without arrivals, error or actor. The waiting parties of the
// previous round keep that round, so its outcome must be set before.
func (b *barrier) startRound() {
	b.last++
	b.round = &round{number: b.last}
}

// wait is called again after each change while the caller of [Barrier.Wait] waits. When the
// round is over, it replies with the caller's position. If the caller must run the action and
// end the round, it also replies with the number of the round, or else with 0. It returns
// errWait while the caller must wait, and the reason if the barrier is broken.
func (b *barrier) wait(c *call) error {
	a, ok := c.arrived.(arrival)
	if !ok {
		acts, err := decodeArg[bool](c, 0)
		switch {
		case err != nil:
			return err
		case b.err != nil:
			return b.err
		case b.actor != nil:
			return errWait // until the next round
		}
		a = arrival{b.round, b.arrived}
		b.arrived++
		if b.arrived == b.parties && acts {
			b.actor = c.session()
			return b.addPosition(c, a.place, b.number)
		}
		if b.arrived == b.parties {
			b.releaseParties()
		}
		c.arrived, c.abandon = a, func() { a.breakRound(c) }
	}
	switch {
	case a.over:
		return b.addPosition(c, a.place, 0)
	case a.err != nil:
		return a.err
	}
	return errWait
}

func (b *barrier) addPosition(c *call, place int, turn uint64) error {
	if err := addResult(c, place); err != nil {
		return err
	}
	return addResult(c, turn)
}

// releaseParties ends the current round successfully, which releases all waiting parties, and
// starts the next round.
func (b *barrier) releaseParties() {
	b.over = true
	b.startRound()
}

// endRound is called by the actor of a round after its action. The argument says whether the
// action succeeded. It returns [ErrBroken] if the barrier was broken or reset meanwhile.
func (b *barrier) endRound(c *call) error {
	number, err := decodeArg[uint64](c, 0)
	if err != nil {
		return err
	}
	well, err := decodeArg[bool](c, 1)
	switch {
	case err != nil:
		return err
	case number != b.number || b.actor != c.session(): // the barrier was reset during the action
		return ErrBroken
	case b.err != nil:
		return b.err
	case well:
		b.releaseParties()
	default:
		b.err = ErrBroken
	}
	return nil
}

// breakMissedEnd breaks the barrier on behalf of an actor that stopped waiting for the reply of
// its Wait, so that it will not run the action. It does nothing if that round is over.
func (b *barrier) breakMissedEnd(c *call) error {
	number, err := decodeArg[uint64](c, 1)
	if err != nil || number != b.number || b.actor != c.session() || b.err != nil {
		return err
	}
	b.err = ErrBroken
	return nil
}

// breakRound breaks the round because the party of call c stopped waiting. If its process died,
// the error of the others is a *[shm.PeerError]. It does nothing if the round is over or broken
// already.
func (r *round) breakRound(c *call) {
	if r.over || r.err != nil {
		return
	}
	r.err = ErrBroken
	if context.Cause(c.ctx) == errGone {
		r.err = newPeerError(c.session().pid, ErrBroken)
	}
}

// endSession breaks the barrier if s is the session of the actor of the current round: its
// process died during the action.
func (b *barrier) endSession(s *session) {
	if b.actor == s && b.err == nil {
		b.err = newPeerError(s.pid, ErrBroken)
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
	b.startRound()
	return nil
}

func (b *barrier) count(c *call) error { return addResult(c, b.parties) }

func (b *barrier) waiting(c *call) error {
	if b.err != nil {
		return addResult(c, 0)
	}
	return addResult(c, b.arrived)
}

func (b *barrier) isBroken(c *call) error { return addResult(c, b.err != nil) }
