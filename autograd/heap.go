package autograd

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/shoal-mp/shoal/tensor"
)

// heapOf returns how many bytes of Go's heap a tensor has that moves to shared memory.
func heapOf(t *tensor.Tensor) int {
	if foreignTensors.Check(t) != nil || t.IsShared() || t.Device() != nil {
		return 0
	}
	return t.Nbytes()
}

// leftBehind is how many bytes of the heap parameters have left since the last collection for them.
var leftBehind atomic.Int64

// Parameters leave so many bytes behind, or this part of the heap, before they are collected.
const (
	leastLeft = 8 << 20
	leftPart  = 8
)

// left gives back the memory that parameters had on the heap. The collector would not begin by
// itself, since a move to shared memory allocates nothing on the heap: a network that is loaded to
// be served would be in memory twice. The part bounds what the collections cost of a large heap.
func left(n int) {
	all := leftBehind.Add(int64(n))
	if n == 0 || all < leastLeft {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	if metrics.Read(live); live[0].Value.Kind() == metrics.KindUint64 && uint64(all) < live[0].Value.Uint64()/leftPart {
		return
	}
	if leftBehind.CompareAndSwap(all, 0) {
		debug.FreeOSMemory()
	}
}
