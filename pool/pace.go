package pool

import (
	"sync/atomic"
	"time"
)

// A pace estimates the time that a function takes for one value, from the chunks of earlier
// calls. It may be used from several goroutines. A slower chunk replaces the estimate at once
// and a faster one lowers it gradually, because an estimate that is too low leads to chunks that
// are too large.
type pace struct{ picoseconds atomic.Int64 }

// recordChunk records that a chunk of n values took the given time.
func (p *pace) recordChunk(took time.Duration, n int) {
	now := int64(min(max(took, 1), time.Hour)) * 1000 / int64(max(n, 1))
	if old := p.picoseconds.Load(); now < old {
		now = old - (old-now)/8
	}
	p.picoseconds.Store(now) // of two concurrent updates one may be lost
}

// perValue returns the estimated time for one value, at least 1 ns, or 0 before the first chunk.
func (p *pace) perValue() time.Duration {
	ps := p.picoseconds.Load()
	if ps == 0 {
		return 0
	}
	return max(1, time.Duration(ps/1000))
}
