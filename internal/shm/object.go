package shm

import "errors"

// allocObject is Alloc for a block that means something to the protocol.
func (d *Domain) allocObject(size, commit uint64, kind objectKind) (Handle, error) {
	h, err := d.alloc(size, commit, kind)
	if errors.Is(err, ErrNoSpace) {
		return d.allocUnderPressure(size, commit, kind, err)
	}
	return h, err
}

// prepare gives a block that is stamped (l, ALLOC) its kind. The bytes of a ring or a Sync are
// cleared first: zeroes are an empty one, and from here on a reaper reads them.
func (l *lane) prepare(b *block, need uint64, kind objectKind) {
	if kind == objectRing {
		l.shrink(b, need) // what lies beyond must be zero when the ring grows into it
	}
	if kind == objectRing || kind == objectSync {
		if p, err := l.d.bytesOf(b); err == nil {
			clear(p)
		}
	}
	b.ext.Store(b.ext.Load()&^extKindMask | uint64(kind)<<extKindShift)
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

// endGone tells a ring that its last sending or receiving end is gone, and wakes who waits for the
// other one.
func (l *lane) endGone(token *block, flag uint64) {
	l.withRing(token, func(hdr *ring) {
		hdr.flags.Or(flag)
		l.d.wakeBits(&hdr.notEmpty)
		l.d.wakeBits(&hdr.notFull)
	})
}

// withRing calls f with the ring of an end. The ring may be gone, or its block may be something
// else by now: it is held while we look.
func (l *lane) withRing(token *block, f func(*ring)) {
	d := l.d
	i := uint32(extOffset(token.ext.Load()) / 64)
	if i == 0 || uint64(i) >= d.hdr.blocks.Load() {
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
	me := uint64(makeHandle(d.indexOf(token), generation(token.w.Load())))
	if hdr.senders.Load() == me || hdr.receivers.Load() == me {
		f(hdr)
	}
}

// stays reports whether a block on which we have just set our bit is there, and will be. A FREE
// stamp of somebody who may have missed the bit is waited for, but not the end of a block that is
// gone: ring R may hold the last end of ring S, and S that of R or its own.
func (l *lane) stays(b *block) bool {
	decided := func(w uint64) bool { return stampKind(w) != kindFree || w&goneBit != 0 }
	for {
		l.patience(&b.w, decided, waitBit)
		if w := b.w.Load(); decided(w) {
			return w&allocBit != 0 && stampKind(w) != kindFree
		}
	}
}

// drain takes every message out of a ring that nobody holds, and keeps nothing.
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
