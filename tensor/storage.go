package tensor

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Storage is the memory that one or more tensors view, as an untyped storage of PyTorch: Go heap
// at first, a block of shared memory after [Tensor.Share], or memory that a package brought from
// elsewhere. [Tensor.Share] replaces the memory, so all views follow.
//
// A storage that has given a block back is used again for another one, since a new one, with what
// the garbage collector keeps about it, takes longer than all else that a tensor needs. Each life
// of a storage has a number, and its tensors have the same. So a closed tensor is told from those
// of a later life.
type Storage struct {
	mem     atomic.Pointer[memory]
	sharing sync.Mutex
	life    atomic.Uint64 // its number; in the low 32 bits the open tensors and messages under way
	onClose atomic.Pointer[func()]
	version atomic.Uint64
	own     *lease       // of its blocks, one after the other; nil before it has one
	giver   *Tensor      // that gave it to a message which is under way
	given   arena.Handle // the block that went with the message
	shell   *Tensor      // between two lives: one that nobody has, for the first tensor of the next
}

// A memory is where bytes are. It does not change.
type memory struct {
	bytes []byte
	lease holder // nil on the heap
	class int    // of the memory cache, if it comes from there; small if it is kept by its length
}

// A holder is what keeps shared memory: a lease of a block, a file, or memory from elsewhere.
type holder interface{ end() error }

// A lease is this process's one reference of a block, which one storage has. Only the goroutine
// that ends the storage's life, or begins the next one, writes to it.
type lease struct {
	storage  weak.Pointer[Storage]
	domain   *arena.Domain
	block    arena.Handle // 0 when it was given back
	received int          // its bytes, if it came in a message
	pinned   bool         // under the storage's lock; see PinMemory
	unlock   func() error // nil, or what ends that
}

// alignment is that of a cache line; the blocks of shm have it too.
const alignment = 64

// newHeap makes a storage of n zeros on the heap.
func newHeap(n int) *Storage {
	s := memories.take(n)
	if s == nil {
		return memories.make(n, sys.HeapBytes)
	}
	clear(s.mem.Load().bytes)
	return s
}

// emptyHeap makes a storage of n bytes on the heap, which hold anything: to clear them takes as
// long as an operation on them.
func emptyHeap(n int) *Storage {
	if s := memories.take(n); s != nil {
		return s
	}
	return memories.make(n, sys.UnclearedBytes)
}

// aligned returns n bytes of b, which has as many more as it takes.
func aligned(b []byte, n int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment)
	return b[skip : skip+n : skip+n]
}

// onHeap makes a storage of b, without views.
func onHeap(b []byte) *Storage {
	s := new(Storage)
	s.mem.Store(&memory{bytes: b})
	return s
}

// newShared makes a storage of n bytes, which hold anything, in the domain of this process. It
// counts one view.
func newShared(n int) (*Storage, error) {
	d, h, b, err := allocate(n)
	if err != nil {
		return nil, err
	}
	s := spare()
	s.settle(d, h, b)
	s.begin()
	return s, nil
}

// allocate returns a new block of n bytes.
func allocate(n int) (*arena.Domain, arena.Handle, []byte, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, 0, nil, err
	}
	h, err := d.Alloc(n)
	if err != nil {
		return nil, 0, nil, err
	}
	b, err := d.Bytes(h)
	if err != nil {
		return nil, 0, nil, errors.Join(err, d.Release(h))
	}
	return d, h, b[:n:n], nil
}

// spares are storages without views and without memory.
var spares sync.Pool

// spare returns a storage that can have a block. The block is given back when the storage is
// collected, if not before.
func spare() *Storage {
	if s, ok := spares.Get().(*Storage); ok {
		if s.version.Load() != 0 {
			s.version.Store(0)
		}
		return s
	}
	s := new(Storage)
	s.ready()
	return s
}

// ready makes the lease of a storage's blocks.
func (s *Storage) ready() {
	s.own = &lease{storage: weak.Make(s)}
	runtime.AddCleanup(s, func(l *lease) { l.end() }, s.own)
}

// describe tells those who look at a program that is debugged what the block of t is.
func (t *Tensor) describe() {
	s := t.storage.Load()
	if s == nil {
		return
	}
	if l, ok := s.mem.Load().block(); ok && l.domain.Watched() {
		const most = 80 // letters of a shape
		shape := fmt.Sprint(t.Shape())
		if len(shape) > most {
			shape = shape[:most] + "…"
		}
		l.domain.Describe(l.block, arena.Contents{DType: t.dtype.String(), Shape: shape,
			Raw: t.dtype == Uint8 && t.Dims() == 1})
	}
}

// settle makes block h the memory of s. Other goroutines may use its memory before.
func (s *Storage) settle(d *arena.Domain, h arena.Handle, b []byte) {
	l := s.own
	l.domain, l.block, l.pinned, l.unlock = d, h, false, nil
	// In steady state it is the block that the storage had before.
	if m := s.mem.Load(); m == nil || m.lease != holder(l) || !sameBytes(m.bytes, b) {
		s.mem.Store(&memory{bytes: b, lease: l})
	}
}

