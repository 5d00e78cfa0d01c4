package park

import (
	"context"
	"math/bits"
	"runtime"
	"time"

	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/word"
)

const (
	spinPolls = 24
	pollRest  = 256                   // iterations of an empty loop: 0.1 µs
	spinTime  = 20 * time.Microsecond // duration of a spin
	probeTime = 3 * spinTime          // duration of a spin after a failed one
)

// SpinUntil polls the condition for a moment before the caller sleeps, and reports whether it
// became true. It returns false at once if h advises against a spin.
//
// After the first polls, spin goes on only if fewer than CPUs-1 participants spin, so that a
// spinner does not take the CPU from the participant that it waits for. The CPUs are those on
// which any participant may run, so a process that is confined to one of them spins for one on
// another.
//
// h skips spins that are likely to fail, as they always do if both sides share a CPU. The spin
// after a failure lasts longer ([probeTime]), because the other side may be asleep by then. So
// does the spin after a long one that succeeded: twice as long as that, because the other side
// may need that time for its work.
//
// A wait with a [ThreadWait] does not yield between the polls: its goroutine is locked to its
// thread, so that each yield would switch threads twice.
func (p *Lot) SpinUntil(ctx context.Context, h *AdaptiveBackoff, ready func() bool) bool {
	if word.Crashing && word.IsControlled() || !h.IsDue() {
		return false
	}
	found := pollReady(ready)
	if !found {
		if !p.startSpin() {
			return false
		}
		defer p.stopSpin()
		begin := time.Now()
		found = pollUntil(begin.Add(h.spinTime()), ready, threadWaitOf(ctx) == nil)
		if found {
			h.took.Store(int64(time.Since(begin)))
		}
	} else if h.took.Load() != 0 {
		h.took.Store(0)
	}
	h.RecordResult(found)
	return found
}

// spinTime returns how long to spin now.
func (h *AdaptiveBackoff) spinTime() time.Duration {
	if h.vain.Load() != 0 {
		return probeTime
	}
	return min(max(2*time.Duration(h.took.Load()), spinTime), probeTime)
}

// pollReady tests the condition up to spinPolls times, and reports whether it became true.
func pollReady(ready func() bool) bool {
	for range spinPolls {
		if ready() {
			return true
		}
		for range pollRest { // each test takes the cache line from its writer
		}
	}
	return false
}

// pollUntil polls the condition until end, and reports whether it became true. If yield is true,
// other goroutines may run between the polls.
func pollUntil(end time.Time, ready func() bool, yield bool) bool {
	for time.Now().Before(end) {
		if pollReady(ready) {
			return true
		}
		if yield {
			runtime.Gosched()
		}
	}
	return false
}

// startSpin registers this participant as a spinner. It reports false if there are enough spinners
// or this participant has one already. After true, the caller must call stopSpin.
func (p *Lot) startSpin() bool {
	n := uint64(0)
	for i := range p.mem.Header.Spinners {
		n += uint64(bits.OnesCount64(p.mem.Header.Spinners[i].Load()))
	}
	w := &p.mem.Header.Spinners[p.word]
	v := w.Load()
	return v&p.bit == 0 && hasProcessors(p.mem.Header, n+2) && w.CAS(v, v|p.bit)
}

// stopSpin ends the registration by startSpin.
func (p *Lot) stopSpin() { p.mem.Header.Spinners[p.word].AndNot(p.bit) }

// hasProcessors reports whether the participants may run on at least n processors together, and the
// domain's quota allows them to.
func hasProcessors(h *layout.Header, n uint64) bool {
	if h.Quota.Load() < n {
		return false
	}
	found := uint64(0)
	for i := range h.Processors {
		if found += uint64(bits.OnesCount64(h.Processors[i].Load())); found >= n {
			return true
		}
	}
	return false
}
