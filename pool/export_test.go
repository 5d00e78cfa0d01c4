package pool

import "time"

// ChunkSizeFor returns the chunk size of a call with n values.
func ChunkSizeFor(o Options, wanted, n int, perValue time.Duration) int {
	return o.chunkSize(wanted, n, perValue)
}

// PaceAfter returns the estimate after chunks of n values.
func PaceAfter(n int, took ...time.Duration) time.Duration {
	var p pace
	for _, t := range took {
		p.recordChunk(t, n)
	}
	return p.perValue()
}

// Workers returns how many workers the pool has.
func (p *Pool) Workers() int { return p.opts.Workers }
