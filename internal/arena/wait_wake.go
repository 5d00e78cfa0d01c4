package arena

import "math/bits"

// Invariant (docs/memory.md, "Rings, ends and other objects"): a waiter sets its bit first and
// looks at its condition after that. Or is a full barrier, and where the bit stands already it was
// set by this participant before its look.
func (d *Domain) setBit(bits *[ownWords]Word) {
	if w := &bits[d.word]; w.Load()&d.bit == 0 {
		w.Or(d.bit)
	}
}

func empty(bitmap *[ownWords]Word) bool {
	return bitmap[0].Load()|bitmap[1].Load()|bitmap[2].Load()|bitmap[3].Load() == 0
}

// wakeOne wakes one participant of the bitmap, if there is one, and clears its bit: the next one
// after the seat last, round the table. It returns its seat.
func (d *Domain) wakeOne(bitmap *[ownWords]Word, last int) (seat int, woken bool) {
	if empty(bitmap) {
		return last, false
	}
	return d.wakeNext(bitmap, last)
}

// Only the participant whose CAS clears a bit wakes for it: so one message wakes one waiter, and a
// bit that stands means that nobody has woken its participant yet.
func (d *Domain) wakeNext(bitmap *[ownWords]Word, last int) (seat int, woken bool) {
	for i := range ownWords + 1 { // the word of last twice: its upper part first, and all of it at the end
		at := (last/64 + i) % ownWords
		w := &bitmap[at]
		for v := w.Load(); v != 0; v = w.Load() {
			choice := v
			if i == 0 {
				choice &^= 2<<(last%64) - 1
			}
			if choice == 0 {
				break
			}
			bit := choice & -choice
			if w.CAS(v, v&^bit) {
				seat := at*64 + bits.TrailingZeros64(bit)
				d.wakeSeat(seat)
				return seat, true
			}
		}
	}
	return last, false
}

// wakeBits wakes every participant of the bitmap, and clears it. It does so once: a process that is
// woken for something else than it waits for, as this one may be, sets its bit again, and looks at
// the condition after that.
//
// Each word is taken whole by one CAS, so a bit that comes later is not lost: it stands for the
// next wake.
func (d *Domain) wakeBits(bitmap *[ownWords]Word) {
	for i := range bitmap {
		w := &bitmap[i]
		v := w.Load()
		for v != 0 && !w.CAS(v, 0) {
			v = w.Load()
		}
		for ; v != 0; v &= v - 1 {
			d.wakeSeat(i*64 + bits.TrailingZeros64(v))
		}
	}
}

// wakeAll wakes every other participant by its doorbell: the goroutine that answers it hears the
// news, and a napper does not.
func (d *Domain) wakeAll() {
	for s := range d.parts {
		if s != d.seat && !d.parts[s].state.Load().is(participantFree) {
			d.wakeBell(s)
		}
	}
}

// wakeBell sends the datagram.
func (d *Domain) wakeBell(s int) { d.store.wakeBell(s, d.parts[s].bell.Load()) }

// wakeSeat has the participant look at all that its goroutines wait for.
func (d *Domain) wakeSeat(s int) {
	switch {
	case s == d.seat:
		d.wakeSelf()
	case !d.rouse(s, roused):
		d.wakeBell(s)
	}
}

func (d *Domain) wakeSelf() {
	d.park.wakeup()
	if d.unfinished.Load() {
		spawn(func() { d.Reap() }) // what it waited for may have been one of our own lanes
	}
}
