package arena

import "fmt"

// A Handle names a block of a domain across processes. It consists of the block's index (22 bits),
// its segment (8 bits, always 0 today) and its generation (32 bits). A handle becomes stale when
// the block is freed, and a use of a stale handle is detected. The zero Handle names no block.
type Handle uint64

func makeHandle(index uint32, gen uint32) Handle { return Handle(uint64(gen)<<32 | uint64(index)) }

func (h Handle) index() uint32 { return uint32(h) & (maxBlocks - 1) }

// MaxBlocks is the maximum number of blocks in a domain.
const MaxBlocks = maxBlocks

// Index returns the index of the block in its domain, which is less than [MaxBlocks]. No two blocks
// in use have the same index.
func (h Handle) Index() int { return int(h.index()) }

// wellFormed reports whether h has a nonzero index in segment 0, the only segment.
func (h Handle) wellFormed() bool { return uint32(h) < maxBlocks && h.index() != 0 }

func (h Handle) gen() uint32 { return uint32(h >> 32) }

// String formats the block's index and generation.
func (h Handle) String() string {
	if h == 0 {
		return "block none"
	}
	return fmt.Sprintf("block %d.%d", h.index(), h.gen())
}
