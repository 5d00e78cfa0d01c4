package arena

import (
	"math/bits"
	"time"
)

// resign removes a participant that leaves in order from the members of barriers at which none of
// its goroutines waits: only a death may break a barrier.
func (r *reaper) resign() {
	s := r.d.seat
	for _, c := range r.cells {
		if !r.dead[s] || Form(c.form.Load()) != FormBarrier {
			continue
		}
		if v := c.tickets[s].Load(); v&countMask == 0 || v&idMask != r.d.identity() {
			c.shares[s].Store(0)
		}
	}
}

// waiters clears the bits of the dead in the waiter bitmaps of rings and cells. It must run before
// owners, while the owner bits of the dead still keep these blocks from being freed.
//
// Invariant (docs/memory.md, "The reaper"): no bit of a dead participant may outlive it. Otherwise
// a wakeup would go to the next participant in the seat, and a waiter would miss it.
func (r *reaper) waiters() {
	if disabled("waiter bits") {
		return
	}
	for _, v := range r.views {
		for i := range v.hdr.notEmpty {
			v.hdr.notEmpty[i].AndNot(r.bits[i])
			v.hdr.notFull[i].AndNot(r.bits[i])
		}
	}
	for _, c := range r.cells {
		if disabled("cell waiter bits") {
			break
		}
		for i := range c.waiting {
			c.waiting[i].AndNot(r.bits[i])
			c.watching[i].AndNot(r.bits[i])
		}
	}
}

// endsTime bounds the time that a reaper waits for all finalisers of ring ends together. Tests
// change it.
var endsTime = time.Duration(briefly)

// owners clears the owner bits of the dead in every block, and frees the blocks that have no holder
// left. The operations of the dead must have been ended: then t is right, no stamp of theirs
// remains, and the owner bit is all that they have of a block. owners clears the bits of one block
// and tries to free it before it turns to the next one, so a reaper that is killed in between
// leaves the rest to its successor.
//
// The finaliser of a ring's end may have to wait for living participants. So it runs in another
// lane, and the reaper waits for all finalisers together up to [endsTime]. A participant that
// leaves has no other lane, and runs them itself.
//
// owners returns false if a living lane is deciding whether a ring is free, so that a name cannot
// be written into it, or if this participant is leaving and cannot wait any longer.
func (r *reaper) owners() bool {
	left := endsTime
	r.l.aside = r.d.closed.Load()
	for _, v := range r.views { // the owner bits of the dead still hold these rings
		if disabled("deserted") || !v.deserted() || v.Empty() {
			continue
		}
		if !r.l.aside {
			r.d.acquire(v.index())
			left = r.d.drainAside(r.l, v.index(), left)
		} else if !r.l.drain(v.b) {
			return false
		}
	}
	for i := uint32(1); uint64(i) < r.d.count(); i++ {
		b := &r.d.blocks[i]
		for j, dead := range r.bits {
			if held := b.own[j].Load() & dead; held != 0 && !disabled("owner bits") {
				if !r.blame(b, j*64+bits.TrailingZeros64(held)) {
					return false
				}
				b.own[j].AndNot(dead)
			}
		}
		switch w := b.w.Load(); {
		case disabled("try free"):
		case !r.l.aside && w&(allocBit|tMask|xoMask) == allocBit && extKind(b.ext.Load()).ends() && !b.owned():
			left = r.d.finaliseAside(r.l, i, left)
		default:
			if r.l.tryFree(i); r.l.left.Load() {
				return false
			}
		}
	}
	return true
}

// blame records in a ring which participant has died with one of its ends. b is any block: blame
// does nothing unless it is the token of an end. A participant that leaves in order withdraws its
// name instead. blame returns false if a living lane is deciding whether the ring is free; this
// process is then woken later.
//
// The name must be written while the dead participant's bit still holds the token, and before the
// finaliser sets NO_SENDERS or NO_RECEIVERS. So a process that sees the flag also finds the name.
func (r *reaper) blame(b *block, seat int) bool {
	if !extKind(b.ext.Load()).token() {
		return true
	}
	if seat == r.d.seat {
		r.l.absolve(b)
		return true
	}
	p := &r.d.parts[seat]
	who := identity(p.pid.Load(), uint64(p.state.Load().epoch())) | uint64(seat)<<idSeatShift
	r.d.unfinished.Store(true) // must be set before a wakeup is requested
	known := r.l.blame(briefly/20, b, who)
	r.d.unfinished.Store(!known)
	return known
}

// hints clears the bits of the dead in the header's bitmaps, and makes up for wakeups that they may
// have owed: it marks the free hints as lost, and counts a relief.
func (r *reaper) hints() {
	d := r.d
	for i := range d.hdr.spinners {
		if disabled("spinner bits") {
			break
		}
		d.hdr.spinners[i].AndNot(r.bits[i])
		d.hdr.xowait[i].AndNot(r.bits[i])
		d.hdr.memwait[i].AndNot(r.bits[i])
	}
	if !disabled("lost hints") {
		d.loseHints()
	}
	if !disabled("relief") {
		d.relieve() // a dead participant may have freed a block and woken no waiter
	}
}

// releaseDead wakes all participants, for any wakeups that the dead owed, and then frees the seats
// of the dead. It returns the number of seats. The order matters (step 8 of docs/memory.md, "The
// reaper"): if the reaper dies in between, the next one still finds the seats DEAD, and wakes all
// participants again.
func (d *Domain) releaseDead(dead *deadSet) (n int) {
	if !disabled("ring all") {
		d.wakeAll()
		d.park.wakeup()
	}
	for s := range dead {
		if dead[s] && !disabled("release dead") && d.vacate(s) {
			n++
		}
	}
	return n
}

// vacate frees the seat of a participant that has been reaped. It reports false if the seat is not
// DEAD.
//
// Invariant (docs/memory.md, "The reaper"): this must be the last step. It increments the epoch.
// Until then every word with the dead participant's identity names a participant that is DEAD;
// afterwards the old epoch in the word marks it as gone for ever.
func (d *Domain) vacate(seat int) bool {
	p := &d.parts[seat]
	v := p.state.Load()
	if !v.is(participantDead) {
		return false
	}
	p.state.CAS(v, v.next())
	return true
}
