package arena

import "github.com/shoal-mp/shoal/internal/arena/word"

// What the tests of wraps set: counters as a domain has them that has run for long.

// AgeRing sets an empty ring to so many laps before the last one.
func AgeRing(r *Ring, before uint64) {
	const laps = 1 << (64 - word.SlotLapShift)
	tk := (laps - before) << r.bits
	for i := range r.cap {
		r.slot(i).Word.Store(word.MakeSlot(laps-before, word.SlotEmpty, 0))
	}
	r.hdr.Head.Store(tk)
	r.hdr.Tail.Store(tk)
	r.seen.Store(tk)
}

// AgeBlocks sets the generations of all free blocks two before the last.
func (d *Domain) AgeBlocks() {
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		if w := d.mem.Blocks[i].State.Load(); !w.IsAllocated() {
			d.mem.Blocks[i].State.Store(w&(word.GenOne-1) | (1<<32-2)<<32)
		}
	}
}

// AgeSeats sets the epochs of all free seats two before the last, of a domain and of identities.
func (d *Domain) AgeSeats() {
	for s := range d.mem.Participants {
		if d.mem.Participants[s].State.Load().HasState(word.ParticipantFree) {
			d.mem.Participants[s].State.Store((1<<32 - 2) << 32)
		}
	}
}

// Age sets the counters of a Sync a few steps before their last values.
func (s *Sync) Age() {
	switch Form(s.c.Form.Load()) {
	case FormBarrier:
		s.c.State.Store((turnMask - 2) << turnShift)
	case FormEvent:
		s.c.State.Store((1<<63 - 3) << 1)
	case FormCond:
		for i := range s.c.Tickets {
			s.c.Tickets[i].Store((1<<32-3)<<ticketShift | (1<<32 - 3))
		}
	}
}

// AgeLists sets the number of the newest sweep, and the tags of all lists, before their last
// values.
func (d *Domain) AgeLists() {
	d.mem.Header.Hints.Store(1<<12 - 3)
	for c := range d.mem.Header.Lists {
		head := &d.mem.Header.Lists[c]
		head.Store(head.Load()&^((1<<20-1)<<32) | (1<<20-5)<<32)
	}
}

// LoseHints has the next allocation that finds no block sweep.
func (d *Domain) LoseHints() { d.markHintsLost() }
