package sim

import (
	"math/rand/v2"

	"github.com/shoal-mp/shoal/internal/cuda/cudriver"
)

// Note [What the driver takes] On a GPU, contexts, kernel code and cuBLAS use some device memory,
// and the exact amount is not documented. The simulator subtracts it from the free memory and
// represents it as locks on ranges after the end of the file. So a process's death frees it too,
// and it does not shift the addresses of a test's own memory. The reported free memory is reduced
// by a random amount, so that programs cannot rely on an exact figure.
const (
	contextTakes = 2 << 20
	codeTakes    = 1 << 20 // shared by codePiece modules
	codePiece    = 32
	blasTakes    = 1 << 20
	mostUnsaid   = 256 << 10 // maximum reduction of the reported free memory
)

// reportedFree returns the free memory that the driver reports, in bytes: a random amount less
// than the actual one.
func (d *device) reportedFree() (int64, error) {
	n, err := d.free()
	return max(n-rand.Int64N(mostUnsaid), 0), err
}

// free returns the actual amount of free memory in bytes.
func (d *device) free() (int64, error) {
	n, err := usedBytes(d.file, 0, d.size)
	if err != nil {
		return 0, err
	}
	own, err := usedBytes(d.file, d.size+eventArea, ownArea)
	return max(d.size-n-own, 0), err
}

// allocateOwn allocates n bytes for the context itself. They are freed with the context. It
// returns ErrorOutOfMemory if the device has too little free memory. The caller must hold the
// driver's lock.
func (c *context) allocateOwn(n int64) cudriver.Result {
	free, err := c.dev.free()
	if err != nil {
		return cudriver.ErrorOperatingSystem
	}
	if free < n {
		return cudriver.ErrorOutOfMemory
	}
	f, _, err := c.dev.allocateBytes(c.dev.size+eventArea, ownArea, n, page)
	if err != nil || f == nil {
		return cudriver.ErrorOperatingSystem
	}
	c.takes = append(c.takes, f)
	return cudriver.Success
}

// freeOwn frees the context's own memory. It is called when the context ends.
func (c *context) freeOwn() {
	for _, f := range c.takes {
		f.Close()
	}
}
