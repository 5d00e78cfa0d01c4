package arena

import (
	"context"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A ring of news has a newest message that every participant can read while it stays in its slot. A
// message is the newest until a later one is FULL, and only a process that puts may remove the
// older ones. So there is always a newest message after the first put, whichever process dies. A
// read works like a lookup on the board: copy the message, acquire its blocks, and read the slot's
// word again.

// News reports whether r is a ring of news: its newest message stays in the ring, and [Ring.Peek]
// copies it.
func (r *Ring) News() bool { return r.news }

// Peek copies the newest message of a ring of news into m and leaves it in the ring. This
// process then holds each of its blocks once more and must release them, as after a get. The
// version increases with each put, and is never less than a version returned before in any
// process. Peek returns [ErrEmpty] before the first put, [ErrCorrupt] if the message is invalid,
// and [ErrClosed] if the domain is closed.
func (r *Ring) Peek(m *Message) (version uint64, err error) {
	l, err := r.d.acquireLane()
	if err != nil {
		return 0, err
	}
	defer l.unlock()
	for {
		tk, s, w := r.findNewest()
		if s == nil {
			return 0, ErrEmpty
		}
		ok, err := r.peekMessage(l, s, w, m, 0)
		if err != nil {
			return 0, err
		}
		if ok {
			return tk + 1, nil
		}
	}
}

// findNewest returns the ticket, slot and word of the newest message, or a nil slot before the
// first put. While other processes put messages and remove old ones, a scan of the slots may see
// each slot too early or too late. So findNewest reports no message only if two scans saw the
// same words. Words only increase.
func (r *Ring) findNewest() (tk uint64, s *layout.Slot, w word.Slot) {
	for before, again := uint64(0), false; ; again = true {
		var sum uint64
		tk, s, w, sum = r.lastFull(r.hdr.Tail.Load())
		if s != nil || again && sum == before {
			return tk, s, w
		}
		before = sum
	}
}

// lastFull returns the ticket and the word of the last FULL slot before the ticket tail, and the
// slot, or a nil slot if it found none. sum is the sum of tail and all other words that it read.
func (r *Ring) lastFull(tail uint64) (tk uint64, s *layout.Slot, w word.Slot, sum uint64) {
	sum = tail
	for tk = tail; tk > 0 && tail-tk < r.cap; {
		tk--
		if !r.isBacked(tk) {
			continue
		}
		s := r.slot(tk)
		w := s.Word.Load()
		if w.State() == word.SlotFull && w.Lap() == r.lap(tk) {
			return tk, s, w, sum
		}
		sum += uint64(w)
	}
	return 0, nil, 0, sum
}

// Version returns the version of the newest message, 0 before the first.
func (r *Ring) Version() uint64 {
	if tk, s, _ := r.findNewest(); s != nil {
		return tk + 1
	}
	return 0
}

// DropOld removes all messages except the newest. The caller must ensure that only one process at a
// time puts and drops.
func (r *Ring) DropOld() {
	var m Message
	for r.hasOld() && r.tryGet(briefly, &m) == nil {
		m.Discard()
	}
}

// hasOld reports whether there is a message besides the newest.
func (r *Ring) hasOld() bool {
	tk, s, _ := r.findNewest()
	if s == nil {
		return false
	}
	_, s, _, _ = r.lastFull(tk)
	return s != nil
}

// AwaitNews waits until there is a version greater than the given one. It returns the cause of
// ctx if ctx ends before, [ErrFinished] if the ring is finished, and [ErrClosed] if the view or
// the domain is closed.
func (r *Ring) AwaitNews(ctx context.Context, version uint64) error {
	news := func() bool { return r.Version() > version || r.isClosed() || r.hasFlags(layout.RingFinished) }
	if err := r.d.park.ParkUntil(ctx, &r.hdr.NotEmpty, news, nil); err != nil && !news() {
		return err
	}
	if r.isClosed() {
		return ErrClosed
	}
	if r.Version() <= version {
		return ErrFinished
	}
	return nil
}
