package arena

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

// A Holding describes a block that this process holds.
type Holding struct {
	Block Handle
	Bytes int64  // committed
	Kind  string // block, ring, sending end, receiving end, lock or timeline
	// call stack of the allocation or the receipt, with SHOAL_DEBUG=lifetime; otherwise empty
	Stack string
}

// String formats the holding in one line, followed by its stack if there is one.
func (h Holding) String() string {
	s := fmt.Sprintf("%v (%s), %d bytes", h.Block, h.Kind, h.Bytes)
	if h.Stack != "" {
		s += ", allocated or received by\n" + h.Stack
	}
	return s
}

// Holdings returns the blocks that this process holds, in the order of their indices. Other
// goroutines may acquire and release blocks meanwhile.
func (d *Domain) Holdings() []Holding {
	var all []Holding
	for i := uint32(1); uint64(i) < d.blockCount(); i++ {
		if !d.isHeld(i) {
			continue
		}
		b := &d.mem.Blocks[i]
		w := b.State.Load()
		if isContents(b, w) {
			continue
		}
		all = append(all, Holding{
			Block: word.MakeHandle(i, w.Generation()), Bytes: int64(b.Committed.Load()),
			Kind: layout.KindNames[layout.ExtentKind(b.Extent.Load())], Stack: d.lives.stack(i),
		})
	}
	return all
}
