//go:build !shoalcrash

package arena

// ParkedForMemory reports whether a goroutine of this process waits for memory, after all others
// have collected. Crash builds have it outside of tests.
func (d *Domain) ParkedForMemory() bool {
	d.park.mu.Lock()
	defer d.park.mu.Unlock()
	n := d.hdr.pressure.Load()
	for _, l := range d.park.queues {
		if l.bits == &d.hdr.memwait && l.waiters.Load() > 0 {
			return n > 0 && d.allCollected(n)
		}
	}
	return false
}
