package arena

import "github.com/shoal-mp/shoal/internal/arena/word"

// What the tests of wraps set: counters as a domain has them that has run for long.

// AgeRing sets an empty ring to so many laps before the last one.
func AgeRing(r *Ring, before uint64) {
	const laps = 1 << (64 - word.SlotLapShift)
	tk := (laps - before) << r.bits
	for i := range r.cap {
		r.slot(i).word.Store(word.MakeSlot(laps-before, word.SlotEmpty, 0))
	}
	r.hdr.head.Store(tk)
	r.hdr.tail.Store(tk)
	r.seen.Store(tk)
}

// AgeBlocks sets the generations of all free blocks two before the last.
func (d *Domain) AgeBlocks() {
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		if w := d.blocks[i].w.Load(); !w.IsAllocated() {
			d.blocks[i].w.Store(w&(word.GenOne-1) | (1<<32-2)<<32)
		}
	}
}

// AgeSeats sets the epochs of all free seats two before the last, of a domain and of identities.
func (d *Domain) AgeSeats() {
	for s := range d.parts {
		if d.parts[s].state.Load().HasState(word.ParticipantFree) {
			d.parts[s].state.Store((1<<32 - 2) << 32)
		}
	}
}

// Age sets the counters of a Sync a few steps before their last values.
func (s *Sync) Age() {
	switch Form(s.c.form.Load()) {
	case FormBarrier:
		s.c.state.Store((turnMask - 2) << turnShift)
	case FormEvent:
		s.c.state.Store((1<<63 - 3) << 1)
	case FormCond:
		for i := range s.c.tickets {
			s.c.tickets[i].Store((1<<32-3)<<ticketShift | (1<<32 - 3))
		}
	}
}

// AgeLists sets the number of the newest sweep, and the tags of all lists, before their last
// values.
func (d *Domain) AgeLists() {
	d.hdr.hints.Store(1<<12 - 3)
	for c := range d.hdr.lists {
		head := &d.hdr.lists[c]
		head.Store(head.Load()&^((1<<20-1)<<32) | (1<<20-5)<<32)
	}
}

// LoseHints has the next allocation that finds no block sweep.
func (d *Domain) LoseHints() { d.markHintsLost() }
