package tensor

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A storage is the memory of one or more tensors: Go heap at first, or a block of shared memory. To
// share it replaces its memory, so all views follow.
type storage struct {
	mem     atomic.Pointer[memory]
	sharing sync.Mutex
	views   atomic.Int64 // open tensors and messages under way
	onClose atomic.Pointer[func()]
	version atomic.Uint64
}

// A memory is where bytes are. It does not change.
type memory struct {
	bytes []byte
	lease holder // nil on the heap
}

// A holder is what keeps shared memory: a lease of a block, a file, or memory from elsewhere.
type holder interface{ end() error }

// A lease is this process's one reference of a block.
type lease struct {
	domain *shm.Domain
	block  shm.Handle
	ended  atomic.Bool
	pinned bool         // under the storage's lock; see PinMemory
	unlock func() error // nil, or what ends that
}

// alignment is that of a cache line; the blocks of shm have it too.
const alignment = 64

// newHeap makes a storage of n zeros on the heap.
func newHeap(n int) *storage { return onHeap(aligned(sys.HeapBytes(n+alignment-1), n)) }

// emptyHeap makes a storage of n bytes on the heap, which hold anything: to clear them takes as
// long as an operation on them.
func emptyHeap(n int) *storage { return onHeap(aligned(sys.UnclearedBytes(n+alignment-1), n)) }

// aligned returns n bytes of b, which has as many more as it takes.
func aligned(b []byte, n int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment)
	return b[skip : skip+n : skip+n]
}

func onHeap(b []byte) *storage {
	s := new(storage)
	s.mem.Store(&memory{bytes: b})
	return s
}

// newShared makes a storage of n bytes, which hold anything, in the domain of this process.
func newShared(n int) (*storage, error) {
	m, err := allocate(n)
	if err != nil {
		return nil, err
	}
	s := new(storage)
	s.settle(m)
	return s, nil
}

func allocate(n int) (*memory, error) {
	d, err := shm.Default()
	if err != nil {
		return nil, err
	}
	h, err := d.Alloc(n)
	if err != nil {
		return nil, err
	}
	b, err := d.Bytes(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	return &memory{b[:n:n], &lease{domain: d, block: h}}, nil
}

// block returns the lease of a block in the arena, if that is where the memory is.
func (m *memory) block() (l *lease, ok bool) {
	l, ok = m.lease.(*lease)
	return l, ok
}

// settle makes shared memory the storage's own: known by its block, and given back when the storage
// is collected.
func (s *storage) settle(m *memory) {
	if l, ok := m.block(); ok {
		known.put(l, s)
	}
	s.rent(m)
}

func (s *storage) rent(m *memory) {
	s.mem.Store(m)
	runtime.AddCleanup(s, func(h holder) { h.end() }, m.lease)
}

// share moves the storage's bytes into shared memory, unless they are there.
func (s *storage) share() error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	old := s.mem.Load()
	if _, ok := old.block(); ok {
		return nil
	}
	if _, ok := old.lease.(*onDevice); ok {
		return nil // for all processes that have the device
	}
	if f, ok := old.file(); ok {
		if err := f.short(); f.shared || err != nil {
			return err
		}
	} else if old.lease != nil {
		return ErrForeign
	}
	m, err := allocate(len(old.bytes))
	if err != nil {
		return fmt.Errorf("share %d bytes: %w", len(old.bytes), err)
	}
	copy(m.bytes, old.bytes)
	if l, ok := m.block(); ok {
		l.domain.CountCopied(len(old.bytes))
	}
	s.settle(m)
	return nil
}

// retain counts one more view, unless the last one is gone.
func (s *storage) retain() bool {
	for {
		n := s.views.Load()
		if n < 0 {
			return false
		}
		if s.views.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// gone is the count of views of a storage that has given its block back.
const gone = -1 << 62

func (s *storage) release() error {
	if s.views.Add(-1) != 0 || !s.views.CompareAndSwap(0, gone) {
		return nil
	}
	if f := s.onClose.Load(); f != nil {
		defer (*f)()
	}
	if l := s.mem.Load().lease; l != nil {
		return l.end()
	}
	return nil
}

// end gives the block back, once.
func (l *lease) end() error {
	if l.ended.Swap(true) {
		return nil
	}
	known.drop(l)
	var unlocked error
	if l.unlock != nil {
		unlocked = l.unlock()
	}
	err := l.domain.Release(l.block)
	if errors.Is(err, shm.ErrClosed) {
		err = nil
	}
	if err = errors.Join(unlocked, err); err != nil {
		return fmt.Errorf("close tensor: %w", err)
	}
	return nil
}

// known finds the storage of a block that arrives once more, so that views of one storage stay
// views of one storage.
var known = registry{leases: map[place]entry{}}

type registry struct {
	mu     sync.Mutex
	leases map[place]entry
}

type place struct {
	domain *shm.Domain
	block  shm.Handle
}

type entry struct {
	lease   *lease
	storage weak.Pointer[storage]
}

func (r *registry) put(l *lease, s *storage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leases[place{l.domain, l.block}] = entry{l, weak.Make(s)}
}

// findOr returns the open storage of l's block, or else makes s it, which then owns the block.
func (r *registry) findOr(l *lease, s *storage, b []byte) *storage {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{l.domain, l.block}
	if old := r.leases[at].storage.Value(); old != nil && old.retain() {
		return old
	}
	r.leases[at] = entry{l, weak.Make(s)}
	s.rent(&memory{b, l})
	return s
}

func (r *registry) drop(l *lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := place{l.domain, l.block}
	if r.leases[at].lease == l {
		delete(r.leases, at)
	}
}

// adopt returns the storage of a block of which the caller has one reference, which becomes the
// storage's or is given back. The storage counts one view more.
func adopt(d *shm.Domain, h shm.Handle) (*storage, error) {
	b, err := d.Bytes(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	fresh := new(storage)
	fresh.views.Store(1)
	s := known.findOr(&lease{domain: d, block: h}, fresh, b)
	if s != fresh {
		return s, d.Release(h)
	}
	return s, nil
}
