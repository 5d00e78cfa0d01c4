package arena

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Reap recovers everything that dead participants held: it ends their operations, drops their
// references and frees their seats. It returns the number of participants that it finished. It
// returns 0 if another process is doing the work, or if an operation of a living process is in the
// way; then this process is woken, and reaps again, when the obstacle is gone.
//
// Reap may be called by any process at any time. A process calls it by itself when it notices a
// death. The steps are in docs/memory.md, "The reaper".
func (d *Domain) Reap() (int, error) {
	if word.Crashing && word.IsReaperHeld() {
		return 0, nil
	}
	d.mem.Header.DeathEpoch.Add(1)
	total := 0
	for {
		seen := d.mem.Header.DeathEpoch.Load()
		n, err := d.reapDead()
		total += n
		if err != nil || d.mem.Header.DeathEpoch.Load() == seen {
			return total, err
		}
	}
}

// reapDead reaps all dead participants and returns the number that it finished. It does nothing
// and returns 0 if it does not get the recovery lock. It takes the lane before the lock: once
// Close has taken the lane, this process must reap only itself.
//
// A process that finds the lock held leaves its dead participants to the holder (docs/memory.md,
// "Notice"). The holder reads the death epoch again before it stops, so one of the two reaps
// each death that was noticed.
func (d *Domain) reapDead() (int, error) {
	l := &d.lanes[reaperLane]
	if !l.tryLock() {
		d.park.HandleWakeup() // Close may be waiting for the recovery lock of a dead holder
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

// reapLocked makes one attempt to reap all dead participants. The caller must hold the recovery
// lock and lane l. It returns 0 if the attempt was cut short by an obstacle.
func (d *Domain) reapLocked(l *lane) (int, error) {
	dead, n, err := d.findDead()
	if n == 0 || err != nil {
		return 0, err
	}
	d.recordReaped(dead)
	if !d.reapParticipants(l, dead) {
		return 0, nil
	}
	n = d.releaseDead(dead)
	d.mem.Header.Reaped.Add(uint64(n))
	return n, nil
}

// A deadSet is the set of participants that are being reaped, by seat.
type deadSet [word.MaxParticipants]bool

// hasLane reports whether the lane with this number in the domain belongs to a participant of
// the set.
func (s *deadSet) hasLane(id uint32) bool { return s[id/layout.LanesPerSeat] }

// bitmapWord returns the bits of seats 64*i to 64*i+63 as a word of a participant bitmap.
func (s *deadSet) bitmapWord(i int) (bits uint64) {
	for j := range 64 {
		if s[i*64+j] {
			bits |= 1 << j
		}
	}
	return bits
}

// findDead returns the dead participants and their number, and marks them DEAD. It leaves out
// this process's own seat.
//
// A participant is dead if the proof of life of its seat is free, and for no other reason
// (docs/memory.md, "The reaper"). The proof is an OFD lock. The kernel releases it when the last
// descriptor of its open file description is closed, which at process exit happens after the
// last user-space instruction: https://github.com/torvalds/linux/blob/v6.12/fs/locks.c
// (locks_remove_file). So no write of the dead process can come later.
func (d *Domain) findDead() (*deadSet, int, error) {
	var dead deadSet
	n := 0
	for s := range d.mem.Participants {
		p := &d.mem.Participants[s]
		v := p.State.Load()
		if v.HasState(word.ParticipantFree) || s == d.seat {
			continue
		}
		alive, err := d.store.isAlive(s)
		if err != nil {
			return nil, 0, fmt.Errorf("check whether participant %d is alive: %w", s, err)
		}
		if alive {
			continue
		}
		if !v.HasState(word.ParticipantDead) {
			p.State.CAS(v, v.WithState(word.ParticipantDead))
		}
		dead[s] = true
		n++
	}
	return &dead, n, nil
}

// Unreaped reports whether there is a dead participant that has not been reaped completely, because
// another process is reaping it or an obstacle is in the way. It returns [ErrClosed] if the domain
// is closed.
func (d *Domain) Unreaped() (bool, error) {
	if d.closed.Load() {
		return false, ErrClosed
	}
	return d.hasDead()
}

// hasDead is Unreaped for a domain that may be closed.
func (d *Domain) hasDead() (bool, error) {
	for s := range d.mem.Participants {
		v := d.mem.Participants[s].State.Load() & 0xff
		if v == word.ParticipantFree || s == d.seat {
			continue
		}
		if alive, err := d.store.isAlive(s); err != nil || !alive {
			return true, err
		}
	}
	return false, nil
}

// leaveDomain makes this process leave the domain: it reaps itself, by the same steps as for a dead
// participant. The caller must have taken all other lanes for good, so that no operation of this
// process is in progress.
//
// Other processes that notice a death meanwhile leave it to the holder of the recovery lock, which
// is this process. So leaveDomain must announce itself after it has released the lock, and must
// stay watched until then. If it does not get the lock in time, it leaves its seat for others to
// reap. quiet reports whether it leaves nothing else to others; see [Domain.announceLeave].
func (d *Domain) leaveDomain() (quiet bool) {
	l := &d.lanes[reaperLane]
	// Taken for good: a late goroutine must not reap under a seat that may have another participant
	// by then.
	l.lock()
	p := &d.mem.Participants[d.seat]
	v := p.State.Load()
	p.State.CAS(v, v.WithState(word.ParticipantDead))
	var dead deadSet
	dead[d.seat] = true
	ctx, cancel := d.departureContext()
	defer cancel()
	for {
		if _, ok := d.lockRecovery(); ok {
			break
		}
		if d.park.ParkUntil(ctx, &d.mem.Header.XOWait, d.isRecoveryFree, nil) != nil {
			d.announceLeave(false) // the proof of life is released next, so others reap this seat
			return false
		}
	}
	done := d.reapParticipants(l, &dead)
	d.unlockRecovery()
	if quiet = done && d.leavesQuietly(); !quiet {
		d.announceLeave(false)
	}
	if done {
		d.freeSeat(d.seat)
	}
	return quiet
}

// departureContext returns the context that bounds the wait of a leaving participant for the
// recovery lock to [stampTime]: the lock's holder may be stopped, or the word may be corrupt.
// The caller must call the cancel function.
func (d *Domain) departureContext() (context.Context, context.CancelFunc) {
	if word.Crashing && word.IsControlled() {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), stampTime)
}

// reapParticipants makes one pass over the given dead participants, in lane l. The caller must hold
// the recovery lock. It returns false if an operation of a living lane is in the way; this process
// is woken when that operation ends. Every step is idempotent, because another reaper repeats it if
// this one dies.
//
// Steps 1 to 6 never block, and steps 7 and 8 must not begin before these are complete
// (docs/memory.md, "The reaper"): until then the owner bits of the dead must keep the blocks that
// their operations use from being freed.
func (d *Domain) reapParticipants(l *lane, dead *deadSet) bool {
	l.reaping = dead
	defer func() { l.reaping = nil }()
	r := newReaper(d, l, dead)
	if dead[d.seat] {
		r.held = &d.refs
	}
	d.park.Unfinished.Store(true) // must be set before a wakeup is requested
	if !r.endOperations() {
		return false
	}
	d.park.Unfinished.Store(false)
	r.leaveBarriers()
	r.clearWaiterBits()
	if !r.releaseBlocks() {
		return false
	}
	r.clearHeaderBits()
	return true
}

// reapStamps ends the operations of participants that died since the reaper in lane l began,
// because the reaper has to wait for one of them. The caller must hold the recovery lock.
// reapStamps returns the obstacle that remains, or a zero obstacle. It must not touch the
// participants that the reaper handles already: their operations are half done, and would be
// done twice.
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
	r.endOperations()
	return r.stuck
}

