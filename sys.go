package shoal

import (
	"sync"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/sys"
)

// oomCounter remembers how often the kernel has killed for lack of memory.
type oomCounter struct{ seen atomic.Int64 }

// oom is read for the first time when the first group is made, before the start of any process that
// it could be about.
var oom = sync.OnceValue(func() *oomCounter {
	c := new(oomCounter)
	n, _, err := sys.OOMKills()
	if err != nil {
		n = -1
	}
	c.seen.Store(n)
	return c
})

// blame is asked after a process was killed. It reports whether there were more such kills than
// before, and whether they may have hit a process of another program.
func (c *oomCounter) blame() (rose, shared bool) {
	n, shared, err := sys.OOMKills()
	if err != nil {
		return false, false
	}
	before := c.seen.Swap(n)
	return before >= 0 && n > before, shared
}
