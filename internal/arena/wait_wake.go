package arena

import (
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// setBit sets this participant's bit in a bitmap of waiters.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): a waiter must set its bit before it
// tests its condition. Or is a full memory barrier. If the bit is set already, this participant set
// it before, and it has not been cleared since.
func (d *Domain) setBit(bits *layout.Bitmap) {
	if w := &bits[d.word]; w.Load()&d.bit == 0 {
		w.Or(d.bit)
	}
}

// wakeOne clears one bit of the bitmap and wakes its participant: the next one after seat last,
// wrapping around. It returns the seat that it woke. If the bitmap is empty, woken is false and
// seat is last.
func (d *Domain) wakeOne(bitmap *layout.Bitmap, last int) (seat int, woken bool) {
	if bitmap.IsEmpty() {
		return last, false
	}
	return d.wakeNext(bitmap, last)
}

// wakeNext does the work of [Domain.wakeOne].
//
// The participant that clears a bit by its CAS must send the wakeup, and no other one may. So one
// message wakes one waiter, and a set bit means that its participant has not been woken yet.
func (d *Domain) wakeNext(bitmap *layout.Bitmap, last int) (seat int, woken bool) {
	// The word that contains last is visited twice: first only its bits above last, and at the end
	// all of it.
	for i := range layout.BitmapWords + 1 {
		at := (last/64 + i) % layout.BitmapWords
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
				d.wakeSeat(seat, d.topicOf(bitmap))
				return seat, true
			}
		}
	}
	return last, false
}

// wakeBits clears the bitmap and wakes every participant that had a bit in it. It makes one pass
// only: a participant that is woken for another reason, this one among them, sets its bit again
// before it tests its condition again.
//
// Each word is replaced as a whole by one CAS. A bit that is set later stays for the next wakeup.
func (d *Domain) wakeBits(bitmap *layout.Bitmap) {
	for i := range bitmap {
		w := &bitmap[i]
		v := w.Load()
		for v != 0 && !w.CAS(v, 0) {
			v = w.Load()
		}
		for ; v != 0; v &= v - 1 {
			d.wakeSeat(i*64+bits.TrailingZeros64(v), d.topicOf(bitmap))
		}
	}
}

// wakeAll wakes every other participant by its doorbell, and not by its nap word: it announces
// news, and only the goroutine that serves the doorbell handles those (see [Domain.handleNews]). t
// should be [allTopics] or [noTopic].
func (d *Domain) wakeAll(t topic) {
	for s := range d.mem.Participants {
		if s != d.seat && !d.mem.Participants[s].State.Load().HasState(word.ParticipantFree) {
			d.wakeBell(s, t)
		}
	}
}

// wakeBell sends a datagram with a topic to the doorbell of the participant in a seat. If the
// doorbell's queue is full, it sets the word missed, and then rings again.
//
// Invariant (docs/memory.md, "Topics"): the second ring must come after the word is set. If the
// queue is still full then, the participant has yet to read a datagram, and it looks at the word
// after that.
func (d *Domain) wakeBell(s int, t topic) {
	p := &d.mem.Participants[s]
	if word.IsBellFull() || d.store.wakeBell(s, p.Bell.Load(), t) {
		p.Missed.Or(1)
		d.store.wakeBell(s, p.Bell.Load(), t)
	}
}

// wakeSeat has the participant in a seat test the conditions of its goroutines that wait for the
// topic.
func (d *Domain) wakeSeat(s int, t topic) {
	switch {
	case s == d.seat:
		d.wakeSelf(t)
	case !d.endNapOf(s, roused|t<<topicShift):
		d.wakeBell(s, t)
	}
}

// wakeSelf is [Domain.wakeSeat] for this process. If a reap was left unfinished, it is tried again.
func (d *Domain) wakeSelf(t topic) {
	d.park.handleTopic(t)
	if d.unfinished.Load() {
		word.Spawn(func() { d.Reap() }) // the obstacle may have been a lane of this process
	}
}
