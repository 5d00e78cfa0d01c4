//go:build !shoalcrash

package arena

// ParkedForMemory reports whether a goroutine of this process waits for memory, after all others
// have collected. Crash builds have it outside of tests.
func (d *Domain) ParkedForMemory() bool {
	n := d.hdr.pressure.Load()
	for _, l := range d.park.queuesOf(d.topicOf(&d.hdr.memwait), nil) {
		if l.waiters.Load() > 0 {
			return n > 0 && d.allCollected(n)
		}
	}
	return false
}
