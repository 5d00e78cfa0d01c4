package arena

import (
	"context"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// The state word of a barrier: turn 22 | how the last 20 turns ended, 1 for a reset, 20 | arrived
// 20 | napping 1 | broken 1. The upper half changes only when the turn does.
const (
	barrierBroken  = 1
	barrierNapping = 2
	arrivedShift   = 2
	arrivedOne     = 1 << arrivedShift
	arrivedMask    = word.CountMask << arrivedShift
	historyShift   = 22
	historyMask    = 1<<20 - 1
	turnShift      = 42
	turnMask       = 1<<22 - 1
	barrierHistory = 20
)

// A Barrier blocks each goroutine that calls [Barrier.Wait] until as many have arrived as the
// barrier has parties. A participant with an open view is a member: its share counts its views, and
// its ticket word counts its waiting goroutines. The death of a member breaks the barrier.
type Barrier struct{ *Sync }

func turnOf(v uint64) uint64    { return v >> turnShift }
func arrivedCount(v uint64) int { return int(v & arrivedMask >> arrivedShift) }

// joinBarrier makes this participant a member. It first breaks the barrier if a dead participant
// still has a share: if the dead member had this seat, the new share would overwrite the evidence.
func (b Barrier) joinBarrier() {
	b.breakIfDead()
	b.addShare()
}

// Wait blocks until Parties goroutines have arrived. The last one to arrive calls action, if it is
// not nil, before any of them returns. Wait returns the number of goroutines that had arrived
// before.
//
// The barrier breaks if ctx ends first, if action fails or panics, or if a member dies. Then all
// current and later calls return [ErrBroken] until [Barrier.Reset]. After a death the error is a
// *PeerError that wraps ErrBroken. The call that broke the barrier returns the cause of its ctx, or
// an error that wraps ErrBroken and the action's error. Wait returns [ErrClosed] if the view or the
// domain is closed.
func (b Barrier) Wait(ctx context.Context, action func() error) (int, error) {
	if b.isClosed() {
		return 0, ErrClosed
	}
	b.incrementCount(&b.c.Tickets[b.d.seat])
	defer func() {
		if !b.d.closed.Load() { // after Close this seat may have another participant
			b.decrementCount(&b.c.Tickets[b.d.seat])
		}
	}()
	for {
		v := b.c.State.Load()
		n := arrivedCount(v)
		switch {
		case b.isBroken(v):
			return 0, b.brokenError()
		case n == b.Parties(): // the last party has arrived, but has not ended the turn yet
			err := b.watchUntil(ctx, func() bool {
				w := b.c.State.Load()
				return turnOf(w) != turnOf(v) || b.isBroken(w)
			})
			if err != nil {
				return 0, err
			}
		case !b.c.State.CAS(v, v+arrivedOne):
		case n+1 == b.Parties():
			return n, b.endTurn(turnOf(v), action)
		default:
			return n, b.awaitTurn(ctx, turnOf(v))
		}
	}
}

// awaitTurn blocks until the given turn has ended, and returns nil if it ended successfully. If
// this goroutine fails in a turn that has not ended, it must break the turn for the others as
// well: a reset could otherwise forget a death that only this goroutine has seen, and the turn
// would succeed for the others.
func (b Barrier) awaitTurn(ctx context.Context, turn uint64) error {
	ready := func() bool { v := b.c.State.Load(); return turnOf(v) != turn || b.isBroken(v) || b.isClosed() }
	var err error
	if !b.d.park.SpinUntil(ctx, &b.watches.Spin, ready) {
		b.napForTurn(ctx, turn, ready)
		err = b.d.park.ParkUntil(ctx, &b.c.Watching, ready, &b.watches)
	}
	if err == nil {
		err = b.closedError()
	}
	switch {
	case b.d.closed.Load():
		return err
	case !b.breakTurn(turn): // the turn has ended meanwhile, and its outcome is recorded
		return b.turnError(turn)
	case err == nil:
		return b.brokenError()
	}
	return err
}

// Note [Naps at a barrier] A futex wake ends all sleeps on one word, but the nap words of Note
// [Naps] are one per process. So a goroutine that waits at a barrier sleeps on the upper half of
// the barrier's state word instead, and all nappers can be woken by one system call.
//
// A napper must set the napping bit in the state word before it sleeps. The last participant ends
// the turn by a CAS on the word. It finds the bit in the value that its CAS replaced, and then
// wakes all nappers. A napper that calls futex(2) after this CAS does not sleep, because the kernel
// compares the word with the expected value atomically with going to sleep:
// https://man7.org/linux/man-pages/man2/futex.2.html. So a nap lasts its full time only if a
// participant dies or breaks the barrier at that moment, and it may be longer here than elsewhere.
// Other events that wake the process, such as the death of a member, end the nap too.

// barrierNap is the longest time that a nap at a barrier lasts. Tests change it.
var barrierNap = 5 * time.Millisecond

// napForTurn sleeps until ready reports true, until ctx ends, or for [barrierNap]. It may return
// early, so the caller must test its condition again, and park if it is false. It does nothing if
// another goroutine of this process naps already.
func (b Barrier) napForTurn(ctx context.Context, turn uint64, ready func() bool) {
	if word.Crashing && word.IsControlled() || !b.watches.Nap.IsDue() || !b.d.park.StartNapAt(ctx, &b.c.State) {
		return
	}
	defer b.d.park.FinishNapAt()
	end := time.Now().Add(barrierNap)
	for ctx.Err() == nil && !ready() {
		v := b.c.State.Load()
		left := time.Until(end)
		switch {
		case left <= 0:
			b.watches.Nap.RecordResult(false)
			return
		case turnOf(v) != turn || v&barrierNapping == 0 && !b.c.State.CAS(v, v|barrierNapping):
		default:
			b.c.State.FutexWaitUpper(uint32(v>>32), left)
		}
	}
	b.watches.Nap.RecordResult(true)
}

// wakeAll wakes all goroutines that wait at the barrier, in every process. v is the value of the
// state word that the caller has just replaced: the nappers' bit is in it.
func (b Barrier) wakeAll(v uint64) {
	if v&barrierNapping != 0 {
		b.c.State.FutexWakeUpper()
	}
	b.d.park.WakeBits(&b.c.Watching)
}

// endTurn runs action, which may be nil, and then ends the turn. It is called by the last party
// to arrive. If action fails, the error wraps [ErrBroken] and action's error. If the barrier
// broke meanwhile, endTurn returns the error of [Barrier.brokenError].
func (b Barrier) endTurn(turn uint64, action func() error) error {
	if action != nil {
		done := false
		defer func() {
			if !done { // action has panicked
				b.breakTurn(turn)
			}
		}()
		err := action()
		done = true
		if err != nil {
			b.breakTurn(turn)
			return fmt.Errorf("%w: %w", ErrBroken, err)
		}
	}
	for {
		v := b.c.State.Load()
		switch {
		case turnOf(v) != turn: // the barrier was reset
			return b.brokenError()
		case b.isBroken(v):
			if b.breakTurn(turn) {
				return b.brokenError()
			}
		case b.c.State.CAS(v, nextTurn(v, 0)):
			b.wakeAll(v)
			return nil
		}
	}
}

// nextTurn returns the state word of the turn after v, with no arrivals. reset is 1 if turn v ends
// by a reset, and 0 if it succeeded.
func nextTurn(v, reset uint64) uint64 {
	history := (v>>historyShift<<1 | reset) & historyMask
	return (turnOf(v)+1)&turnMask<<turnShift | history<<historyShift
}

// turnError returns the outcome of a turn that is over: nil, or [ErrBroken] if it ended by a reset.
// It also returns ErrBroken for a turn older than the history in the state word.
func (b Barrier) turnError(turn uint64) error {
	v := b.c.State.Load()
	ago := (turnOf(v) - turn) & turnMask // 1 for the turn before the current one
	if ago > barrierHistory || v>>historyShift>>(ago-1)&1 != 0 {
		return ErrBroken
	}
	return nil
}

// breakTurn breaks the barrier unless the given turn is over. It reports whether the barrier is
// broken in this turn.
//
// The turn number and the broken bit are in one word (docs/memory.md, "Cells"), so a barrier that
// has begun its next turn cannot be broken by a participant of an earlier one.
func (b Barrier) breakTurn(turn uint64) bool {
	for {
		v := b.c.State.Load()
		if turnOf(v) != turn {
			return false
		}
		if v&barrierBroken != 0 {
			return true
		}
		if b.c.State.CAS(v, v|barrierBroken) {
			b.wakeAll(v)
			return true
		}
	}
}

// Abort breaks the barrier in its current turn, and has each [Barrier.Watch] evaluate its condition
// again.
func (b Barrier) Abort() {
	b.breakCurrentTurn()
	b.d.park.WakeBits(&b.c.Watching)
}

// breakCurrentTurn breaks the barrier in its current turn, and retries if the turn changes
// meanwhile.
func (b Barrier) breakCurrentTurn() {
	for !b.breakTurn(turnOf(b.c.State.Load())) {
	}
}

// Watch blocks until ready reports true or ctx ends, and then returns nil or the cause of ctx.
// The caller is not counted as a party. Watch calls ready at the end of each turn, after each
// [Barrier.Abort], and when a participant of the domain was found dead. ready must be fast, and
// must not block. Watch returns [ErrClosed] if the view or the domain is closed. It parks
// without spinning, because the events that it waits for are rare.
func (b Barrier) Watch(ctx context.Context, ready func() bool) error {
	wake := func() bool { return ready() || b.isClosed() }
	if err := b.d.park.ParkUntil(ctx, &b.c.Watching, wake, nil); err != nil {
		return err
	}
	return b.closedError()
}

// Lost returns the number of members that are marked dead. Unlike [Barrier.Dead] it makes no system
// calls, so it may miss a death that no reaper has noticed yet.
func (b Barrier) Lost() (n int) {
	b.forEachDeadShare(func(int, uint64) bool { n++; return true })
	return n
}

// Reset repairs the barrier and begins a new turn. Goroutines that wait in the current turn get
// [ErrBroken]. Members that died are no longer members.
func (b Barrier) Reset() {
	b.forEachDeadShare(func(i int, v uint64) bool {
		b.c.Shares[i].CAS(v, v&word.IdentityMask)
		return true
	})
	b.c.Dead.Store(0)
	for {
		if v := b.c.State.Load(); b.c.State.CAS(v, nextTurn(v, 1)) {
			b.wakeAll(v)
			return
		}
	}
}

// Broken reports whether the barrier is broken.
func (b Barrier) Broken() bool { return b.isBroken(b.c.State.Load()) }

// Parties returns the number of goroutines that must arrive before Wait returns.
func (b Barrier) Parties() int { return int(b.c.Limit.Load()) }

// Waiting returns the number of goroutines that have arrived in the current turn. It is 0 if the
// barrier is broken.
func (b Barrier) Waiting() int {
	if v := b.c.State.Load(); !b.isBroken(v) {
		return arrivedCount(v)
	}
	return 0
}

// Dead returns the members that have died since the last [Barrier.Reset]. It misses a member if a
// new participant has taken its seat and joined the barrier. Dead asks for the proof of life of
// each seat, so it also finds a death that no reaper has noticed yet.
func (b Barrier) Dead() (dead []*PeerError) {
	for i := range b.d.mem.CountSeats() {
		v := b.c.Shares[i].Load()
		if v&word.CountMask == 0 || i == b.d.seat {
			continue
		}
		alive, err := b.d.store.isAlive(i)
		if b.d.isGone(i, v) || err == nil && !alive {
			dead = append(dead, &PeerError{PID: int(v >> word.PIDShift), Seat: i, Cause: ErrBroken})
		}
	}
	return dead
}

// isBroken reports whether state word v is marked broken, or whether a dead participant has a
// share.
func (b Barrier) isBroken(v uint64) bool { return v&barrierBroken != 0 || b.hasDeadShare() }

// breakIfDead breaks the barrier if a dead participant has a share, and records that participant as
// the reason.
func (b Barrier) breakIfDead() {
	b.forEachDeadShare(func(i int, v uint64) bool {
		b.c.Dead.Store(v&word.IdentityMask | uint64(i)<<word.SeatShift)
		b.breakCurrentTurn()
		return false
	})
}

// breakByDeath breaks the barrier because a process died before it could become a member (Note
// [Early deaths]). If an earlier death is recorded, that one stays the reason.
func (b Barrier) breakByDeath(pid int) {
	b.c.Dead.CAS(0, unbornIdentity(pid))
	b.Abort()
}

// brokenError returns the error of a broken barrier: a *PeerError that names the dead member, if
// one is recorded, and otherwise [ErrBroken].
func (b Barrier) brokenError() error {
	b.breakIfDead()
	if w := b.c.Dead.Load(); w != 0 {
		return newPeerError(word.Lock(w), ErrBroken)
	}
	return ErrBroken
}
