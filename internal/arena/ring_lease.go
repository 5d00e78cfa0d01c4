package arena

import (
	"context"
	"errors"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Note [Leases] A get may lease its message: the slot becomes LEASED, and the message stays in it
// with its references, until the lease ends. An acknowledgement is a get of the LEASED slot. A
// return makes the slot FULL again, and so does the reaper if the leasing participant is dead. The
// head has passed that slot, so the lane that makes it FULL must count a return afterwards, and
// gets that see an uncounted return look at the slots behind the head first (docs/memory.md,
// "Leases").

// ErrNotLeased is returned if the lease has ended.
var ErrNotLeased = errors.New("shm: not leased")

// A Claim identifies a message that this participant has leased. [Ring.Lease] returns it. It may
// be passed to [Ring.Acknowledge] or [Ring.Return] of any view of the same ring in this
// participant.
type Claim struct {
	slot *layout.Slot
	word word.Slot
}

const (
	returnOne  = 1 << 32
	returnMask = returnOne - 1
)

// Lease leases the next message, and waits for one as [Ring.Get] does. Afterwards this process and
// the message each hold every block of the message once. The caller must end the lease by
// [Ring.Acknowledge] or [Ring.Return]. If this participant dies before that, the message is
// returned. The errors are the same as for [Ring.Get].
func (r *Ring) Lease(ctx context.Context, m *Message) (c Claim, err error) {
	err = r.awaitMessage(ctx, func(ctx context.Context) error {
		l, err := r.d.acquireLaneFor(ctx)
		if err != nil {
			return err
		}
		defer l.unlock()
		c, err = r.leaseMessage(l, m)
		return err
	})
	return c, err
}

func (r *Ring) leaseMessage(l *lane, m *Message) (c Claim, err error) {
	if !r.hasFlags(layout.RingLeases) {
		r.hdr.Flags.Or(layout.RingLeases)
	}
	s, lap, err := r.claimOldest(l, word.SlotLeased)
	if err != nil {
		return c, err
	}
	m.d = r.d
	c = Claim{s, word.MakeSlot(lap, word.SlotLeased, l.id)}
	if err := m.readSlot(s); err != nil {
		if s.Word.CAS(c.word, word.MakeSlot(lap, word.SlotReading, l.id)) {
			r.loseMessage(l, m, s, lap, 0)
			r.d.park.WakeBits(&r.hdr.NotFull)
		}
		return c, err
	}
	for _, i := range m.order { // the message holds the blocks, and its slot is leased to us
		r.d.addRef(i)
	}
	return c, nil
}

// Acknowledge removes a leased message from the ring, with the message's references. The
// references that [Ring.Lease] took remain the caller's. It returns [ErrNotLeased] if the lease
// has ended.
func (r *Ring) Acknowledge(c Claim) error {
	l, err := r.d.acquireLaneFor(briefly)
	if err != nil {
		return err
	}
	lap := c.word.Lap()
	if !c.slot.Word.CAS(c.word, word.MakeSlot(lap, word.SlotReading, l.id)) {
		l.unlock()
		return ErrNotLeased
	}
	var m Message
	err = r.completeGet(l, &m, c.slot, lap)
	r.d.park.WakeBits(&r.hdr.NotFull)
	if r.hasFlags(layout.RingFinished | layout.RingNoSenders) {
		r.d.park.WakeBits(&r.hdr.NotEmpty) // this may have been the last message
	}
	l.unlock()
	if err == nil {
		m.Discard()
	}
	return err
}

// Return puts a leased message back, and the next get takes it. The references that [Ring.Lease]
// took remain the caller's. It returns [ErrNotLeased] if the lease has ended.
func (r *Ring) Return(c Claim) error {
	l, err := r.d.acquireLaneFor(briefly)
	if err != nil {
		return err
	}
	if !c.slot.Word.CAS(c.word, word.MakeSlot(c.word.Lap(), word.SlotFull, c.word.Lane())) {
		l.unlock()
		return ErrNotLeased
	}
	r.countReturn()
	deserted := r.hasNoReceivers()
	if deserted {
		r.d.addRef(r.index()) // while the lease still holds it
	}
	l.unlock()
	if deserted {
		r.d.drainInOtherLane(nil, r.index(), time.Duration(briefly))
	}
	return nil
}

// countReturn makes gets look at the slots behind the head, and wakes the participants that wait
// for a message.
//
// Invariant (docs/memory.md, "Leases"): the slot must be FULL before the return is counted. A
// reaper counts a return for each ring that a dead participant held, so a death between the two
// leaves no message behind the head.
func (r *Ring) countReturn() {
	if !word.IsDisabled("count return") {
		r.hdr.Returns.Add(returnOne)
	}
	r.d.park.WakeBits(&r.hdr.NotEmpty)
}

// hasReturns reports whether a return was counted that gets have not looked for yet.
func (r *Ring) hasReturns() bool {
	v := r.hdr.Returns.Load()
	return v>>32 != v&returnMask
}

// nextReturned claims the oldest message behind the head, as word.SlotReading or
// word.SlotLeased, and returns its slot and lap. It returns nil if there is none.
//
// Invariant (docs/memory.md, "Leases"): returns may be marked as looked for only by a search
// that began after they were counted and found nothing.
func (r *Ring) nextReturned(l *lane, claim uint64) (s *layout.Slot, lap uint64) {
	for r.hasReturns() {
		v := r.hdr.Returns.Load()
		for s, w := range r.passedSlots {
			if w.State() == word.SlotFull && s.Word.CAS(w, word.MakeSlot(w.Lap(), claim, l.id)) {
				return s, w.Lap()
			}
		}
		r.hdr.Returns.CAS(v, v>>32<<32|v>>32)
	}
	return nil, 0
}

// passedSlots yields the slots behind the head with messages that are still in the ring, and their
// words. For a span that is being read it yields only the first slot.
func (r *Ring) passedSlots(yield func(*layout.Slot, word.Slot) bool) {
	head := r.hdr.Head.Load()
	for tk := head - min(head, r.cap); tk < head; {
		if !r.isBacked(tk) {
			tk++
			continue
		}
		s, lap := r.slot(tk), r.lap(tk)
		w := s.Word.Load()
		if w.Lap() == lap && !yield(s, w) {
			return
		}
		tk += w.UsedTickets(lap, word.SlotReading)
	}
}

// countBehind returns the number of slots behind the head in the given state.
func (r *Ring) countBehind(state uint64) (n int) {
	for _, w := range r.passedSlots {
		if w.State() == state {
			n++
		}
	}
	return n
}

// hasOutstanding reports whether a leased message may still be returned to receivers. A message
// stays in one slot from its put to its end, so one look at each slot is enough.
func (r *Ring) hasOutstanding() bool {
	if !r.hasFlags(layout.RingLeases) {
		return false
	}
	for _, w := range r.passedSlots {
		if w.State() == word.SlotLeased || w.State() == word.SlotFull {
			return true
		}
	}
	return false
}

// advancePast advances the head past the slot of ticket tk, which had the word w.
//
// Invariant (docs/memory.md, "Leases"): a message that is returned while the head is at it may be
// passed by a lane that saw it LEASED. That lane must count a return.
func (r *Ring) advancePast(tk uint64, w word.Slot) {
	lap := r.lap(tk)
	if r.hdr.Head.CAS(tk, tk+w.UsedTickets(lap, word.SlotReading)) && w.Lap() == lap && w.State() == word.SlotLeased &&
		r.slot(tk).Word.Load() != w {
		r.countReturn()
	}
}
