package word

import "fmt"

// A Handle names a block of a domain across processes. It consists of the block's index (22 bits),
// its segment (8 bits, always 0 today) and its generation (32 bits). A handle becomes stale when
// the block is freed, and a use of a stale handle is detected. The zero Handle names no block.
type Handle uint64

// MakeHandle returns the handle of a block index in a generation.
func MakeHandle(index uint32, gen uint32) Handle { return Handle(uint64(gen)<<32 | uint64(index)) }

// Block returns the index of the block in its domain, which is less than [MaxBlocks]. No two blocks
// in use have the same index.
func (h Handle) Block() uint32 { return uint32(h) & (MaxBlocks - 1) }

// IsWellFormed reports whether h has a nonzero index in segment 0, the only segment.
func (h Handle) IsWellFormed() bool { return uint32(h) < MaxBlocks && h.Block() != 0 }

// Generation returns the generation of the block; see [State.Generation].
func (h Handle) Generation() uint32 { return uint32(h >> 32) }

// String formats the block's index and generation.
func (h Handle) String() string {
	if h == 0 {
		return "block none"
	}
	return fmt.Sprintf("block %d.%d", h.Block(), h.Generation())
}
