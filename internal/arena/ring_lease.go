package arena

import (
	"context"
	"errors"
	"time"
)

// Note [Leases] A get may lease its message: the slot becomes LEASED, and the message stays in it
// with its references, until the lease ends. An acknowledgement is a get of the LEASED slot. A
// return makes the slot FULL again, and so does the reaper when the leasing participant is dead.
// The head has passed that slot, so the one that makes it FULL counts a return afterwards, and gets
// that see an uncounted return look at the slots behind the head first (docs/memory.md, "Leases").

// ErrNotLeased is returned for a lease that has ended.
var ErrNotLeased = errors.New("shm: not leased")

// A Claim is a message that this participant has leased.
type Claim struct {
	slot *slot
	word slotWord
}

const (
	returnOne  = 1 << 32
	returnMask = returnOne - 1
)

// Lease leases the next message, and waits for one as Get does. This process then holds each block
// of the message once, and so does the message. The claim must be acknowledged or returned; the
// message is returned if this participant dies before. The errors are those of Get.
func (r *Ring) Lease(ctx context.Context, m *Message) (c Claim, err error) {
	err = r.awaitMessage(ctx, func(ctx context.Context) error {
		l, err := r.d.enterFor(ctx)
		if err != nil {
			return err
		}
		defer l.unlock()
		c, err = r.lease(l, m)
		return err
	})
	return c, err
}

func (r *Ring) lease(l *lane, m *Message) (c Claim, err error) {
	if !r.finished(ringLeases) {
		r.hdr.flags.Or(ringLeases)
	}
	s, lap, err := r.next(l, slotLeased)
	if err != nil {
		return c, err
	}
	m.d = r.d
	c = Claim{s, makeSlotWord(lap, slotLeased, l.id)}
	if err := m.read(s); err != nil {
		if s.word.CAS(c.word, makeSlotWord(lap, slotReading, l.id)) {
			r.lose(l, m, s, lap, 0)
			r.d.wakeBits(&r.hdr.notFull)
		}
		return c, err
	}
	for _, i := range m.order { // the message holds them, and its slot is ours
		r.d.acquire(i)
	}
	return c, nil
}

// Acknowledge takes a leased message out of the ring. It returns ErrNotLeased if the lease has
// ended.
func (r *Ring) Acknowledge(c Claim) error {
	l, err := r.d.enterFor(briefly)
	if err != nil {
		return err
	}
	lap := c.word.lap()
	if !c.slot.word.CAS(c.word, makeSlotWord(lap, slotReading, l.id)) {
		l.unlock()
		return ErrNotLeased
	}
	var m Message
	err = r.take(l, &m, c.slot, lap)
	r.d.wakeBits(&r.hdr.notFull)
	if r.finished(ringFinished | ringNoSenders) {
		r.d.wakeBits(&r.hdr.notEmpty) // this may have been the last message
	}
	l.unlock()
	if err == nil {
		m.Discard()
	}
	return err
}

// Return puts a leased message back: the next get takes it. It returns ErrNotLeased if the lease
// has ended.
func (r *Ring) Return(c Claim) error {
	l, err := r.d.enterFor(briefly)
	if err != nil {
		return err
	}
	if !c.slot.word.CAS(c.word, makeSlotWord(c.word.lap(), slotFull, c.word.lane())) {
		l.unlock()
		return ErrNotLeased
	}
	r.countReturn()
	deserted := r.deserted()
	if deserted {
		r.d.acquire(r.index()) // as long as the lease holds it
	}
	l.unlock()
	if deserted {
		r.d.drainAside(nil, r.index(), time.Duration(briefly))
	}
	return nil
}

// countReturn has gets look behind the head.
//
// Invariant (docs/memory.md, "Leases"): the slot is FULL first. A reaper counts a return for each
// ring that the dead held, so a death between the two leaves no message behind the head.
func (r *Ring) countReturn() {
	if !disabled("count return") {
		r.hdr.returns.Add(returnOne)
	}
	r.d.wakeBits(&r.hdr.notEmpty)
}

// hasReturns reports whether there are returns for which no get has looked yet.
func (r *Ring) hasReturns() bool {
	v := r.hdr.returns.Load()
	return v>>32 != v&returnMask
}

// nextReturned claims the oldest message behind the head, or returns no slot.
//
// Invariant (docs/memory.md, "Leases"): returns are marked as looked for only by a look that began
// after they were counted and has found nothing.
func (r *Ring) nextReturned(l *lane, claim uint64) (s *slot, lap uint64) {
	for r.hasReturns() {
		v := r.hdr.returns.Load()
		for s, w := range r.passed {
			if w.state() == slotFull && s.word.CAS(w, makeSlotWord(w.lap(), claim, l.id)) {
				return s, w.lap()
			}
		}
		r.hdr.returns.CAS(v, v>>32<<32|v>>32)
	}
	return nil, 0
}

// passed yields the slots behind the head whose messages are still in the ring, with their words.
// Of a span that is being read it yields the first slot.
func (r *Ring) passed(yield func(*slot, slotWord) bool) {
	head := r.hdr.head.Load()
	for tk := head - min(head, r.cap); tk < head; {
		if !r.backed(tk) {
			tk++
			continue
		}
		s, lap := r.slot(tk), r.lap(tk)
		w := s.word.Load()
		if w.lap() == lap && !yield(s, w) {
			return
		}
		tk += w.taken(lap, slotReading)
	}
}

// behind returns how many slots behind the head are in the state.
func (r *Ring) behind(state uint64) (n int) {
	for _, w := range r.passed {
		if w.state() == state {
			n++
		}
	}
	return n
}

// outstanding reports whether a leased message may still be got. A message stays in its slot from
// its put to its end, so one look at each slot is enough.
func (r *Ring) outstanding() bool {
	if !r.finished(ringLeases) {
		return false
	}
	for _, w := range r.passed {
		if w.state() == slotLeased || w.state() == slotFull {
			return true
		}
	}
	return false
}

// pass moves the head past the slot of tk, whose word was w.
//
// Invariant (docs/memory.md, "Leases"): a message that is returned while the head is at it may be
// passed by a lane that saw it LEASED. That lane counts a return.
func (r *Ring) pass(tk uint64, w slotWord) {
	lap := r.lap(tk)
	if r.hdr.head.CAS(tk, tk+w.taken(lap, slotReading)) && w.lap() == lap && w.state() == slotLeased &&
		r.slot(tk).word.Load() != w {
		r.countReturn()
	}
}
