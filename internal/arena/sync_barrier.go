package arena

import (
	"context"
	"fmt"
	"time"
)

// The state word of a barrier: turn 22 | how the last 20 turns ended, 1 for a reset | arrived 20 |
// napping 1 | broken 1. The upper half changes with the turn only.
const (
	barrierBroken  = 1
	barrierNapping = 2
	arrivedShift   = 2
	arrivedOne     = 1 << arrivedShift
	arrivedMask    = countMask << arrivedShift
	historyShift   = 22
	historyMask    = 1<<20 - 1
	turnShift      = 42
	turnMask       = 1<<22 - 1
	barrierHistory = 20
)

// A Barrier lets so many goroutines of its participants go on together. Each participant that has a
// view of it is a member: its share counts the views, and its ticket word its waiting goroutines.
// The death of a member breaks the barrier.
type Barrier struct{ *Sync }

func turnOf(v uint64) uint64 { return v >> turnShift }
func arrived(v uint64) int   { return int(v & arrivedMask >> arrivedShift) }

// join makes this participant a member. It does not hide the death of a member that was in the same
// seat before.
func (b Barrier) join() {
	b.breakIfDead()
	b.share()
}

// Wait waits until as many have come as the barrier has parties, of which the last calls action,
// unless it is nil, before anybody goes on. It returns how many had come before. If ctx ends first,
// if action fails, or when a member dies, the barrier is broken: until Reset, the error of all
// that are there or come is ErrBroken, in a *PeerError if it was a death.
func (b Barrier) Wait(ctx context.Context, action func() error) (int, error) {
	if b.over() {
		return 0, ErrClosed
	}
	b.more(&b.c.tickets[b.d.seat])
	defer func() {
		if !b.d.closed.Load() { // what it left belongs to others now
			b.less(&b.c.tickets[b.d.seat])
		}
	}()
	for {
		v := b.c.state.Load()
		n := arrived(v)
		switch {
		case b.broken(v):
			return 0, b.why()
		case n == b.Parties(): // the last one is there, and has not ended the turn
			err := b.watch(ctx, func() bool { w := b.c.state.Load(); return turnOf(w) != turnOf(v) || b.broken(w) })
			if err != nil {
				return 0, err
			}
		case !b.c.state.CAS(v, v+arrivedOne):
		case n+1 == b.Parties():
			return n, b.end(turnOf(v), action)
		default:
			return n, b.await(ctx, turnOf(v))
		}
	}
}

// await waits for the end of the turn.
func (b Barrier) await(ctx context.Context, turn uint64) error {
	ready := func() bool { v := b.c.state.Load(); return turnOf(v) != turn || b.broken(v) || b.over() }
	var err error
	if !b.d.spin(&b.watches.spin, ready) {
		b.nap(ctx, turn, ready)
		err = b.d.park.await(ctx, b.d, &b.c.watching, ready, &b.watches)
	}
	if err == nil {
		err = b.ended()
	}
	switch {
	case b.d.closed.Load():
		return err
	case !b.breakTurn(turn): // so that it ends badly for all, also if a reset forgets the death that we have seen
		return b.turnError(turn)
	case err == nil:
		return b.why()
	}
	return err
}

// Note [Naps at a barrier] One system call wakes all that nap on one word, whereas the nap words of
// Note [Naps] are one for each process. So a goroutine that waits at a barrier naps on the upper
// half of the barrier's state word. It says so by a bit in that word before it sleeps. The last
// participant ends the turn by a CAS on the word, finds the bit in the value that it replaced, and
// wakes all nappers. A napper that comes to sleep after that CAS does not, since the kernel
// compares the turn. A nap may be longer here than elsewhere, since no nap lasts to its end unless
// a participant dies or breaks the barrier at that moment. What else wakes the process, such as the
// death of a member, ends the nap.

// barrierNap is how long such a nap lasts at most. Tests change it.
var barrierNap = 5 * time.Millisecond

// nap sleeps until ready, until ctx ends, or for barrierNap. The caller looks again, and parks.
func (b Barrier) nap(ctx context.Context, turn uint64, ready func() bool) {
	p := &b.d.park
	if crashing && controlled() || !b.watches.nap.due() || !p.napper.TryLock() {
		return
	}
	defer p.napper.Unlock()
	p.napsAt.Store(&b.c.state)
	defer p.napsAt.Store(nil)
	p.alarm.set(ctx, b.d.wakeUp)
	end := time.Now().Add(barrierNap)
	for ctx.Err() == nil && !ready() {
		v := b.c.state.Load()
		left := time.Until(end)
		switch {
		case left <= 0:
			b.watches.nap.learn(false)
			return
		case turnOf(v) != turn || v&barrierNapping == 0 && !b.c.state.CAS(v, v|barrierNapping):
		default:
			b.c.state.sleepUpper(uint32(v>>32), left)
		}
	}
	b.watches.nap.learn(true)
}

// wakeAll wakes all that wait at the barrier, whose state was v before it changed.
func (b Barrier) wakeAll(v uint64) {
	if v&barrierNapping != 0 {
		b.c.state.wakeUpper()
	}
	b.d.wakeBits(&b.c.watching)
}

