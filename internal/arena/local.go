package arena

import "fmt"

// NewLocal makes a domain of this process alone, of size bytes on the Go heap, and joins it. Its
// workers are goroutines: no other process can attach to it. It works on every operating system,
// and the race detector, which is blind to mapped memory, sees its accesses. The caller
// closes it.
func NewLocal(size int) (*Domain, error) {
	if size < slabSize {
		return nil, fmt.Errorf("new local domain of %d bytes: want at least %d", size, slabSize)
	}
	size = int(roundUp(uint64(size), pageSize))
	return create(newHeap(size, commitStep/blockSize*localSteps), int64(size))
}

// localSteps is for how many steps of block headers a local domain has room.
const localSteps = 8
