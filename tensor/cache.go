package tensor

import (
	"fmt"
	"math"
	"math/bits"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A memoryCache keeps the host memory of closed tensors for later tensors, because reused memory
// needs neither page faults nor zeroing. It may be used from several goroutines: mu guards its
// fields.
//
// The memory is on Go's heap. Therefore a slice that [Data] returned keeps the memory of a
// dropped tensor alive (memory outside the heap would belong to another tensor by then), and the
// garbage collector accounts for it. Memory that has been in the cache for two collections is
// left to the collector, like the memory of tensors that are dropped without Close.
type memoryCache struct {
	mu        sync.Mutex
	limit     int // maximum of kept; at most a quarter of GOMEMLIMIT
	free      [sizeClasses][]spareMemory
	collected uint32 // number of collections since the cache was empty
	watching  bool   // whether collections are counted

	kept int // bytes in free
	// made is the number of bytes that have not been collected; idle is the part of them in free.
	// Both only count sizes of at least countedFrom.
	made, idle   int
	peak         int // maximum of made - idle
	hits, misses int // number of allocations with and without cached memory
}

// A spareMemory is a storage without views, with memory of one of the size classes.
type spareMemory struct {
	storage *Storage
	since   uint32 // value of collected when it was added
}

var memories = memoryCache{limit: 1 << 30}

// smalls contains small storages without views, by size in bytes: scalars and the results of small
// layers. A sync.Pool needs no lock, and also drops values that have not been used for two
// collections.
var smalls [cachedFrom]sync.Pool

// small is the class of storages in smalls.
const small = -1

const (
	cachedFrom  = 1 << 10  // smaller sizes are kept in smalls
	countedFrom = 32 << 10 // smaller sizes are not counted: a cleanup for each would take too long
)

// There are eight size classes between consecutive powers of two, so at most an eighth of the
// memory is wasted.
const (
	classBits   = 3
	sizeClasses = 40 << classBits
	cachedUpTo  = 1 << 42
)

// classOf returns the size class for n bytes, and the size in bytes of the memory in this class,
// which is at least n. n must be from cachedFrom to cachedUpTo.
func classOf(n int) (class, size int) {
	shift := bits.Len(uint(n-1)) - 1 - classBits
	steps := (n-1)>>shift + 1 // 9 to 16 units of 1<<shift bytes
	return shift<<classBits + steps - 1<<classBits - 1, steps << shift
}

// takeStorage returns a storage of n uninitialized bytes without views, or nil if the cache has
// none of this size.
func (c *memoryCache) takeStorage(n int) *Storage {
	if n < cachedFrom && n > 0 {
		s, ok := smalls[n].Get().(*Storage)
		if ok {
			s.version.Store(0)
		}
		return s
	}
	if n < cachedFrom || n > cachedUpTo {
		return nil
	}
	class, size := classOf(n)
	s := c.pop(class, size)
	if s == nil {
		return nil
	}
	s.version.Store(0)
	if m := s.mem.Load(); len(m.bytes) != n {
		s.mem.Store(&memory{bytes: m.fullBytes(size)[:n:n], class: class})
	}
	return s
}

// pop removes the most recently added storage of a size class from the cache and returns it, or
// nil if there is none. size is the size of the class in bytes.
func (c *memoryCache) pop(class, size int) *Storage {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.free[class]
	last := len(kept) - 1
	if last < 0 {
		c.misses++
		return nil
	}
	s := kept[last].storage
	kept[last] = spareMemory{}
	c.free[class] = kept[:last]
	c.addFree(-size)
	c.hits++
	return s
}

// newStorage returns a storage of n bytes, without views, that alloc allocates. When the storage
// is closed, the memory goes to the cache if n has a size class. newStorage panics with ErrMemory
// if n bytes cannot be allocated.
func (c *memoryCache) newStorage(n int, alloc func(n int) []byte) *Storage {
	must(checkMemory(n))
	if n < cachedFrom || n > cachedUpTo {
		s := newStorageOver(alignBytes(alloc(n+alignment-1), n))
		if n < cachedFrom && n > 0 {
			s.mem.Load().class = small
		}
		return s
	}
	class, size := classOf(n)
	b := alloc(size)
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%alignment != 0 {
		return newStorageOver(alignBytes(alloc(n+alignment-1), n))
	}
	s := newStorageOver(b[:n:n])
	s.mem.Load().class = class
	if size >= countedFrom {
		c.addUncollected(size)
		s.counted = runtime.AddCleanup(s, c.addUncollected, -size)
	}
	return s
}

// checkedFrom is the minimum size of allocations that are compared with the machine's memory. For
// this size, reading the limit takes less than a thousandth of the time of writing the bytes.
const checkedFrom = 1 << 30

// checkMemory returns an error that wraps ErrMemory if n bytes cannot be allocated. Without this
// check, package runtime would end the process.
func checkMemory(n int) error {
	if n < checkedFrom {
		return nil
	}
	most := int64(maxHeap)
	if m, err := sys.MemoryLimit(); err == nil {
		most = min(most, m.Most())
	}
	if int64(n) > most {
		return fmt.Errorf("%w: allocation of %d bytes exceeds the %d bytes of the machine or the control group",
			ErrMemory, n, most)
	}
	return nil
}

// maxHeap is a size that exceeds the address space of Go's heap.
const maxHeap = min(1<<46, math.MaxInt)

// addUncollected adds size to the number of bytes that have not been collected. A negative size
// records a collection. c.mu must not be held.
func (c *memoryCache) addUncollected(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made += size
	c.peak = max(c.peak, c.made-c.idle)
}

// addFree adds size, which is negative for removed memory, to the number of bytes in free. c.mu
// must be held.
func (c *memoryCache) addFree(size int) {
	c.kept += size
	if size >= countedFrom || -size >= countedFrom {
		c.idle += size
		c.peak = max(c.peak, c.made-c.idle)
	}
}

// fullBytes returns all memory that the cache allocated for m, including the unused rest. size
// must be the size of m's class.
func (m *memory) fullBytes(size int) []byte { return unsafe.Slice(unsafe.SliceData(m.bytes), size) }

// putStorage returns a storage without views to the cache, or leaves it to the garbage collector
// if the cache is full. The storage must have a size class, and the caller must not use it
// afterwards.
func (c *memoryCache) putStorage(s *Storage) {
	m := s.mem.Load()
	_, size := classOf(len(m.bytes))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept+size > c.limit {
		return
	}
	c.addFree(size)
	c.free[m.class] = append(c.free[m.class], spareMemory{s, c.collected})
	if !c.watching {
		c.watching = true
		c.limit = min(c.limit, int(debug.SetMemoryLimit(-1)/4))
		c.watchCollections(new(collection))
	}
}

// A collection is an unreachable object, so that each garbage collection runs its finalizer.
type collection struct{ _ *collection }

// watchCollections makes each garbage collection drop memory that has been in the cache for two
// collections. It ends when the cache is empty. next must be unreachable otherwise.
func (c *memoryCache) watchCollections(next *collection) {
	runtime.SetFinalizer(next, func(next *collection) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.collected++
		c.dropOld(func(s spareMemory) bool { return c.collected-s.since > 2 })
		if c.watching = c.kept > 0; c.watching {
			c.watchCollections(next)
		}
	})
}

