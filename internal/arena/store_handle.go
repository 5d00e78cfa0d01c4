package arena

import "fmt"

// A Handle names a block of a domain across processes: the block's index (22 bits), its segment (8
// bits, always 0 today) and its generation (32 bits). A handle of a block that was freed since is
// found to be stale when it is used. The zero Handle names nothing.
type Handle uint64

func makeHandle(index uint32, gen uint32) Handle { return Handle(uint64(gen)<<32 | uint64(index)) }

func (h Handle) index() uint32 { return uint32(h) & (maxBlocks - 1) }

// MaxBlocks is how many blocks a domain has at most.
const MaxBlocks = maxBlocks

// Index returns the number of the block in its domain, below MaxBlocks: no two blocks that are in
// use have the same.
func (h Handle) Index() int { return int(h.index()) }

// wellFormed reports whether h names an index in the one segment that there is.
func (h Handle) wellFormed() bool { return uint32(h) < maxBlocks && h.index() != 0 }

func (h Handle) gen() uint32 { return uint32(h >> 32) }

// String returns the block's index and generation.
func (h Handle) String() string {
	if h == 0 {
		return "block none"
	}
	return fmt.Sprintf("block %d.%d", h.index(), h.gen())
}
