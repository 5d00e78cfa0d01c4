package arena

import (
	"math/bits"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// leaveBarriers removes this process, if it is leaving the domain in order, from the members of
// barriers at which none of its goroutines waits: only a death may break a barrier. It does
// nothing for other participants.
func (r *reaper) leaveBarriers() {
	s := r.d.seat
	for _, c := range r.cells {
		if !r.dead[s] || Form(c.Form.Load()) != FormBarrier {
			continue
		}
		if v := c.Tickets[s].Load(); v&word.CountMask == 0 || v&word.IdentityMask != r.d.identity() {
			c.Shares[s].Store(0)
		}
	}
}

// clearWaiterBits clears the bits of the dead in the waiter bitmaps of rings and cells. It must
// run before releaseBlocks, while the owner bits of the dead still keep these blocks from being
// freed.
//
// Invariant (docs/memory.md, "The reaper"): no bit of a dead participant may outlive it.
// Otherwise a wakeup would go to the next participant in the seat, and a waiter would miss it.
func (r *reaper) clearWaiterBits() {
	if word.IsDisabled("waiter bits") {
		return
	}
	for _, v := range r.views {
		for i := range v.hdr.NotEmpty {
			v.hdr.NotEmpty[i].AndNot(r.bits[i])
			v.hdr.NotFull[i].AndNot(r.bits[i])
		}
	}
	for _, c := range r.cells {
		if word.IsDisabled("cell waiter bits") {
			break
		}
		for i := range c.Waiting {
			c.Waiting[i].AndNot(r.bits[i])
			c.Watching[i].AndNot(r.bits[i])
		}
	}
}

// endsTime bounds the time that a reaper waits for all finalisers of ring ends together. Tests
// change it.
var endsTime = time.Duration(briefly)

// releaseBlocks clears the owner bits of the dead in every block, and frees the blocks that have no
// holder left. The operations of the dead must have been ended: then t is right, no stamp of theirs
// remains, and the owner bit is all that they have of a block. releaseBlocks clears the bits of one
// block and tries to free it before it turns to the next one, so a reaper that is killed in between
// leaves the rest to its successor.
//
// The finaliser of a ring's end may have to wait for living participants. So it runs in another
// lane, and the reaper waits for all finalisers together up to [endsTime]. A participant that
// leaves has no other lane, and runs them itself.
//
// releaseBlocks returns false if a living lane is deciding whether a ring is free, so that a name
// cannot be written into it, or if this participant is leaving and cannot wait any longer.
func (r *reaper) releaseBlocks() bool {
	left := endsTime
	r.l.aside = r.d.closed.Load()
	for _, v := range r.views { // the owner bits of the dead still hold these rings
		if word.IsDisabled("deserted") || !v.hasNoReceivers() || v.Empty() {
			continue
		}
		if !r.l.aside {
			r.d.addRef(v.index())
			left = r.d.drainInOtherLane(r.l, v.index(), left)
		} else if !r.l.drainRing(v.b) {
			return false
		}
	}
	return r.eachBlock(func(i uint32, b *layout.Block) bool {
		if !r.clearOwners(b) {
			return false
		}
		switch w := b.State.Load(); {
		case word.IsDisabled("try free"):
		case !r.l.aside && w&(word.AllocBit|word.TMask|word.StampMask) == word.AllocBit &&
			layout.ExtentKind(b.Extent.Load()).FinaliserMayWait() && !b.IsOwned():
			left = r.d.finaliseInOtherLane(r.l, i, left)
		default:
			if r.l.tryFree(i); r.l.left.Load() {
				return false
			}
		}
		return true
	})
}

// clearOwners clears the owner bits of the dead in one block. It returns false if a living lane is
// deciding whether the block's ring is free.
func (r *reaper) clearOwners(b *layout.Block) bool {
	for j, dead := range r.bits {
		if held := b.Own[j].Load() & dead; held != 0 && !word.IsDisabled("owner bits") {
			if !r.recordDeath(b, j*64+bits.TrailingZeros64(held)) {
				return false
			}
			b.Own[j].AndNot(dead)
		}
	}
	return true
}

// recordDeath records in a ring which participant has died with one of its ends. b is any block:
// recordDeath does nothing unless it is the token of an end. A participant that leaves in order
// withdraws its name instead. recordDeath returns false if a living lane is deciding whether the
// ring is free; this process is then woken later.
//
// The name must be written while the dead participant's bit still holds the token, and before the
// finaliser sets NO_SENDERS or NO_RECEIVERS. So a process that sees the flag also finds the name.
func (r *reaper) recordDeath(b *layout.Block, seat int) bool {
	if !layout.ExtentKind(b.Extent.Load()).IsToken() {
		return true
	}
	if seat == r.d.seat {
		r.l.clearDeath(b)
		return true
	}
	p := &r.d.mem.Participants[seat]
	who := word.MakeIdentity(p.PID.Load(), uint64(p.State.Load().Epoch())) | uint64(seat)<<word.SeatShift
	r.d.park.Unfinished.Store(true) // must be set before a wakeup is requested
	known := r.l.recordDeath(briefly/20, b, who)
	r.d.park.Unfinished.Store(!known)
	return known
}

// clearHeaderBits clears the bits of the dead in the header's bitmaps, and makes up for wakeups
// that they may have owed: it marks the free hints as lost, and counts a relief.
func (r *reaper) clearHeaderBits() {
	d := r.d
	for i := range d.mem.Header.Spinners {
		if word.IsDisabled("spinner bits") {
			break
		}
		d.mem.Header.Spinners[i].AndNot(r.bits[i])
		d.mem.Header.XOWait[i].AndNot(r.bits[i])
		d.mem.Header.MemWait[i].AndNot(r.bits[i])
	}
	if !word.IsDisabled("lost hints") {
		d.markHintsLost()
	}
	if !word.IsDisabled("relief") {
		d.notifyRelief() // a dead participant may have freed a block and woken no waiter
	}
}

// releaseDead wakes all participants, for any wakeups that the dead owed, and then frees the seats
// of the dead. It returns the number of seats. The order matters (step 8 of docs/memory.md, "The
// reaper"): if the reaper dies in between, the next one still finds the seats DEAD, and wakes all
// participants again.
func (d *Domain) releaseDead(dead *deadSet) (n int) {
	if !word.IsDisabled("ring all") {
		d.park.WakeAll(park.AllTopics)
		d.park.HandleWakeup()
	}
	for s := range dead {
		if dead[s] && !word.IsDisabled("release dead") && d.freeSeat(s) {
			n++
		}
	}
	return n
}

// freeSeat frees the seat of a participant that has been reaped. It reports false if the seat is
// not DEAD.
//
// Invariant (docs/memory.md, "The reaper"): this must be the last step. It increments the epoch.
// Until then every word with the dead participant's identity names a participant that is DEAD;
// afterwards the old epoch in the word marks it as gone for ever.
func (d *Domain) freeSeat(seat int) bool {
	p := &d.mem.Participants[seat]
	v := p.State.Load()
	if !v.HasState(word.ParticipantDead) {
		return false
	}
	p.State.CAS(v, v.NextEpoch())
	return true
}
