package arena

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Unmapping] A user may read slices returned by Bytes after Close, and operations of other
// goroutines that are still running at Close still read words. Both refer to the Domain, or to an
// object that does. So the segments stay mapped until the garbage collector finds a closed Domain
// unreachable. Until then a closed domain costs its pages and its addresses, and the collector
// accounts for neither. So New runs the collector if many such domains linger, or if no addresses
// are left. A domain of SHOAL_DEBUG=lifetime stays mapped, because its faults are explained until
// the process ends.

// lingering counts the domains of this process that are closed and still mapped.
var lingering atomic.Int64

// maxLingering is the number of lingering domains at which New runs the collector. Each has about 8
// MB of pages and 1 TiB of addresses; a process has 128 TiB of addresses.
const maxLingering = 32

// unmapAfter unmaps the segments when d becomes unreachable. A domain that was not closed is kept
// reachable by its own goroutines.
func (s *memfds) unmapAfter(d *Domain) {
	if s.lives == nil {
		runtime.AddCleanup(d, unmapBoth, [2][]byte{s.ctl, s.mem})
	}
}

func unmapBoth(segments [2][]byte) {
	for _, m := range segments {
		_ = sys.Unmap(m) // cannot fail: the address is a mapping
	}
	lingering.Add(-1)
}

// unmapClosed unmaps closed domains that are unreachable, and reports whether it unmapped one.
// It waits up to 10 ms, because cleanups run in a goroutine a moment after the collection.
func unmapClosed() bool {
	before := lingering.Load()
	if before == 0 {
		return false
	}
	runtime.GC()
	for begin := time.Now(); lingering.Load() >= before && time.Since(begin) < 10*time.Millisecond; {
		time.Sleep(100 * time.Microsecond)
	}
	return lingering.Load() < before
}
