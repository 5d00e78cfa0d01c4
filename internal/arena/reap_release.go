package arena

import (
	"math/bits"
	"time"
)

// resign takes this participant, which leaves in order, from the members of barriers at which it
// does not wait: only a death breaks a barrier.
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

// waiters takes the dead from the waiters, while their own bits still keep the blocks from being
// freed for which they wait.
//
// Invariant (docs/memory.md, "The reaper"): no bit of a dead participant outlives it. The next one
// in its place would be woken in its stead, and the waiter that should have been woken would not
// be.
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

// endsTime is for how long a reaper waits for the ends of rings. Tests make it long.
var endsTime = time.Duration(briefly)

// owners takes the dead from every block's holders and frees the blocks that nobody holds.
//
// The operations of the dead are over: so t is right, no stamp of theirs stands, and the bit is all
// that they had of the block. The bits go one block at a time, each followed by its
// try-free: a reaper that is killed in between leaves the next one the rest.
//
// The end of a ring may have to wait for living participants, so it goes on in another lane, of
// which the reaper waits for no longer than a second for all of them. A
// participant that leaves has no other lane.
//
// It reports false where a living lane is finding out whether the ring of a dead one's end is free,
// or where this participant leaves, and cannot wait any longer.
func (r *reaper) owners() bool {
	left := endsTime
	r.l.aside = r.d.closed.Load()
	for _, v := range r.views { // which the bits of the dead hold still
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

// blame writes into the ring of an end which participant has died with it, before the bit of that
// participant goes. A participant that leaves has closed the end in order.
//
// It is written while the dead one's bit still holds the end, and before the finaliser says that
// nobody sends or receives: a process that hears of the end finds the reason there.
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
	r.d.unfinished.Store(true) // before we ask to be woken
	known := r.l.blame(briefly/20, b, who)
	r.d.unfinished.Store(!known)
	return known
}

// hints takes the dead from words that are not of a ring or a cell, and wakes waiters that they may
// not have woken.
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
		d.relieve() // a dead participant may have freed a block and woken nobody
	}
}

// releaseDead wakes everybody, also for wakeups that the dead owed, and then makes the seats of the
// dead free again. A reaper that dies in between leaves the seats to the next one, which wakes
// everybody again.
//
// The order is the last part of step 8 (docs/memory.md, "The reaper").
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

// vacate makes the seat of a participant that was reaped free for another one.
//
// Invariant (docs/memory.md, "The reaper"): this is the last step, and it raises the epoch. Until
// then every word that names the dead still means the dead; after it, a word with the old epoch
// means a participant that is gone, for ever.
func (d *Domain) vacate(seat int) bool {
	p := &d.parts[seat]
	v := p.state.Load()
	if !v.is(participantDead) {
		return false
	}
	p.state.CAS(v, v.next())
	return true
}
