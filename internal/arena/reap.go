package arena

import (
	"context"
	"fmt"
)

// Reap takes back what participants that are proven dead have held, and returns how many of them it
// finished. Any process may call it at any time. A participant calls it by itself when it learns of
// a death. docs/memory.md has the steps.
func (d *Domain) Reap() (int, error) {
	if crashing && reaperHeld() {
		return 0, nil
	}
	d.hdr.deathEpoch.Add(1)
	total := 0
	for {
		seen := d.hdr.deathEpoch.Load()
		n, err := d.reapDead()
		total += n
		if err != nil || d.hdr.deathEpoch.Load() == seen {
			return total, err
		}
	}
}

// reapDead reaps under the recovery lock. Where the lock is taken it does nothing. The lane comes
// first: once Close has it, this process reaps nobody but itself.
//
// A process that finds the lock taken leaves its dead to the holder (docs/memory.md, "Notice"),
// which looks at the death epoch before it stops: so one of the two reaps each death that is
// noticed.
func (d *Domain) reapDead() (int, error) {
	l := &d.lanes[reaperLane]
	if !l.tryLock() {
		d.park.wakeup() // Close may wait for a holder that has died
		return 0, nil
	}
	defer l.unlock()
	holder, ok := d.lockRecovery()
	if !ok {
		d.wakeReaper(holder)
		return 0, nil
	}
	defer d.unlockRecovery()
	return d.reapLocked(l)
}

func (d *Domain) reapLocked(l *lane) (int, error) {
	dead, n, err := d.findDead()
	if n == 0 || err != nil {
		return 0, err
	}
	d.park.doubt.reaps(d, dead)
	if !d.reap(l, dead) {
		return 0, nil
	}
	n = d.releaseDead(dead)
	d.hdr.reaped.Add(uint64(n))
	return n, nil
}

// deadSet is the participants that are being reaped.
type deadSet [maxParticipants]bool

func (s *deadSet) lane(id uint32) bool { return s[id/lanesPerSeat] }

func (s *deadSet) word(i int) (bits uint64) {
	for j := range 64 {
		if s[i*64+j] {
			bits |= 1 << j
		}
	}
	return bits
}

// findDead marks every participant DEAD whose proof of life is gone.
//
// A participant is dead when its proof of life is gone, and by nothing else (docs/memory.md, "The
// reaper"): the kernel gives the lock of a byte back when the process has ended, so no word that it
// wrote can come later.
func (d *Domain) findDead() (*deadSet, int, error) {
	var dead deadSet
	n := 0
	for s := range d.parts {
		p := &d.parts[s]
		v := p.state.Load()
		if v.is(participantFree) || s == d.seat {
			continue
		}
		alive, err := d.store.alive(s)
		if err != nil {
			return nil, 0, fmt.Errorf("ask whether participant %d lives: %w", s, err)
		}
		if alive {
			continue
		}
		if !v.is(participantDead) {
			p.state.CAS(v, v.become(participantDead))
		}
		dead[s] = true
		n++
	}
	return &dead, n, nil
}

// Unreaped reports whether a participant has died from which not everything was taken back yet,
// because another process reaps it or has to wait.
func (d *Domain) Unreaped() (bool, error) {
	if d.closed.Load() {
		return false, ErrClosed
	}
	for s := range d.parts {
		v := d.parts[s].state.Load() & 0xff
		if v == participantFree || s == d.seat {
			continue
		}
		if alive, err := d.store.alive(s); err != nil || !alive {
			return true, err
		}
	}
	return false, nil
}

// depart reaps this process itself, in whose lanes nothing goes on any more. Participants that
// learn of a death meanwhile leave it to the holder of the recovery lock, which is this one. So it
// tells them to look again when it lets go of the lock, and until then it has a watcher.
//
// A participant that leaves reaps itself as the dead are reaped: there is one way to take back what
// a participant has.
func (d *Domain) depart() {
	l := &d.lanes[reaperLane]
	l.lock() // for good: a goroutine that wakes late must not reap under a name that is another participant's
	p := &d.parts[d.seat]
	v := p.state.Load()
	p.state.CAS(v, v.become(participantDead))
	var dead deadSet
	dead[d.seat] = true
	ctx, cancel := d.departureTime()
	defer cancel()
	for {
		if _, ok := d.lockRecovery(); ok {
			break
		}
		if d.park.await(ctx, d, &d.hdr.xowait, d.freeRecovery, nil) != nil {
			d.announce() // our proof of life ends: another participant reaps us like the dead
			return
		}
	}
	done := d.reap(l, &dead)
	d.unlockRecovery()
	d.announce()
	if done {
		d.vacate(d.seat)
	}
}

// departureTime is for how long a participant that leaves waits for the recovery lock, whose holder
// may be stopped, or be garbage.
func (d *Domain) departureTime() (context.Context, context.CancelFunc) {
	if crashing && controlled() {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), stampTime)
}

// reap is one pass of the reaper over the dead, in lane l. Every step may be repeated by another
// reaper after this one died in it. It reports false where a living lane is in the way, whose end
// wakes this process.
//
// Steps 1 to 6 wait for nobody, and steps 7 and 8 follow only when they are done (docs/memory.md,
// "The reaper"): as long as an operation of the dead is unfinished, their bits keep the blocks that
// it used from being freed.
func (d *Domain) reap(l *lane, dead *deadSet) bool {
	l.reaping = dead
	defer func() { l.reaping = nil }()
	r := newReaper(d, l, dead)
	d.unfinished.Store(true) // before we ask to be woken
	if !r.operations() {
		return false
	}
	d.unfinished.Store(false)
	r.resign()
	r.waiters()
	if !r.owners() {
		return false
	}
	r.hints()
	return true
}

// reapStamps ends the operations of the newly dead, for a reaper in lane l that has to wait for one
// of them. It leaves the dead alone that it reaps already: it is in the middle of one of their
// operations, which would be done twice.
func (d *Domain) reapStamps(l *lane) obstacle {
	dead, _, err := d.findDead()
	if err != nil {
		return obstacle{}
	}
	all := *l.reaping
	n := 0
	for s := range dead {
		if dead[s] = dead[s] && !all[s]; dead[s] {
			all[s] = true
			n++
		}
	}
	if n == 0 {
		return obstacle{}
	}
	defer func(old *deadSet) { l.reaping = old }(l.reaping)
	l.reaping = &all
	r := newReaper(d, l, dead)
	r.operations()
	return r.stuck
}

// An obstacle is a stamp that has to go before a reaper can go on.
type obstacle struct {
	b     *block
	stamp stateWord
}

func (o obstacle) gone() bool { return o.b != nil && o.b.w.Load()&xoMask != o.stamp }

func newReaper(d *Domain, l *lane, dead *deadSet) *reaper {
	r := &reaper{d: d, l: l, dead: dead, published: make(map[uint32]bool)}
	for i := range r.bits {
		r.bits[i] = dead.word(i)
	}
	return r
}

type reaper struct {
	d         *Domain
	l         *lane
	dead      *deadSet
	bits      [ownWords]uint64 // the dead as a participant bitmap
	published map[uint32]bool  // dead lanes whose newest put stands in a slot
	views     []*Ring          // rings that the dead hold
	cells     []*cell          // and what they synchronise by
	stuck     obstacle         // a living lane's stamp that is in the way
}