// An obstacle is a stamp of a living lane that must clear before a reaper can go on.
type obstacle struct {
	b     *layout.Block
	stamp word.State
}

// hasCleared reports whether there was an obstacle and it has cleared.
func (o obstacle) hasCleared() bool { return o.b != nil && o.b.State.Load()&word.StampMask != o.stamp }

// newReaper returns a reaper of the given dead participants that works in lane l.
func newReaper(d *Domain, l *lane, dead *deadSet) *reaper {
	r := &reaper{d: d, l: l, dead: dead, published: make(map[uint32]bool)}
	for i := range r.bits {
		r.bits[i] = dead.bitmapWord(i)
	}
	return r
}

// A reaper has the state of one pass over a set of dead participants.
type reaper struct {
	d    *Domain
	l    *lane
	dead *deadSet
	// held is the table of this process's references if it leaves the domain, and nil otherwise.
	// The blocks of a chunk that is missing there do not concern the reaper: a participant that
	// leaves has no operation in progress but gets, and those hold their blocks.
	held      *refTable
	bits      [layout.BitmapWords]uint64 // dead as a participant bitmap
	published map[uint32]bool            // dead lanes with their newest put in a slot
	views     []*Ring                    // rings that a dead participant holds
	cells     []*layout.Cell             // cells that a dead participant holds
	stuck     obstacle                   // the last stamp of a living lane found in the way
}

// eachBlock calls f with every block that may concern the reaper until f returns false. It reports
// whether f always returned true.
func (r *reaper) eachBlock(f func(i uint32, b *layout.Block) bool) bool {
	for i := uint32(1); uint64(i) < r.d.blockCount(); i++ {
		if r.held != nil && !r.held.hasChunk(i) {
			i |= refChunk - 1 // the last one of the chunk
			continue
		}
		if !f(i, &r.d.mem.Blocks[i]) {
			return false
		}
	}
	return true
}