// sameBytes reports whether a and b are the same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// block returns the lease of a block in the arena, if that is where the memory is.
func (m *memory) block() (l *lease, ok bool) {
	l, ok = m.lease.(*lease)
	return l, ok
}

// rent makes m, which is not a block, the memory of a storage, which gives it back when it is
// collected, if not before.
func (s *Storage) rent(m *memory) {
	s.mem.Store(m)
	runtime.AddCleanup(s, func(h holder) { h.end() }, m.lease)
}

// share moves the storage's bytes into shared memory, unless they are there. They stay there as
// long as the storage lives.
func (s *Storage) share() error {
	if _, ok := s.mem.Load().block(); ok {
		return nil // without the lock, which takes a fifth of the time to write a tensor
	}
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
	d, h, b, err := allocate(len(old.bytes))
	if err != nil {
		return fmt.Errorf("share %d bytes: %w", len(old.bytes), err)
	}
	copy(b, old.bytes)
	d.CountCopied(len(b))
	s.ready()
	s.settle(d, h, b)
	return nil
}

// begin counts the first view of a storage without views. Until then nobody else changes its life:
// other goroutines have no tensor of that life, and a table that still has its lease finds it
// closed.
func (s *Storage) begin() { arena.SetLocal(&s.life, s.life.Load()+1) }

// lifeBits is where the number of a storage's life begins.
const lifeBits = 32

// number is that of the storage's life, which ends with its last view.
func (s *Storage) number() uint32 { return uint32(s.life.Load() >> lifeBits) }

// retain counts one more view, unless that life is over.
func (s *Storage) retain(number uint32) bool {
	for {
		n := s.life.Load()
		if uint32(n>>lifeBits) != number {
			return false
		}
		if s.life.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// retainOpen counts one more view, if there is one or never was.
func (s *Storage) retainOpen() bool {
	for {
		n := s.life.Load()
		if uint32(n) == 0 && n != 0 {
			return false
		}
		if s.life.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release counts one view less. With the last one the storage's life ends.
func (s *Storage) release() error { return s.releaseOf(s.number(), nil) }

// releaseOf is release of a view that may have been given away since: then that life is over. The
// shell, if there is one, is a closed tensor that nobody has: it stays with a storage whose life
// ends.
func (s *Storage) releaseOf(number uint32, shell *Tensor) error {
	for {
		n := s.life.Load()
		if uint32(n>>lifeBits) != number || uint32(n) == 0 {
			return nil
		}
		next := n - 1
		if uint32(next) == 0 {
			next += 1 << lifeBits
		}
		if s.life.CompareAndSwap(n, next) {
			if uint32(next) != 0 {
				return nil
			}
			break
		}
	}
	var f *func()
	if s.onClose.Load() != nil { // a swap of nil by nil locks the line all the same
		f = s.onClose.Swap(nil)
	}
	var err error
	m := s.mem.Load()
	if m.lease != nil {
		err = m.lease.end()
	}
	if shell != nil {
		s.shell = shell
	}
	switch {
	case m.class == small:
		smalls[len(m.bytes)].Put(s)
	case m.class != 0:
		memories.put(s)
	case m.lease == holder(s.own) && s.own != nil:
		spares.Put(s)
	}
	if f != nil {
		(*f)()
	}
	return err
}

// end gives the block back, unless that was done.
func (l *lease) end() error {
	h := l.block
	if h == 0 {
		return nil
	}
	l.part()
	var unlocked error
	if l.unlock != nil {
		unlocked = l.unlock()
	}
	err := l.domain.Release(h)
	if errors.Is(err, arena.ErrClosed) {
		err = nil
	}
	if err = errors.Join(unlocked, err); err != nil {
		return fmt.Errorf("close tensor: %w", err)
	}
	return nil
}

// part forgets the block, whose reference is returned or goes with a message.
func (l *lease) part() {
	known.of(l.domain).drop(l)
	l.block = 0
	if l.received != 0 {
		l.domain.Returned(l.received)
		l.received = 0
	}
}

// check returns an error unless the block is in the domain that this process has now.
func (l *lease) check() error {
	if d, err := arena.Default(); err != nil || d != l.domain {
		return errors.Join(fmt.Errorf("send tensor: %w", ErrDomain), err)
	}
	return nil
}

// adopt returns the storage of a block of which the caller has one reference, which becomes the
// storage's or is given back. The storage counts one view more.
func adopt(d *arena.Domain, h arena.Handle) (*Storage, error) {
	table := known.of(d)
	if s := table.open(h); s != nil {
		return s, d.Release(h)
	}
	b, err := d.Bytes(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	fresh := spare()
	fresh.settle(d, h, b)
	fresh.begin()
	fresh.own.received = len(b)
	d.Received(len(b))
	if s := table.openOrPut(fresh.own); s != nil {
		return s, fresh.release()
	}
	return fresh, nil
}
