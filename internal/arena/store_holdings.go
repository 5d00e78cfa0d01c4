package arena

import "fmt"

// A Holding is a block that this process holds.
type Holding struct {
	Block Handle
	Bytes int64  // committed
	Kind  string // block, ring, sending end, receiving end, lock or timeline
	Stack string // where it was allocated or received, with SHOAL_DEBUG=lifetime; otherwise empty
}

// String says it in one line, and the stack in more.
func (h Holding) String() string {
	s := fmt.Sprintf("%v (%s), %d bytes", h.Block, h.Kind, h.Bytes)
	if h.Stack != "" {
		s += ", allocated or received by\n" + h.Stack
	}
	return s
}

var kindNames = map[objectKind]string{objectNone: "block", objectRing: "ring", objectSenders: "sending end",
	objectReceivers: "receiving end", objectSync: "lock", objectTimeline: "timeline"}

// Holdings returns what this process holds, in the order of the blocks. Others may go on meanwhile.
func (d *Domain) Holdings() []Holding {
	var all []Holding
	for i := uint32(1); uint64(i) < d.count(); i++ {
		if !d.held(i) {
			continue
		}
		b := &d.blocks[i]
		w := b.w.Load()
		if isContents(b, w) {
			continue
		}
		all = append(all, Holding{
			Block: makeHandle(i, w.generation()), Bytes: int64(b.committed.Load()),
			Kind: kindNames[extKind(b.ext.Load())], Stack: d.lives.stack(i),
		})
	}
	return all
}
