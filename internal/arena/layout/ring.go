package layout

import (
	"fmt"
	"structs"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// RingHeader is the beginning of a ring's block. The slots follow it.
type RingHeader struct {
	_ structs.HostLayout

	Capacity  word.Word // number of slots, a power of two
	Flags     word.Word
	Senders   word.Word // handle of the sending end's token
	Receivers word.Word
	Limit     word.Word    // maximum number of messages, at most capacity
	Dead      [2]word.Word // processes that died as the last sender and the last receiver
	Text      [72]byte     // the label, padded by zeros
	Tail      word.Word    // hint: the next ticket to claim
	_         [120]byte
	Head      word.Word // hint: the next ticket to read
	Returns   word.Word // unacknowledged ends of leases 32 | ends that gets have looked for 32
	_         [112]byte
	NotEmpty  Bitmap // participants waiting for a message
	NotFull   Bitmap // participants waiting for a slot
	_         [64]byte
}

// RingHeaderSize is the size of a [RingHeader].
const RingHeaderSize = 512

// Flags of a ring. A flag must never be cleared.
const (
	RingFinished = 1 << iota
	RingNoSenders
	RingNoReceivers
	RingBoard  // its messages have names
	RingNews   // its messages are read in place
	RingLeases // one of its messages was leased
)

// SetLabel sets the ring's label, truncated to 72 bytes. It must be called before
// the ring has a capacity, while no other process reads the ring.
func (h *RingHeader) SetLabel(label string) { clear(h.Text[copy(h.Text[:], label):]) }

// Size returns the number of slots and the maximum number of messages. most is the maximum size of
// the ring's block in bytes. The error says which of the two is illegal.
func (h *RingHeader) Size(most uint64) (slots, limit uint64, err error) {
	slots = h.Capacity.Load()
	if slots&(slots-1) != 0 || slots == 0 || slots > (max(most, RingHeaderSize)-RingHeaderSize)/SlotSize {
		return 0, 0, fmt.Errorf("ring has capacity %d", slots)
	}
	limit = h.Limit.Load()
	if limit == 0 || limit > slots {
		return 0, 0, fmt.Errorf("ring has %d slots for %d messages", slots, limit)
	}
	return slots, limit, nil
}

// Slots returns the address of the first slot.
func (h *RingHeader) Slots() unsafe.Pointer { return unsafe.Add(unsafe.Pointer(h), RingHeaderSize) }

// Slot returns slot i, which must be less than the number of slots.
func (h *RingHeader) Slot(i uint64) *Slot { return (*Slot)(unsafe.Add(h.Slots(), i*SlotSize)) }

// LapOf returns the lap of a ticket in a ring with 1<<bits slots.
func LapOf(ticket uint64, bits int) uint64 { return ticket >> bits & (1<<(64-word.SlotLapShift) - 1) }
