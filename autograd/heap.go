package autograd

import (
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"

	"github.com/shoal-mp/shoal/tensor"
)

// heapOf returns the number of heap bytes that t occupies and that a move to shared memory frees.
func heapOf(t *tensor.Tensor) int {
	if foreignTensors.Check(t) != nil || t.IsShared() || t.Device() != nil {
		return 0
	}
	return t.Nbytes()
}

// leftBehind is the number of heap bytes that parameters have freed since the last collection by
// recordFreed.
var leftBehind atomic.Int64

// The thresholds for a collection: a number of bytes, and a part of the heap.
const (
	leastLeft = 8 << 20
	leftPart  = 8
)

// recordFreed records n freed bytes and returns the memory to the system when there is enough. The
// garbage collector would not run by itself, because a move to shared memory allocates nothing on
// the heap: a network loaded for serving would be in memory twice. leftPart bounds the cost of
// collecting a large heap.
func recordFreed(n int) {
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
