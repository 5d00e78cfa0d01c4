package shm

import (
	"context"
	"errors"
)

// allocObject is Alloc for a block that means something to the protocol.
func (d *Domain) allocObject(size, commit uint64, kind objectKind) (Handle, error) {
	h, err := d.alloc(context.Background(), size, commit, kind)
	if err != nil {
		return d.allocUnderPressure(context.Background(), size, commit, kind, err)
	}
	return h, nil
}

// prepare gives a block that is stamped (l, ALLOC) its kind. It clears the bytes of a ring or a
// Sync first: zeroes are an empty one, and a reaper reads them once the kind is there.
func (l *lane) prepare(b *block, need uint64, kind objectKind) error {
	if kind == objectRing {
		l.shrink(b, need) // what lies beyond must be zero when the ring grows into it
	}
	if kind == objectRing || kind == objectSync {
		p, err := l.d.bytesOf(b)
		if err != nil {
			return err
		}
		clear(p)
	}
	b.ext.Store(b.ext.Load()&^extKindMask | uint64(kind)<<extKindShift)
	return nil
}

// newEnd makes the token of one end of a ring: a block without bytes whose extent names the ring.
func (d *Domain) newEnd(ring Handle, kind objectKind) (Handle, error) {
	h, err := d.allocObject(0, 0, kind)
	if err != nil {
		return 0, err
	}
	b := &d.blocks[h.index()]
	b.ext.Store(b.ext.Load() | uint64(ring.index())<<extOffsetShift)
	return h, nil
}

// endGone tells a ring that its last sending or receiving end is gone, and wakes the waiters at the
// other end.
func (l *lane) endGone(token *block, flag uint64) {
	l.withRing(token, func(hdr *ring) {
		hdr.flags.Or(flag)
		l.d.wakeBits(&hdr.notEmpty)
		l.d.wakeBits(&hdr.notFull)
	})
}

// withRing calls f with the ring of an end. The ring may be gone, or its block may be
// another object by now, so withRing holds the block while it looks.
//
// An end does not hold its ring (docs/memory.md, "Rings, ends and other objects"), so the ring may
// be freed while its end is finalised. Our bit comes first and the look after it, as in Import; and
// the ring must still name this very end.
func (l *lane) withRing(token *block, f func(*ring)) {
	d := l.d
	i := uint32(extOffset(token.ext.Load()) / 64)
	if i == 0 || uint64(i) >= d.count() {
		return
	}
	b := &d.blocks[i]
	d.acquire(i)
	defer l.release(i)
	if !l.stays(b) || extKind(b.ext.Load()) != objectRing {
		return
	}
	hdr, err := d.ringHeader(b)
	if err != nil {
		return
	}
	me := uint64(makeHandle(d.indexOf(token), token.w.Load().generation()))
	if hdr.senders.Load() == me || hdr.receivers.Load() == me {
		f(hdr)
	}
}

// stays reports whether a block on which we have just set our bit is there, and will be. stays
// waits for the end of a FREE stamp, whose lane may have missed the bit. It does not wait for the
// end of a block that is GONE: ring R may hold the last end of ring S, and S that of R or its own.
//
// It waits for no other stamp: the lane of any other one holds the block, which stays then.
func (l *lane) stays(b *block) bool {
	decided := func(w stateWord) bool { return w.kind() != kindFree || w&goneBit != 0 }
	for {
		if patience(context.Background(), l, &b.w, decided, waitBit) != nil {
			return false // garbage is nothing to rely on
		}
		if w := b.w.Load(); decided(w) {
			return w&allocBit != 0 && w.kind() != kindFree
		}
	}
}

// drain takes every message out of a ring that nobody holds, and drops it.
//
// Each message is over, its slot EMPTY and its stamps clear, before its blocks are released
// (docs/memory.md, "Rings, ends and other objects"): to release one may finalise the next object,
// and a lane reads one slot at a time.
func (l *lane) drain(b *block) {
	r, err := l.d.ringOf(b)
	if err != nil {
		return // never finished: it has no messages
	}
	if r.finished(ringBoard) {
		return // its messages hold it: it has none
	}
	var m Message
	for {
		switch err := r.get(l, &m); {
		case err == nil:
			for _, i := range m.order {
				l.release(i)
			}
		case errors.Is(err, ErrCorrupt):
		default:
			return
		}
	}
}
