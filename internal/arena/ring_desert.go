package arena

import (
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// hasNoReceivers reports whether the receiving end is gone. Then no process can get a message, and
// no other receiving end will appear, because a ring's token is freed only once.
//
// Invariant (docs/memory.md, "Messages without a receiver"): a put must call hasNoReceivers after
// its message is in the ring, and the finaliser of the receiving end takes messages out after the
// flag is set. So one of the two sees the other.
func (r *Ring) hasNoReceivers() bool { return r.hasFlags(layout.RingNoReceivers) }

// drainInOtherLane discards all messages of a deserted ring, given the index of its block, in a
// goroutine. It waits for the goroutine no longer than most, because the release of a message
// may have to wait for other processes. It returns the remaining time. caller is the lane of
// this goroutine, or nil. The caller must have acquired the ring, and drainInOtherLane releases
// it.
func (d *Domain) drainInOtherLane(caller *lane, ring uint32, most time.Duration) time.Duration {
	return d.runInOtherLane(caller, most, func(l *lane) {
		l.runAndUnlock(func() {
			if l.drainRing(&d.mem.Blocks[ring]) {
				l.releaseBlock(ring)
			}
		})
	})
}
