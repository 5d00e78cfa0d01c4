package arena

import (
	"context"
	"errors"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// allocObject allocates a block of size bytes, the first commit of them with pages, for an
// object, which is a block that the protocol interprets by its kind. The caller holds one
// reference. If memory is short, allocObject reclaims memory and tries again until ctx ends.
func (d *Domain) allocObject(ctx context.Context, size, commit uint64, kind layout.ObjectKind) (Handle, error) {
	h, err := d.allocBlock(ctx, size, commit, kind)
	if err != nil {
		return d.allocUnderPressure(ctx, size, commit, kind, err)
	}
	return h, nil
}

// initObject sets the kind of a block that is stamped (l, ALLOC). need is the number of bytes
// that must have pages. It must clear the bytes of a ring, a Sync, a timeline or contents before
// it sets the kind: zeroed memory is an empty object, and a reaper reads the bytes as soon as
// the kind is set.
func (l *lane) initObject(b *layout.Block, need uint64, kind layout.ObjectKind) error {
	if kind == layout.ObjectRing {
		l.shrinkBlock(b, need) // memory beyond need must be zero when the ring grows into it
	}
	switch kind {
	case layout.ObjectRing, layout.ObjectSync, layout.ObjectTimeline, layout.ObjectContents:
		p, err := l.d.bytesOf(b)
		if err != nil {
			return err
		}
		clear(p)
	}
	b.Extent.Store(b.Extent.Load()&^layout.ExtentKindMask | uint64(kind)<<layout.ExtentKindShift)
	return nil
}

// newEnd allocates the token of one end of a ring: a block without bytes. Its extent holds the
// index of the ring's block. kind is layout.ObjectSenders or layout.ObjectReceivers. The caller
// holds one reference of the token.
func (d *Domain) newEnd(ring Handle, kind layout.ObjectKind) (Handle, error) {
	h, err := d.allocObject(briefly, 0, 0, kind)
	if err != nil {
		return 0, err
	}
	b := &d.mem.Blocks[h.Block()]
	b.Extent.Store(b.Extent.Load() | uint64(ring.Block())<<layout.ExtentOffsetShift)
	return h, nil
}

// finaliseEnd finalises the last sending or receiving end of a ring: it sets flag, which is
// layout.RingNoSenders or layout.RingNoReceivers, in the ring and wakes the participants that
// wait on it. If the receiving end is gone, it also drains the messages, because no receiver is
// left to take them. The caller's FREE stamp must stand on the token. finaliseEnd returns false
// if the domain was closed before it was done.
func (l *lane) finaliseEnd(token *layout.Block, flag uint64) bool {
	done := true
	known := l.withRing(l.d.lingering, token, func(b *layout.Block, hdr *layout.RingHeader) {
		hdr.Flags.Or(flag)
		l.d.park.WakeBits(&hdr.NotEmpty)
		l.d.park.WakeBits(&hdr.NotFull)
		if flag == layout.RingNoReceivers {
			done = l.drainRing(b)
		}
	})
	return known && done
}

// recordDeath records in the ring of an end token that the holder with the identity dead has
// died; 0 clears the record. It returns true without an effect if the block is not a token or
// the ring is gone, and false if ctx ends before the record is written. Some holder must keep
// the token allocated meanwhile.
//
// The record counts only after the end is freed. Until then each holder that closes the end in
// order clears the record (docs/memory.md, "The name of the last"). So other holders of the end
// do not matter: the last of the holders to die or close decides.
func (l *lane) recordDeath(ctx context.Context, token *layout.Block, dead uint64) bool {
	kind := layout.ExtentKind(token.Extent.Load())
	if !kind.IsToken() {
		return true
	}
	return l.withRing(ctx, token, func(_ *layout.Block, hdr *layout.RingHeader) {
		hdr.Dead[kind-layout.ObjectSenders].Store(dead)
	})
}

// clearDeath clears the record of a dead holder in the ring of an end token. It does nothing for
// other blocks. A holder that closes the block in order must call it while it still holds the
// block. If another process is stopped while it tests whether the ring is free, the record
// stays.
func (l *lane) clearDeath(b *layout.Block) {
	if layout.ExtentKind(b.Extent.Load()).IsToken() {
		l.recordDeath(briefly/20, b, 0)
	}
}

// withRing calls f with the block and the header of the ring that an end token belongs to. It
// does not call f, and returns true, if the ring is gone or its block has been reused. It holds
// the block while it looks. It returns false if ctx ends before the ring's state is known.
//
// An end does not hold its ring (docs/memory.md, "Rings, ends and other objects"), so the ring
// may be freed while its end is finalised. The participant's bit must be set before the look at
// the ring, as in Import, and the ring must still name this same end.
func (l *lane) withRing(ctx context.Context, token *layout.Block, f func(*layout.Block, *layout.RingHeader)) bool {
	d := l.d
	i := uint32(layout.ExtentOffset(token.Extent.Load()) / 64)
	if i == 0 || uint64(i) >= d.blockCount() {
		return true
	}
	b := &d.mem.Blocks[i]
	d.addRef(i)
	defer func() {
		if !l.left.Load() { // otherwise the bit is cleared with this participant
			l.releaseBlock(i)
		}
	}()
	stays, known := l.remainsAllocated(ctx, b)
	if !known {
		return false
	}
	if !stays || layout.ExtentKind(b.Extent.Load()) != layout.ObjectRing {
		return true
	}
	hdr, err := d.ringHeader(b)
	if err != nil {
		return true
	}
	me := uint64(word.MakeHandle(d.indexOf(token), token.State.Load().Generation()))
	if hdr.Senders.Load() == me || hdr.Receivers.Load() == me {
		f(b, hdr)
	}
	return true
}

// remainsAllocated reports whether a block is allocated and remains so. The caller must have set
// its bit on the block before. known is false if ctx ends before another lane's FREE stamp clears.
//
// remainsAllocated waits for a FREE stamp, because the lane that set it may have missed the bit. It
// does not wait if the stamp has GONE: ring R may hold the last end of ring S, and S the last end
// of R or its own. It does not wait for any other stamp: the lane of such a stamp holds the block,
// so the block stays.
func (l *lane) remainsAllocated(ctx context.Context, b *layout.Block) (stays, known bool) {
	for {
		if err := awaitWord(ctx, l.d, l, &b.State, isDecided, word.WaitBit); err != nil {
			return false, errors.Is(err, ErrCorrupt) // a corrupt word is not relied on
		}
		if w := b.State.Load(); isDecided(w) {
			return w.StaysAllocated(), true
		}
	}
}

// isDecided reports whether w shows that no lane is still testing whether the block is free: it
// has no FREE stamp, or GONE beside it.
func isDecided(w word.State) bool { return w.Kind() != word.KindFree || w&word.GoneBit != 0 }

// drainRing discards all messages of a ring that has no holder, or no receiving end. This
// process must hold the ring's block. drainRing returns false if the domain was closed
// meanwhile.
//
// A message must be finished, with its slot EMPTY and its stamps clear, before its blocks are
// released (docs/memory.md, "Rings, ends and other objects"): a release may finalise the next
// object, and a lane reads one slot at a time.
func (l *lane) drainRing(b *layout.Block) bool {
	r, err := l.d.ringOf(b)
	if err != nil {
		return true // the ring was never completed, so it has no messages
	}
	if r.hasFlags(layout.RingBoard) {
		return true // a board is held by its messages, so it has none
	}
	var m Message
	for {
		at := r.hdr.Head.Load()
		switch err := r.getMessage(l, &m); {
		case err == nil:
			for _, i := range m.order {
				l.clearDeath(&l.d.mem.Blocks[i])
				l.releaseBlock(i)
			}
			if l.left.Load() {
				return false
			}
		case errors.Is(err, ErrCorrupt) && r.hdr.Head.Load() == at:
			return true // corrupt: no further message can be found
		case errors.Is(err, ErrCorrupt): // one message is lost
		default:
			return !errors.Is(err, ErrClosed)
		}
	}
}
