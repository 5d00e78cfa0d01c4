package sim

import (
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// Note [What the driver takes] On a GPU a context, the code of kernels and cuBLAS take some of the
// memory, and nobody can tell exactly how much. Here they take it out of what is free, as locks of
// ranges behind the end of its file: so a death gives them back as well, and a test finds its own
// memory where no driver's is. What the driver says is free is each time a little less than that,
// so that no program can take the figure for exact.
const (
	contextTakes = 2 << 20
	codeTakes    = 1 << 20 // the modules of a piece have it together
	codePiece    = 32
	blasTakes    = 1 << 20
	mostUnsaid   = 256 << 10 // of what is free
)

// sayFree returns what the driver says is free.
func (d *device) sayFree() (int64, error) {
	n, err := d.free()
	return max(n-rand.Int64N(mostUnsaid), 0), err
}

// free returns how much of the device nobody has.
func (d *device) free() (int64, error) {
	n, err := used(d.file, 0, d.size)
	if err != nil {
		return 0, err
	}
	own, err := used(d.file, d.size+eventArea, ownArea)
	return max(d.size-n-own, 0), err
}

// takeOwn takes memory for the context itself.
func (c *context) takeOwn(n int64) cudriver.Result {
	free, err := c.dev.free()
	if err != nil {
		return cudriver.ErrorOperatingSystem
	}
	if free < n {
		return cudriver.ErrorOutOfMemory
	}
	f, _, err := c.dev.take(c.dev.size+eventArea, ownArea, n, page)
	if err != nil || f == nil {
		return cudriver.ErrorOperatingSystem
	}
	c.takes = append(c.takes, f)
	return cudriver.Success
}

// giveOwn gives it back, at the end of the context.
func (c *context) giveOwn() {
	for _, f := range c.takes {
		f.Close()
	}
}