// end runs the action and ends the turn.
func (b Barrier) end(turn uint64, action func() error) error {
	if action != nil {
		done := false
		defer func() {
			if !done { // it panics
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
		v := b.c.state.Load()
		switch {
		case turnOf(v) != turn: // it was reset
			return b.why()
		case b.broken(v):
			if b.breakTurn(turn) {
				return b.why()
			}
		case b.c.state.CAS(v, nextTurn(v, 0)):
			b.wakeAll(v)
			return nil
		}
	}
}

// nextTurn returns the state after a turn that ended in one of two ways, with nobody there.
func nextTurn(v, reset uint64) uint64 {
	history := (v>>historyShift<<1 | reset) & historyMask
	return (turnOf(v)+1)&turnMask<<turnShift | history<<historyShift
}

// turnError returns how a turn that is over has ended: nil, or ErrBroken.
func (b Barrier) turnError(turn uint64) error {
	v := b.c.state.Load()
	ago := (turnOf(v) - turn) & turnMask // 1 is the turn before this one
	if ago > barrierHistory || v>>historyShift>>(ago-1)&1 != 0 {
		return ErrBroken
	}
	return nil
}

// breakTurn breaks the barrier if turn is not over, and reports whether it is broken in this turn.
//
// The turn is in the same word (docs/memory.md, "Cells"): a barrier that has gone on to the next
// turn cannot be broken in the one before.
func (b Barrier) breakTurn(turn uint64) bool {
	for {
		v := b.c.state.Load()
		if turnOf(v) != turn {
			return false
		}
		if v&barrierBroken != 0 {
			return true
		}
		if b.c.state.CAS(v, v|barrierBroken) {
			b.wakeAll(v)
			return true
		}
	}
}

// Abort breaks the barrier, in whatever turn it is, and has those who Watch it look again.
func (b Barrier) Abort() {
	b.breakNow()
	b.d.wakeBits(&b.c.watching)
}

func (b Barrier) breakNow() {
	for !b.breakTurn(turnOf(b.c.state.Load())) {
	}
}

// Watch waits until ready or until ctx ends, and is no party. ready is asked at the end of each
// turn, after each Abort, and when a participant of the domain was found dead; it must be quick. It
// parks at once: what it waits for is rare.
func (b Barrier) Watch(ctx context.Context, ready func() bool) error {
	wake := func() bool { return ready() || b.over() }
	if err := b.d.park.await(ctx, b.d, &b.c.watching, wake, nil); err != nil {
		return err
	}
	return b.ended()
}

// Lost returns how many members are known to be gone: the quick part of Dead.
func (b Barrier) Lost() (n int) {
	b.sharesOfDead(func(int, uint64) bool { n++; return true })
	return n
}

// Reset makes the barrier as new. Those that wait in it get ErrBroken; members that died are no
// members any more.
func (b Barrier) Reset() {
	b.sharesOfDead(func(i int, v uint64) bool {
		b.c.shares[i].CAS(v, v&idMask)
		return true
	})
	b.c.dead.Store(0)
	for {
		if v := b.c.state.Load(); b.c.state.CAS(v, nextTurn(v, 1)) {
			b.wakeAll(v)
			return
		}
	}
}

// Broken reports whether the barrier is broken.
func (b Barrier) Broken() bool { return b.broken(b.c.state.Load()) }

// Parties returns for how many the barrier is.
func (b Barrier) Parties() int { return int(b.c.limit.Load()) }

// Waiting returns how many are there, 0 if the barrier is broken.
func (b Barrier) Waiting() int {
	if v := b.c.state.Load(); !b.broken(v) {
		return arrived(v)
	}
	return 0
}

// Dead returns the members that have died since the last Reset, as far as their seats were not
// taken by others. It asks for proofs of life, so it knows of a death that no reaper has found yet.
func (b Barrier) Dead() (dead []*PeerError) {
	for i := range b.seats() {
		v := b.c.shares[i].Load()
		if v&countMask == 0 || i == b.d.seat {
			continue
		}
		alive, err := b.d.store.alive(i)
		if b.d.gone(i, v) || err == nil && !alive {
			dead = append(dead, &PeerError{PID: int(v >> idPIDShift), Seat: i, Cause: ErrBroken})
		}
	}
	return dead
}

func (b Barrier) broken(v uint64) bool { return v&barrierBroken != 0 || b.bereft() }

// breakIfDead breaks the barrier for good if a member is gone.
func (b Barrier) breakIfDead() {
	b.sharesOfDead(func(i int, v uint64) bool {
		b.c.dead.Store(v&idMask | uint64(i)<<idSeatShift)
		b.breakNow()
		return false
	})
}

// lose breaks the barrier for good because of the death of a process that was to become a member.
// An earlier death stays the reason.
func (b Barrier) lose(pid int) {
	b.c.dead.CAS(0, unborn(pid))
	b.Abort()
}

// why says why the barrier is broken.
func (b Barrier) why() error {
	b.breakIfDead()
	if w := b.c.dead.Load(); w != 0 {
		return bereaved(lockWord(w), ErrBroken)
	}
	return ErrBroken
}
