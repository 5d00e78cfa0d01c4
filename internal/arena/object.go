package arena

import (
	"context"
	"errors"
)

// allocObject is Alloc for a block that means something to the protocol.
func (d *Domain) allocObject(ctx context.Context, size, commit uint64, kind objectKind) (Handle, error) {
	h, err := d.alloc(ctx, size, commit, kind)
	if err != nil {
		return d.allocUnderPressure(ctx, size, commit, kind, err)
	}
	return h, nil
}

// prepare gives a block that is stamped (l, ALLOC) its kind. It clears the bytes of a ring, a Sync,
// a timeline or contents first: zeroes are an empty one, and a reaper reads them once the kind is
// there.
func (l *lane) prepare(b *block, need uint64, kind objectKind) error {
	if kind == objectRing {
		l.shrink(b, need) // what lies beyond must be zero when the ring grows into it
	}
	if kind == objectRing || kind == objectSync || kind == objectTimeline || kind == objectContents {
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
	h, err := d.allocObject(briefly, 0, 0, kind)
	if err != nil {
		return 0, err
	}
	b := &d.blocks[h.index()]
	b.ext.Store(b.ext.Load() | uint64(ring.index())<<extOffsetShift)
	return h, nil
}

// endGone tells a ring that its last sending or receiving end is gone, and wakes the participants
// that wait for the other one. Without a receiving end it also takes the messages out, for nobody
// else can. It reports false if the domain was closed before it was done.
func (l *lane) endGone(token *block, flag uint64) bool {
	done := true
	known := l.withRing(l.d.lingering, token, func(b *block, hdr *ring) {
		hdr.flags.Or(flag)
		l.d.wakeBits(&hdr.notEmpty)
		l.d.wakeBits(&hdr.notFull)
		if flag == ringNoReceivers {
			done = l.drain(b)
		}
	})
	return known && done
}

// blame writes into the ring of an end which of its holders has died. It reports false if ctx ends
// before that is done.
//
// The name counts only once the end is gone, and until then each holder that closes the end in
// order takes the name back (docs/memory.md, "The name of the last"). So it does not matter who
// else holds the end: of those that die, and of those that close it, the last one decides.
func (l *lane) blame(ctx context.Context, token *block, dead uint64) bool {
	kind := extKind(token.ext.Load())
	if !kind.token() {
		return true
	}
	return l.withRing(ctx, token, func(_ *block, hdr *ring) { hdr.dead[kind-objectSenders].Store(dead) })
}

// absolve takes the name of a dead holder back, for one that closes the block in order and still
// holds it. Where a process is stopped while it finds out whether the ring is free, the name stays.
func (l *lane) absolve(b *block) {
	if extKind(b.ext.Load()).token() {
		l.blame(briefly/20, b, 0)
	}
}

// withRing calls f with the ring of an end. The ring may be gone, or its block may be something
// else by now: it is held while we look. It reports false if ctx ends before that is known.
//
// An end does not hold its ring (docs/memory.md, "Rings, ends and other objects"), so the ring may
// be freed while its end is finalised. Our bit comes first and the look after it, as in Import; and
// the ring must still name this very end.
func (l *lane) withRing(ctx context.Context, token *block, f func(*block, *ring)) bool {
	d := l.d
	i := uint32(extOffset(token.ext.Load()) / 64)
	if i == 0 || uint64(i) >= d.count() {
		return true
	}
	b := &d.blocks[i]
	d.acquire(i)
	defer func() {
		if !l.left.Load() { // else the bit goes with this participant
			l.release(i)
		}
	}()
	stays, known := l.stays(ctx, b)
	if !known {
		return false
	}
	if !stays || extKind(b.ext.Load()) != objectRing {
		return true
	}
	hdr, err := d.ringHeader(b)
	if err != nil {
		return true
	}
	me := uint64(makeHandle(d.indexOf(token), token.w.Load().generation()))
	if hdr.senders.Load() == me || hdr.receivers.Load() == me {
		f(b, hdr)
	}
	return true
}

// stays reports whether a block on which we have just set our bit is there, and will be; known is
// false if ctx ends before somebody's FREE stamp. A FREE
// stamp of somebody who may have missed the bit is waited for, but not the end of a block that is
// gone: ring R may hold the last end of ring S, and S that of R or its own.
//
// It waits for the FREE stamp alone, and not at all for GONE: every other stamp is of somebody that
// holds the block, which stays then.
func (l *lane) stays(ctx context.Context, b *block) (stays, known bool) {
	for {
		if err := patience(ctx, l.d, l, &b.w, decided, waitBit); err != nil {
			return false, errors.Is(err, ErrCorrupt) // garbage is nothing to rely on
		}
		if w := b.w.Load(); decided(w) {
			return w.staying(), true
		}
	}
}

// decided reports whether nobody is finding out whether the block is free.
func decided(w stateWord) bool { return w.kind() != kindFree || w&goneBit != 0 }

// staying reports whether the block whose word is decided is there, and will be for who holds it.
func (w stateWord) staying() bool { return w.allocated() && w.kind() != kindFree }

// drain takes every message out of a ring that nobody holds, or whose receiving end is gone, and
// keeps nothing. It reports false if the domain was closed meanwhile.
//
// Each message is over, its slot EMPTY and its stamps clear, before its blocks are released
// (docs/memory.md, "Rings, ends and other objects"): to release one may finalise the next object,
// and a lane reads one slot at a time.
func (l *lane) drain(b *block) bool {
	r, err := l.d.ringOf(b)
	if err != nil {
		return true // never finished: it has no messages
	}
	if r.finished(ringBoard) {
		return true // its messages hold it: it has none
	}
	var m Message
	for {
		at := r.hdr.head.Load()
		switch err := r.get(l, &m); {
		case err == nil:
			for _, i := range m.order {
				l.absolve(&l.d.blocks[i])
				l.release(i)
			}
			if l.left.Load() {
				return false
			}
		case errors.Is(err, ErrCorrupt) && r.hdr.head.Load() == at:
			return true // garbage, in which no message is found any more
		case errors.Is(err, ErrCorrupt): // one message is lost
		default:
			return !errors.Is(err, ErrClosed)
		}
	}
}
