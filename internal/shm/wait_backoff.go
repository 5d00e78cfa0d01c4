package shm

import "sync/atomic"

// An adaptiveBackoff says whether something that costs time is worth trying, from how it went
// lately: from the second time on that it was in vain it is left out for longer and longer, up to
// mostRest times. Goroutines may use it at once; what they mix up costs time, no more.
type adaptiveBackoff struct{ vain, rest atomic.Int32 }

const mostRest = 63

// due reports whether it is to be tried now.
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

// backoffs are those of who waits for one thing.
type backoffs struct{ spin, nap adaptiveBackoff }
