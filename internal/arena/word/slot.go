package word

import "math/bits"

// States of a slot. The word of a fresh slot is 0, which is lap 0 and empty.
const (
	SlotEmpty = iota
	SlotWriting
	SlotFull
	SlotReading
	SlotSkip
	SlotLeased
)

// Positions of the fields of a slot word.
const (
	SlotLapShift   = 20
	slotSpanShift  = 17
	slotStateShift = 14
)

// A Slot holds the lap and the state of a slot, and the lane that is writing or reading its
// message.
type Slot uint64

// MakeSlot returns the word of a slot in the given lap and state, with a span of one; see
// [Slot.Span]. lane must be the lane that is writing or reading the message, or wrote it last. It
// must be 0 in a free slot.
func MakeSlot(lap, state uint64, lane uint32) Slot {
	return Slot(lap<<SlotLapShift | state<<slotStateShift | uint64(lane))
}

// Lap returns the number of times that the slot has been reused, modulo 2^44.
func (w Slot) Lap() uint64 { return uint64(w >> SlotLapShift) }

// State returns the slot's state, such as [SlotFull].
func (w Slot) State() uint64 { return uint64(w >> slotStateShift & 7) }

// Lane returns the lane that is writing, reading or leasing the message, or that made the slot
// FULL. It is 0 in a free slot.
func (w Slot) Lane() uint32 { return uint32(w & LaneMask) }

// IsBefore and IsAfter compare the slot's lap with another lap, which must be at most half of all
// laps away. Laps wrap around after 2^44: a queue with one slot and a million messages a second
// wraps in half a year.
func (w Slot) IsBefore(lap uint64) bool { return int64((w.Lap()-lap)<<SlotLapShift) < 0 }

func (w Slot) IsAfter(lap uint64) bool { return int64((w.Lap()-lap)<<SlotLapShift) > 0 }

// WithSpan returns w with a span of n slots, which a claim of the first slot covers. n must be a
// power of two.
func (w Slot) WithSpan(n uint64) Slot {
	return w | Slot(bits.TrailingZeros64(n))<<slotSpanShift
}

// Span returns the number of slots that w claims, including its own.
func (w Slot) Span() uint64 { return 1 << (w >> slotSpanShift & 7) }

// UsedTickets returns the number of tickets that w shows to be used up, from the ticket of w's
// slot on. That is the span while the slot is in the given lap and in state, which must be
// [SlotWriting] for the tail and [SlotReading] for the head. Otherwise the span has ended, and
// UsedTickets returns 1.
func (w Slot) UsedTickets(lap, state uint64) uint64 {
	if w.Lap() == lap && w.State() == state {
		return w.Span()
	}
	return 1
}

// FindFault returns a description of the reason why w is no legal slot word, whatever other
// words contain. It returns "" if there is none.
func (w Slot) FindFault() string {
	span, lane := uint64(w>>slotSpanShift&7), uint64(w&LaneMask)
	switch st := w.State(); {
	case st > SlotLeased:
		return "no such state"
	case (st == SlotEmpty || st == SlotSkip) && (span != 0 || lane != 0):
		return "a lane or a span in a free slot"
	case (st == SlotFull || st == SlotLeased) && span != 0:
		return "a span beside a message"
	}
	return ""
}
