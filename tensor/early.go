package tensor

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena"
)

// Note [Early sharing] A tensor on the heap is copied when it is shared, which takes longer than
// writing it. So a tensor starts in shared memory if at least half of the recent tensors of its
// size class were shared. This is not visible: until the program shares it, [Tensor.IsShared] is
// false. If the domain has less than half of its memory left, the tensor starts on the heap.
//
// As the contract of [Data] says, a slice of the tensor must not be used after the tensor has
// become unreachable, because the block then belongs to another tensor.
//
// A program that has never shared a tensor pays one atomic load for each large tensor.

// An earlyTable counts, by size class, the recent new tensors and how many of them the program
// shared, to decide whether a new tensor should start in shared memory. It may be used from
// several goroutines.
type earlyTable struct {
	// domain is the address of the domain in which tensors were shared; 0 if none was. It is only
	// compared, and does not keep the domain.
	domain atomic.Uintptr
	mu     sync.Mutex
	usage  [sizeClasses]usage // in that domain
}

// A usage contains the number of recent new tensors of one size class, and how many were shared.
type usage struct{ made, shared uint8 }

const (
	earlyFrom   = countedFrom // copying fewer bytes takes less than allocating a block
	earlyShares = 2           // a single shared tensor says nothing about the next one
	usageWindow = 32          // both numbers are halved when one of them reaches it
)

var earlies earlyTable

// newStorage returns a storage of n uninitialized bytes in shared memory, or nil if the tensor
// should start on the heap.
func (e *earlyTable) newStorage(n int) *Storage {
	if n < earlyFrom || n > cachedUpTo || e.domain.Load() == 0 {
		return nil
	}
	d := arena.Current()
	if d == nil || addressOf(d) != e.domain.Load() {
		return nil
	}
	if class, _ := classOf(n); !e.countMade(class) {
		return nil
	}
	h := d.AllocSpare(n)
	if h == 0 {
		return nil
	}
	b, err := d.Bytes(h)
	if err != nil {
		d.Release(h)
		return nil
	}
	s := newStorage()
	s.setBlock(d, h, b[:n:n])
	s.early.Store(true)
	return s
}

// countMade counts a new tensor and reports whether it should start in shared memory.
func (e *earlyTable) countMade(class int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	u := &e.usage[class]
	early := u.shared >= earlyShares && 2*u.shared > u.made
	u.made++
	u.limit()
	return early
}

// addressOf returns the address of d, for comparisons.
func addressOf(d *arena.Domain) uintptr { return uintptr(unsafe.Pointer(d)) }

// countShared counts a tensor of n bytes that was shared in d.
func (e *earlyTable) countShared(d *arena.Domain, n int) {
	if n < earlyFrom || n > cachedUpTo {
		return
	}
	class, _ := classOf(n)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.domain.Load() != addressOf(d) {
		e.usage = [sizeClasses]usage{}
		e.domain.Store(addressOf(d))
	}
	e.usage[class].shared++
	e.usage[class].limit()
}

func (u *usage) limit() {
	if max(u.made, u.shared) >= usageWindow {
		u.made /= 2
		u.shared /= 2
	}
}

// markShared records that the program has shared a tensor that started in shared memory. For
// other storages it does nothing.
func (s *Storage) markShared() {
	if s.early.Load() && s.early.CompareAndSwap(true, false) {
		earlies.countShared(s.own.domain, len(s.mem.Load().bytes))
	}
}
