package arena

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Note [Unmapping] A user may read slices that Bytes returned after Close, and operations of other
// goroutines that Close overtook still read words. Both refer to the Domain, or to an object that
// does. So the segments stay mapped until the garbage collector finds that nothing refers to a
// closed Domain. A closed domain costs its pages and its addresses until then, and the collector
// knows of neither. So New runs the collector where many such domains linger, or where the
// addresses are used up. A domain of SHOAL_DEBUG=lifetime stays mapped: its faults are explained
// until the process ends.

// lingering counts the domains of this process that are closed and still mapped.
var lingering atomic.Int64

// maxLingering is how many of them New tolerates. Each has some 8 MB of pages and 1 TiB of
// addresses; a process has 128 TiB.
const maxLingering = 32

// unmapAfter unmaps the segments when d can no longer be reached. A domain that was not closed is
// reached by its own goroutines.
func (s *memfds) unmapAfter(d *Domain) {
	if s.lives == nil {
		runtime.AddCleanup(d, unmapBoth, [2][]byte{s.ctl, s.mem})
	}
}

func unmapBoth(segments [2][]byte) {
	for _, m := range segments {
		_ = sys.Unmap(m) // it fails for an address that is none
	}
	lingering.Add(-1)
}

// unmapClosed looks for closed domains that nothing refers to, and reports whether one was
// unmapped. Cleanups run on a goroutine a moment after the collection.
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
