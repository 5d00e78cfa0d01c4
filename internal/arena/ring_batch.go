package arena

import (
	"errors"
	"math/bits"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Batch is a list of messages without blocks that are put, or got, together.
type Batch struct {
	Body []byte // the bodies of all messages, concatenated
	Ends []int  // the end offset of each message in Body
}

// Reset removes all messages and keeps the memory for reuse.
func (b *Batch) Reset() { b.Body, b.Ends = b.Body[:0], b.Ends[:0] }

// At returns the body of message i, which aliases b.Body.
func (b *Batch) At(i int) []byte {
	if i == 0 {
		return b.Body[:b.Ends[0]]
	}
	return b.Body[b.Ends[i-1]:b.Ends[i]]
}

// MaxBatch is the maximum number of messages moved by one claim.
const MaxBatch = layout.MaxBatch

// SlotBody is the maximum length in bytes of a message's body in a batch.
const SlotBody = layout.SlotBody

// Room returns the number of messages that the ring has room for. The number may have changed by
// the time Room returns.
func (r *Ring) Room() int { return int(r.limit) - r.Len() }

// TryPutBatch puts the first messages of the batch, in order, as many as there is room for, and
// returns their number. If it has put none, it returns the same errors as [Ring.TryPut]. No body
// may be longer than [SlotBody].
//
// One claim takes a power of two of slots by a CAS of the first slot's word. If the process is
// killed meanwhile, all messages of the completed claims are put, and none of the last claim.
func (r *Ring) TryPutBatch(b *Batch) (n int, err error) {
	for {
		n, err = r.putBatch(b)
		i, ok := err.(inTheWay)
		if !ok {
			return n, err
		}
		if err := r.d.awaitObstacle(briefly, i); err != nil {
			return 0, err
		}
	}
}

func (r *Ring) putBatch(b *Batch) (n int, err error) {
	if r.hasFlags(layout.RingFinished | layout.RingNoReceivers) {
		return 0, r.finishedError(layout.RingNoReceivers)
	}
	l, err := r.d.acquireLane()
	if err != nil {
		return 0, err
	}
	for err == nil && n < len(b.Ends) {
		var k int
		if k, err = r.putSpan(l, b, n); err == nil {
			n += k
		}
	}
	deserted := (n > 0 || errors.Is(err, ErrFinished)) && r.hasNoReceivers()
	if deserted {
		r.d.addRef(r.index())
	}
	if n > 0 {
		r.notEmpty.WakeParticipant() // within the lane, as in publish
	}
	l.unlock()
	if deserted {
		r.d.drainInOtherLane(nil, r.index(), time.Duration(briefly))
	}
	if n > 0 {
		return n, nil // the next put returns the error again
	}
	return 0, r.d.explainShortage(err)
}

// putSpan puts messages of the batch from index i on, as many as one claim has slots for, and
// returns their number. It returns 0 without an error after it has committed pages for more
// slots; the caller should then try again.
//
// Invariant (docs/memory.md, "Spans"): the first slot must become FULL last. Until then readers
// stop at it, so the other slots may be filled, or made holes by a reaper, in any order.
func (r *Ring) putSpan(l *lane, b *Batch, i int) (int, error) {
	l.incrementOpseq()
	tk, n, err := r.claimSlots(l, uint64(len(b.Ends)-i))
	if tk, ok := err.(unbacked); ok {
		return 0, r.commitSlots(briefly, l, uint64(tk))
	}
	if err != nil {
		return 0, err
	}
	if r.hasNoReceivers() {
		for j := n; j > 0; j-- {
			r.slot(tk + j - 1).Word.Store(word.MakeSlot(r.lap(tk+j-1), word.SlotSkip, 0))
		}
		return 0, r.finishedError(layout.RingNoReceivers)
	}
	for j := range n {
		s, p := r.slot(tk+j), b.At(i+int(j))
		l.setHeader(s, len(p), 0)
		copy(s.Body[:], p)
		if j > 0 {
			s.Word.Set(word.MakeSlot(r.lap(tk+j), word.SlotFull, l.id))
		}
	}
	r.slot(tk).Word.Store(word.MakeSlot(r.lap(tk), word.SlotFull, l.id))
	return int(n), nil
}

// countFree returns the number of slots that one claim can take from ticket tk on, up to most. It
// is a power of two, and 1 even if the first slot is not free.
//
// The slots stay free until a lane claims the first: a put reaches a slot only through the tail,
// and the tail passes only claimed slots.
func (r *Ring) countFree(tk, most uint64) uint64 {
	n, most := uint64(1), min(most, MaxBatch, r.cap)
	for n < most && r.isBacked(tk+n) && !r.exceedsLimit(tk+n) &&
		r.slot(tk+n).Word.Load() == word.MakeSlot(r.lap(tk+n), word.SlotEmpty, 0) {
		n++
	}
	return floorPower(n)
}

func floorPower(n uint64) uint64 { return 1 << (bits.Len64(n) - 1) }

// TryGetBatch takes the next messages, up to most of them, appends them to the batch, and
// returns their number. It stops before a message that has blocks or a spilled body, and at the
// end of the ring. If it returns 0, the caller should call [Ring.TryGet] to learn why. The only
// error is [ErrClosed], if the domain is closed.
func (r *Ring) TryGetBatch(b *Batch, most int) (n int, err error) {
	l, err := r.d.acquireLane()
	if err != nil {
		return 0, err
	}
	for k := 1; k > 0 && n < most; n += k {
		k = r.getSpan(l, b, most-n)
	}
	if n > 0 {
		r.notFull.WakeParticipant()
	}
	l.unlock()
	return n, nil
}

// getSpan takes as many messages as one claim can, up to most, appends them to the batch, and
// returns their number. It returns 0 if there is no message, or if the next one has blocks.
//
// Invariant (docs/memory.md, "Spans"): the first slot must be given back last. Until then no put
// reaches the other slots, and the first slot tells a reaper which slots a dead reader had
// claimed.
func (r *Ring) getSpan(l *lane, b *Batch, most int) int {
	var lengths [MaxBatch]uint8
	for {
		tk := r.hdr.Head.Load()
		s, lap := r.slot(tk), r.lap(tk)
		w, n := r.findPlainSpan(tk, uint64(most), &lengths)
		if n == 0 {
			return 0
		}
		if !s.Word.CAS(w, word.MakeSlot(lap, word.SlotReading, l.id).WithSpan(n)) {
			continue
		}
		r.hdr.Head.CAS(tk, tk+n)
		for j := range n {
			b.Body = append(b.Body, r.slot(tk + j).Body[:lengths[j]]...)
			b.Ends = append(b.Ends, len(b.Body))
		}
		for j := uint64(1); j < n; j++ {
			r.slot(tk + j).Word.Set(word.MakeSlot(r.lap(tk+j)+1, word.SlotEmpty, 0))
		}
		s.Word.Store(word.MakeSlot(lap+1, word.SlotEmpty, 0))
		return int(n)
	}
}

// findPlainSpan finds messages without blocks from ticket tk on. It returns the word of the first
// slot, the number of messages, which is a power of two or 0, and their body lengths. Lengths must
// be read only once, because another process may change them.
func (r *Ring) findPlainSpan(tk, most uint64, lengths *[MaxBatch]uint8) (first word.Slot, n uint64) {
	for most = min(most, MaxBatch, r.cap); n < most && r.isBacked(tk+n); n++ {
		s, lap := r.slot(tk+n), r.lap(tk+n)
		w := s.Word.Load()
		if w != word.MakeSlot(lap, word.SlotFull, w.Lane()) {
			break
		}
		meta := s.Meta.Load()
		length := meta >> 16 & 0xffff
		if meta&0xffff != 0 || length > layout.SlotBody { // has blocks, or is spilled
			break
		}
		lengths[n] = uint8(length)
		if n == 0 {
			first = w
		}
	}
	if n == 0 {
		return first, 0
	}
	return first, floorPower(n)
}

// forRestOfSpan calls f for each slot after the first, s, of the span that word w claimed, with the
// slot's word. Slots that have moved on to another lap are skipped.
func (r *Ring) forRestOfSpan(s *layout.Slot, w word.Slot, f func(*layout.Slot, word.Slot)) {
	tk := w.Lap()<<r.bits | r.slotIndex(s)
	for j := uint64(1); j < min(w.Span(), r.cap) && r.isBacked(tk+j); j++ {
		s := r.slot(tk + j)
		if w := s.Word.Load(); w.Lap() == r.lap(tk+j) {
			f(s, w)
		}
	}
}
