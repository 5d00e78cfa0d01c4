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

// A memoryCache has the memory of closed tensors of the host for later ones: what is there needs
// neither page faults nor zeros.
//
// The memory is on Go's heap. So a slice that Data returned keeps the memory of a tensor that was
// dropped, which outside the heap would be another tensor's by then, and the collector counts it.
// What was in the cache through two collections is left to the collector, as all is that was
// dropped and not closed.
type memoryCache struct {
	mu        sync.Mutex
	limit     int // of the bytes in free; a quarter of GOMEMLIMIT if that is less
	free      [sizeClasses][]spareMemory
	collected uint32 // collections since there was nothing in free
	watching  bool   // that are counted

	kept         int // bytes in free
	made, idle   int // bytes that the collector has not found yet, and of those in free, where counted
	peak         int // the most that was made and not idle
	hits, misses int // how often memory was wanted
}

// A spareMemory is a storage without views that has memory of a class.
type spareMemory struct {
	storage *Storage
	since   uint32 // the collections before
}

var memories = memoryCache{limit: 1 << 30}

// smalls are storages without views that have few bytes, by how many: numbers and the results of
// small layers. Pools need no lock, and forget what is not used through two collections as well.
var smalls [cachedFrom]sync.Pool

// small is the class of these.
const small = -1

const (
	cachedFrom  = 1 << 10  // bytes: fewer are small
	countedFrom = 32 << 10 // bytes: of fewer, to learn that they were dropped takes too long
)

// Eight classes have sizes from one power of two up to the next, so that at most an eighth of the
// memory is not used.
const (
	classBits   = 3
	sizeClasses = 40 << classBits
	cachedUpTo  = 1 << 42
)

// classOf returns the class for n bytes and the size of its memory.
func classOf(n int) (class, size int) {
	shift := bits.Len(uint(n-1)) - 1 - classBits
	steps := (n-1)>>shift + 1 // 9 to 16 of 1<<shift bytes
	return shift<<classBits + steps - 1<<classBits - 1, steps << shift
}

// take returns a storage of n bytes, which hold anything, or nil.
func (c *memoryCache) take(n int) *Storage {
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
		s.mem.Store(&memory{bytes: m.whole(size)[:n:n], class: class})
	}
	return s
}

// pop takes the memory out of the cache that was used last.
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
	c.keep(-size)
	c.hits++
	return s
}

// make returns a storage of n bytes that alloc made, which come to the cache when they are closed.
func (c *memoryCache) make(n int, alloc func(n int) []byte) *Storage {
	must(checkMemory(n))
	if n < cachedFrom || n > cachedUpTo {
		s := onHeap(aligned(alloc(n+alignment-1), n))
		if n < cachedFrom && n > 0 {
			s.mem.Load().class = small
		}
		return s
	}
	class, size := classOf(n)
	b := alloc(size)
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%alignment != 0 {
		return onHeap(aligned(alloc(n+alignment-1), n))
	}
	s := onHeap(b[:n:n])
	s.mem.Load().class = class
	if size >= countedFrom {
		c.count(size)
		runtime.AddCleanup(s, c.count, -size)
	}
	return s
}

// checkedFrom is the size of allocations from which the memory of the machine is compared: to read
// it takes less than a thousandth of the time to write as many bytes.
const checkedFrom = 1 << 30

// checkMemory returns an error that wraps ErrMemory if no n bytes can be allocated. Package runtime
// would end the process then.
func checkMemory(n int) error {
	if n < checkedFrom {
		return nil
	}
	most := int64(maxHeap)
	if m, err := sys.MemoryLimit(); err == nil {
		most = min(most, m.Most())
	}
	if int64(n) > most {
		return fmt.Errorf("%w: want %d bytes, the machine or the control group has %d", ErrMemory, n, most)
	}
	return nil
}

// maxHeap is a size that Go's heap has no addresses for.
const maxHeap = min(1<<46, math.MaxInt)

// count adds to the bytes that the collector has not found.
func (c *memoryCache) count(size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made += size
	c.peak = max(c.peak, c.made-c.idle)
}

// keep counts so many bytes more in free.
func (c *memoryCache) keep(size int) {
	c.kept += size
	if size >= countedFrom || -size >= countedFrom {
		c.idle += size
		c.peak = max(c.peak, c.made-c.idle)
	}
}

// whole returns all that the cache has given to a memory of its.
func (m *memory) whole(size int) []byte { return unsafe.Slice(unsafe.SliceData(m.bytes), size) }

// put takes back the memory of a storage without views, unless the cache is full.
func (c *memoryCache) put(s *Storage) {
	m := s.mem.Load()
	_, size := classOf(len(m.bytes))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept+size > c.limit {
		return
	}
	c.keep(size)
	c.free[m.class] = append(c.free[m.class], spareMemory{s, c.collected})
	if !c.watching {
		c.watching = true
		c.limit = min(c.limit, int(debug.SetMemoryLimit(-1)/4))
		c.watch(new(collection))
	}
}

// A collection is an object that nothing refers to, so that each collection finds it.
type collection struct{ _ *collection }

// watch has each collection take what was in the cache through two of them, until it is empty.
func (c *memoryCache) watch(next *collection) {
	runtime.SetFinalizer(next, func(next *collection) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.collected++
		c.drop(func(s spareMemory) bool { return c.collected-s.since > 2 })
		if c.watching = c.kept > 0; c.watching {
			c.watch(next)
		}
	})
}

// drop leaves what is old to the collector. In each class the oldest come first.
func (c *memoryCache) drop(old func(s spareMemory) bool) {
	for class, kept := range c.free {
		n := 0
		for ; n < len(kept) && old(kept[n]); n++ {
			_, size := classOf(len(kept[n].storage.mem.Load().bytes))
			c.keep(-size)
		}
		if n > 0 {
			c.free[class] = slices.Delete(kept, 0, n)
		}
	}
}

// EmptyCache frees the memory that this process keeps for later tensors: torch.cuda.empty_cache. It
// runs two garbage collections to find tensors that were dropped and not closed. It gives memory of
// the host to Go's runtime, which returns it to the system, and memory of a device to its driver.
// The error is a device's.
func EmptyCache() error {
	collect()
	memories.mu.Lock()
	memories.drop(func(spareMemory) bool { return true })
	memories.mu.Unlock()
	debug.FreeOSMemory()
	return device.EmptyCaches()
}

// collect has the collector find what nobody has any more. What is to be done then is done some
// time after: collect waits for that of a value of its own.
func collect() {
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

// MemoryStats returns figures of the tensors on this process's heap, under the names of
// torch.cuda.memory_stats:
//
// - allocated_bytes.current and allocated_bytes.peak: bytes of tensors, with those that were
// dropped and not collected yet; - reserved_bytes.current: these bytes, and those that are kept of
// closed tensors for later ones; - num_host_alloc: how often a tensor needed memory; -
// num_alloc_reused: how often kept memory was used for it.
//
// Tensors of less than 32 KiB do not count, nor does the memory of FromSlice.
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
