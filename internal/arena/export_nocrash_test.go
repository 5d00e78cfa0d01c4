//go:build !shoalcrash

package arena

// ParkedForMemory reports whether a goroutine of this process waits for memory, after all others
// have collected. Crash builds have it outside of tests.
func (d *Domain) ParkedForMemory() bool {
	n := d.mem.Header.Pressure.Load()
	for _, l := range d.park.QueuesOf(d.park.TopicOf(&d.mem.Header.MemWait), nil) {
		if l.Waiters() > 0 {
			return n > 0 && d.allCollected(n)
		}
	}
	return false
}
