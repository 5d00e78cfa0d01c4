package shoal

import (
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// oomCounter stores the kernel's latest count of out-of-memory kills, or -1 if it could not be
// read at first. Its methods may be called concurrently.
type oomCounter struct{ seen atomic.Int64 }

// oom is first called when the first group is created, before any process that could be killed is
// started.
var oom = sync.OnceValue(func() *oomCounter {
	c := new(oomCounter)
	n, _, err := sys.OOMKills()
	if err != nil {
		n = -1
	}
	c.seen.Store(n)
	return c
})

// checkKills is called after a process was killed. rose reports whether the count has increased
// since the last call, and shared whether the kills may have hit a process of another program.
// Both are false if the count cannot be read.
func (c *oomCounter) checkKills() (rose, shared bool) {
	n, shared, err := sys.OOMKills()
	if err != nil {
		return false, false
	}
	before := c.seen.Swap(n)
	return before >= 0 && n > before, shared
}