// dropOld removes the memory that old selects from the cache and leaves it to the garbage
// collector. In each size class, it stops at the first memory that old does not select, because
// each class is sorted by age, oldest first. c.mu must be held.
func (c *memoryCache) dropOld(old func(s spareMemory) bool) {
	for class, kept := range c.free {
		n := 0
		for ; n < len(kept) && old(kept[n]); n++ {
			_, size := classOf(len(kept[n].storage.mem.Load().bytes))
			c.addFree(-size)
		}
		if n > 0 {
			c.free[class] = slices.Delete(kept, 0, n)
		}
	}
}

// EmptyCache frees the memory that this process keeps for later tensors, like
// torch.cuda.empty_cache. It first runs the garbage collector, to find tensors that were dropped
// without Close. It returns host memory to the operating system and device memory to the driver.
// It returns the errors of devices.
func EmptyCache() error {
	runCollector()
	memories.mu.Lock()
	memories.dropOld(func(spareMemory) bool { return true })
	memories.mu.Unlock()
	debug.FreeOSMemory()
	return device.EmptyCaches()
}

// runCollector runs the garbage collector and waits until the cleanups of unreachable tensors
// have been called, but at most two seconds. Cleanups run some time after a collection, so it
// waits for a cleanup of its own, and collects once more if this takes a second.
func runCollector() {
	done := make(chan struct{})
	runtime.AddCleanup(new(*Tensor), func(c chan struct{}) { close(c) }, done)
	for range 2 {
		runtime.GC()
		select {
		case <-done:
			return
		case <-time.After(time.Second):
		}
	}
}

// MemoryStats returns statistics of this process's tensors on the heap, under the names of
// torch.cuda.memory_stats:
//
//   - allocated_bytes.current and allocated_bytes.peak: bytes of tensors, including tensors that
//     were dropped but not collected yet;
//   - reserved_bytes.current: these bytes, and the memory of closed tensors kept for later ones;
//   - num_host_alloc: the number of allocations, including those that reused kept memory;
//   - num_alloc_reused: the number of allocations that reused kept memory.
//
// Tensors of less than 1 KiB and the memory of [FromSlice] are not counted at all. Allocated bytes
// do not include tensors of less than 32 KiB. A tensor starts in shared memory if the program
// shared most of the recent tensors of its size. Such a tensor is counted by shoal.MemoryStats
// instead.
func MemoryStats() map[string]int {
	c := &memories
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int{
		"allocated_bytes.current": c.made - c.idle,
		"allocated_bytes.peak":    c.peak,
		"reserved_bytes.current":  c.made - c.idle + c.kept,
		"num_host_alloc":          c.hits + c.misses,
		"num_alloc_reused":        c.hits,
	}
}
