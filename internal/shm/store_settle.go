package shm

import (
	"context"
	"runtime"
)

// settle returns b's state word once nobody is in the middle of an operation on it.
func (l *lane) settle(b *block) uint64 {
	if w := b.w.Load(); w&xoMask == 0 {
		return w
	}
	return l.awaitStamp(b)
}

// awaitStamp asks for the word once more at the end: the ringing goroutine looks at the condition
// too.
func (l *lane) awaitStamp(b *block) uint64 {
	for {
		l.patience(&b.w, unstamped, waitBit)
		if w := b.w.Load(); unstamped(w) {
			return w
		}
	}
}

func unstamped(w uint64) bool { return w&xoMask == 0 }

// markUnless asks to be rung when the word changes, by its bit wait, and reports false, or true if
// the word is done. Both are said of one and the same value: between a mark and a look of its own,
// the stamp that was marked could clear and another one, which nobody has marked, take its place,
// and the waiter would sleep for ever (docs/memory.md, "Words, stamps, evidence").
func markUnless(w *Word, done func(uint64) bool, wait uint64) bool {
	for {
		switch v := w.Load(); {
		case done(v):
			return !disabled("mark and look in one") || done(w.Load())
		case v&wait != 0 || w.CAS(v, v|wait):
			return false
		}
	}
}

// patience polls, yields, and then parks until the word is done, which is a matter of another
// lane's next step. The bit wait is a mark for the lane that will end it, so that it rings: there
// is no timer. If that lane died, its reaper ends it; and if it is the reaper that waits here, it
// first ends what the newly dead are in the middle of.
func (l *lane) patience(w *Word, done func(uint64) bool, wait uint64) {
	for i := range 256 {
		if done(w.Load()) {
			return
		}
		if i >= 64 {
			runtime.Gosched()
		}
		if crashing && controlled() {
			break
		}
	}
	// a goroutine that rings looks at the condition too, even when this one has gone on; so it
	// reads no field of the lane
	d, reaping := l.d, l.reaping != nil
	for !done(w.Load()) {
		seen, stuck := d.hdr.deathEpoch.Load(), obstacle{}
		if reaping {
			stuck = d.reapStamps(l)
		}
		d.park.await(context.Background(), d, &d.hdr.xowait, func() bool { // it cannot be cancelled
			return markUnless(w, done, wait) || stuck.gone() || reaping && d.hdr.deathEpoch.Load() != seen
		}, nil)
	}
}

// unstamp clears the stamp of an operation that is over.
func (d *Domain) unstamp(b *block) { d.change(b, 0, 0) }

// endPut clears the stamp of a published put of lane id, unless the message's reader has taken its
// place already.
func (d *Domain) endPut(b *block, id uint32) {
	for {
		w := b.w.Load()
		if w&xoMask != stamp(id, kindPut) {
			return
		}
		if b.w.CAS(w, w&^(xoMask|waitBit)) {
			if w&waitBit != 0 {
				d.wakeBits(&d.hdr.xowait)
			}
			return
		}
	}
}

// change clears the stamp and adds to the word what the end of the operation changes, in one CAS.
// Only the lane named by the stamp, or its reaper, may call it: nobody else changes the word
// meanwhile, but for WAIT.
func (d *Domain) change(b *block, clear, add uint64) {
	for {
		w := b.w.Load()
		if b.w.CAS(w, w&^(clear|xoMask|waitBit)+add) {
			if w&waitBit != 0 {
				d.wakeBits(&d.hdr.xowait)
			}
			return
		}
	}
}
