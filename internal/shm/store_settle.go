package shm

import (
	"context"
	"fmt"
	"runtime"
)

// settle returns b's state word once nobody is in the middle of an operation on it.
func (l *lane) settle(ctx context.Context, b *block) (stateWord, error) {
	if w := b.w.Load(); w&xoMask == 0 {
		return w, nil
	}
	return l.awaitStamp(ctx, b)
}

// awaitStamp asks for the word once more at the end: the ringing goroutine looks at the condition
// too.
func (l *lane) awaitStamp(ctx context.Context, b *block) (stateWord, error) {
	for {
		if err := patience(ctx, l, &b.w, unstamped, waitBit); err != nil {
			return 0, fmt.Errorf("block %d: %w", l.d.indexOf(b), err)
		}
		if w := b.w.Load(); unstamped(w) {
			return w, nil
		}
	}
}

func unstamped(w stateWord) bool { return !w.stamped() }

// markUnless asks to be woken when the word changes, by its bit wait, and reports false, or true if
// the word is done. Both are said of one and the same value: between a mark and a look of its own,
// the stamp that was marked could clear and another one, which nobody has marked, take its place,
// and the waiter would sleep for ever (docs/memory.md, "Words, stamps, evidence").
func markUnless[T law[T]](w *wordOf[T], done func(T) bool, wait T) bool {
	for {
		switch v := w.Load(); {
		case done(v):
			return !disabled("mark and look in one") || done(w.Load())
		case v&wait != 0 || w.CAS(v, v|wait):
			return false
		}
	}
}

// A stampWord is a word that says which lane is in the middle of changing it.
type stampWord[T any] interface {
	law[T]
	lane() uint32
}

// patience polls, yields, and then parks until the word is done, which is a matter of another
// lane's next step, or until ctx ends. The bit wait is a mark for the lane that will end it, so
// that it rings. If that lane died, its reaper ends it; and if it is the reaper that waits here, it
// first ends what the newly dead are in the middle of.
//
// A stamp that nobody will end is garbage, and the error is ErrCorrupt: see suspicion.
func patience[T stampWord[T]](ctx context.Context, l *lane, w *wordOf[T], done func(T) bool, wait T) error {
	for i := range 256 {
		if done(w.Load()) {
			return nil
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
	d, reaping, suspect := l.d, l.reaping != nil, suspicion[T]{d: l.d, l: l, wait: wait}
	for !done(w.Load()) {
		if err := suspect.look(w); err != nil {
			return err
		}
		seen, stuck := d.hdr.deathEpoch.Load(), obstacle{}
		if reaping {
			stuck = d.reapStamps(l)
		}
		again, cancel := suspect.nextLook(ctx)
		err := d.park.await(again, d, &d.hdr.xowait, func() bool {
			return markUnless(w, done, wait) || stuck.gone() || reaping && d.hdr.deathEpoch.Load() != seen
		}, nil)
		cancel()
		if err != nil && ctx.Err() != nil && !done(w.Load()) {
			return context.Cause(ctx)
		}
	}
	return nil
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
func (d *Domain) change(b *block, clear, add stateWord) {
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
