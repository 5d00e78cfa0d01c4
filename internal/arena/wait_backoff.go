package arena

import "sync/atomic"

// An adaptiveBackoff says whether something that costs time is worth a try, by how the last tries
// went: from the second one in vain on, the next tries are left out, more and more of them,
// mostRest at most. Goroutines may use it at once; a race between them costs time and no more.
type adaptiveBackoff struct{ vain, rest atomic.Int32 }

const mostRest = 63

// due reports whether to try now.
func (h *adaptiveBackoff) due() bool { return h.rest.Load() <= 0 || h.rest.Add(-1) < 0 }

// learn takes note of how a try went.
func (h *adaptiveBackoff) learn(paid bool) {
	if paid && h.vain.Load() == 0 {
		return
	}
	n := int32(0)
	if !paid {
		n = min(2*h.vain.Load()+1, 2*mostRest+1)
	}
	h.vain.Store(n)
	h.rest.Store(n / 2)
}

// backoffs are those of the waiters for one thing.
type backoffs struct{ spin, nap adaptiveBackoff }
