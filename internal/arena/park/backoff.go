package park

import "sync/atomic"

// An AdaptiveBackoff decides whether an optional step, such as a spin, is worth trying, from the
// results of the last tries. After the second failure in a row it skips the next tries: 1, then 3,
// 7 and so on up to [mostRest]. A success ends the skipping. It may be used by several goroutines:
// a race between them may cost a wasted or a missed try, and nothing else.
type AdaptiveBackoff struct {
	vain, rest atomic.Int32
	took       atomic.Int64 // ns of the last spin that succeeded, 0 if it was short
}

// mostRest is the maximum number of tries that are skipped in a row.
const mostRest = 63

// IsDue reports whether to try now. If it returns true, the caller must call
// [AdaptiveBackoff.RecordResult] after the try.
func (h *AdaptiveBackoff) IsDue() bool { return h.rest.Load() <= 0 || h.rest.Add(-1) < 0 }

// RecordResult records the result of a try: paid is true if it succeeded.
func (h *AdaptiveBackoff) RecordResult(paid bool) {
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

// Backoffs are the backoffs of one wait queue: one for spins, one for naps.
type Backoffs struct{ Spin, Nap AdaptiveBackoff }
