package park

import (
	"math/bits"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// SetBit sets this participant's bit in a bitmap of waiters.
//
// Invariant (docs/memory.md, "Rings, ends and other objects"): a waiter must set its bit before it
// tests its condition. Or is a full memory barrier. If the bit is set already, this participant set
// it before, and it has not been cleared since.
func (p *Lot) SetBit(bits *layout.Bitmap) {
	if w := &bits[p.word]; w.Load()&p.bit == 0 {
		w.Or(p.bit)
	}
}

// WakeOne clears one bit of the bitmap and wakes its participant: the next one after seat last,
// wrapping around. It returns the seat that it woke. If the bitmap is empty, woken is false and
// seat is last.
func (p *Lot) WakeOne(bitmap *layout.Bitmap, last int) (seat int, woken bool) {
	if bitmap.IsEmpty() {
		return last, false
	}
	return p.wakeNext(bitmap, last)
}

// wakeNext does the work of [Lot.WakeOne].
//
// The participant that clears a bit by its CAS must send the wakeup, and no other one may. So one
// message wakes one waiter, and a set bit means that its participant has not been woken yet.
func (p *Lot) wakeNext(bitmap *layout.Bitmap, last int) (seat int, woken bool) {
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
				p.WakeSeat(seat, p.TopicOf(bitmap))
				return seat, true
			}
		}
	}
	return last, false
}

// WakeBits clears the bitmap and wakes every participant that had a bit in it. It makes one pass
// only: a participant that is woken for another reason, this one among them, sets its bit again
// before it tests its condition again.
//
// Each word is replaced as a whole by one CAS. A bit that is set later stays for the next wakeup.
func (p *Lot) WakeBits(bitmap *layout.Bitmap) {
	for i := range bitmap {
		w := &bitmap[i]
		v := w.Load()
		for v != 0 && !w.CAS(v, 0) {
			v = w.Load()
		}
		for ; v != 0; v &= v - 1 {
			p.WakeSeat(i*64+bits.TrailingZeros64(v), p.TopicOf(bitmap))
		}
	}
}

// WakeAll wakes every other participant by its doorbell, and not by its nap word: it announces
// changes of the header's counters, which only the goroutine that serves the doorbell handles. t
// should be [AllTopics] or [NoTopic].
func (p *Lot) WakeAll(t Topic) {
	for s := range p.mem.Participants {
		if s != p.seat && !p.mem.Participants[s].State.Load().HasState(word.ParticipantFree) {
			p.RingBell(s, t)
		}
	}
}

// RingBell sends a datagram with a topic to the doorbell of the participant in a seat. If the
// doorbell's queue is full, it sets the word missed, and then rings again.
//
// Invariant (docs/memory.md, "Topics"): the second ring must come after the word is set. If the
// queue is still full then, the participant has yet to read a datagram, and it looks at the word
// after that.
func (p *Lot) RingBell(seat int, t Topic) {
	other := &p.mem.Participants[seat]
	if word.IsBellFull() || p.bells.RingBell(seat, other.Bell.Load(), t) {
		other.Missed.Or(1)
		p.bells.RingBell(seat, other.Bell.Load(), t)
	}
}

// WakeSeat has the participant in a seat test the conditions of its goroutines that wait for the
// topic.
func (p *Lot) WakeSeat(seat int, t Topic) {
	switch {
	case seat == p.seat:
		p.wakeSelf(t)
	case !p.endNapOf(seat, roused|t<<topicShift):
		p.RingBell(seat, t)
	}
}

// wakeSelf is [Lot.WakeSeat] for this process. If a reap was left unfinished, it is tried again:
// the obstacle may have been a lane of this process.
func (p *Lot) wakeSelf(t Topic) {
	p.HandleTopic(t)
	if p.Unfinished.Load() {
		p.domain.RetryReap()
	}
}
