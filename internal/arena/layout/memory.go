package layout

import (
	"encoding/binary"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/word"
)

// Memory is the shared memory of a domain, as this process has mapped it.
type Memory struct {
	Header       *Header
	Participants *[word.MaxParticipants]Participant
	Lanes        *[MaxLanes]LaneRecord
	Blocks       []Block
	Data         []byte // the data segment
}

// OverlayMemory returns the structures in a control segment and a data segment. It reads neither:
// the caller must compare [Hash] with the header before it relies on another word.
func OverlayMemory(control, data []byte) Memory {
	return Memory{
		Header:       (*Header)(unsafe.Pointer(&control[0])),
		Participants: (*[word.MaxParticipants]Participant)(unsafe.Pointer(&control[OffParticipants])),
		Lanes:        (*[MaxLanes]LaneRecord)(unsafe.Pointer(&control[OffLanes])),
		Blocks: unsafe.Slice((*Block)(unsafe.Pointer(&control[OffBlocks])),
			(len(control)-OffBlocks)/BlockSize),
		Data: data,
	}
}

// Token returns the domain's random identity.
func (m *Memory) Token() (t [16]byte) {
	binary.LittleEndian.PutUint64(t[:8], m.Header.Token[0].Load())
	binary.LittleEndian.PutUint64(t[8:], m.Header.Token[1].Load())
	return t
}

// CountBlocks returns the end of the block indices in use, at most the number of headers with
// pages.
func (m *Memory) CountBlocks() uint64 {
	return min(m.Header.Blocks.Load(), m.Header.Ready.Load(), uint64(len(m.Blocks)))
}

// CountSeats returns an upper bound of the seats ever taken, exclusive.
func (m *Memory) CountSeats() int { return int(min(m.Header.Lanes.Load(), word.MaxParticipants)) }

// PIDOf returns the ID of the process in a seat, or of its last process if the seat is free.
func (m *Memory) PIDOf(seat int) int { return int(m.Participants[seat].PID.Load()) }

// ExtentRange returns the offset of the bytes of extent e and their maximum number. The lead of a
// slab covers the whole slab. ok is false if the extent is invalid.
func (m *Memory) ExtentRange(e uint64) (off, n uint64, ok bool) {
	c := ExtentClass(e)
	if c >= ClassCount {
		return 0, 0, false
	}
	off, n = ExtentOffset(e), ExtentSize(c)
	if e&ExtentLead != 0 {
		n = SlabSize
	}
	return off, n, c == 0 || off <= uint64(len(m.Data)) && n <= uint64(len(m.Data))-off
}

// BlockBytes returns the committed bytes of a block. A caller that does not hold the block must
// expect that it changes meanwhile. ok is false if the extent or the committed length is invalid.
func (m *Memory) BlockBytes(b *Block) (p []byte, ok bool) {
	e := b.Extent.Load()
	off, most, ok := m.ExtentRange(e)
	if !ok {
		return nil, false
	}
	n := b.Committed.Load()
	switch {
	case e&ExtentSmall != 0:
		n = ClassSize(ExtentClass(e))
	case ExtentClass(e) == 0:
		off, n = 0, 0
	}
	if n > most {
		return nil, false
	}
	return m.Data[off : off+n : off+n], true
}

// IsInTransit reports whether h is a block that is allocated in the handle's generation and held
// by messages, at least as many as in least, which is a transit field of a state word.
func (m *Memory) IsInTransit(h word.Handle, least uint64) bool {
	i := h.Block()
	if !h.IsWellFormed() || uint64(i) >= m.Header.Blocks.Load() {
		return false
	}
	w := m.Blocks[i].State.Load()
	return w&word.AllocBit != 0 && w.Generation() == h.Generation() && w&word.TMask >= word.State(least)
}

// IsAllocated reports whether h is a block that is allocated in the handle's generation.
func (m *Memory) IsAllocated(h word.Handle) bool { return m.IsInTransit(h, 0) }
