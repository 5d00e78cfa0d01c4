package audit

import "github.com/shoal-mp/shoal/internal/arena/layout"

// A Source is a domain that an auditor reads.
type Source interface {
	// Memory returns the shared memory.
	Memory() *layout.Memory
	// IsAlive reports whether a participant holds the proof of life of a seat.
	IsAlive(seat int) (bool, error)
	// Backed returns the number of block headers, and the number of seats with lane records, that
	// may be read because they have pages.
	Backed() (headers, seats uint64)
	// BackedBytes returns the number of bytes of the data segment, from off on, that may be read.
	BackedBytes(off uint64) uint64
}

// Self describes the participant that audits its own domain at rest. It knows more about itself
// than the shared memory does.
type Self struct {
	Seat int
	// IsHeld reports whether this process holds a reference to block i.
	IsHeld func(i uint32) bool
	// Kept returns the free blocks that this process keeps outside of the free lists.
	Kept func() []uint32
	// Allocated returns the number of bytes of the data segment that the kernel has allocated. It
	// is nil if the segment is no file.
	Allocated func() (int64, error)
}
