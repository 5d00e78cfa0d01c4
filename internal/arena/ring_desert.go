package arena

import "time"

// deserted reports whether the receiving end is gone. Nobody can get a message then, and there will
// be no other receiving end: the token of one is freed once.
//
// Invariant (docs/memory.md, "Messages for nobody"): a put looks when its message is in the ring,
// and the finaliser of the receiving end takes messages out when the flag is set. So one of the two
// sees the other.
func (r *Ring) deserted() bool { return r.finished(ringNoReceivers) }

// drainAside takes every message out of a deserted ring, in a goroutine, for which it waits no
// longer than most: a message's release may have to wait for other processes. It returns the rest
// of that time. The caller has acquired the ring, and drainAside releases it.
func (d *Domain) drainAside(caller *lane, ring uint32, most time.Duration) time.Duration {
	return d.aside(caller, most, func(l *lane) {
		l.doAside(func() {
			if l.drain(&d.blocks[ring]) {
				l.release(ring)
			}
		})
	})
}
