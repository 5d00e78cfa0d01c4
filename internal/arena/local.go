package arena

import (
	"fmt"

	"github.com/shoal-mp/shoal/internal/arena/layout"
)

// NewLocal makes a domain of size bytes on the Go heap, and joins it. No other process can
// attach to it, so its participants are in this process. It works on every operating system, and
// its accesses are visible to the race detector, which does not see mapped memory. The caller
// must close the domain. NewLocal returns an error if size is less than 64 KiB.
func NewLocal(size int) (*Domain, error) {
	if size < layout.SlabSize {
		return nil, fmt.Errorf("new local domain: size %d, want at least %d bytes", size, layout.SlabSize)
	}
	size = int(layout.RoundUp(uint64(size), layout.PageSize))
	return createDomain(newHeap(size, layout.CommitStep/layout.BlockSize*localSteps), int64(size))
}

// localSteps is the number of commit steps of block headers that a local domain has room for.
const localSteps = 8
