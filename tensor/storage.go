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
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// A Storage is the memory viewed by one or more tensors, like an untyped storage in PyTorch. It is
// on the Go heap at first, in a block of shared memory after [Tensor.Share], or in memory provided
// by another package. [Tensor.Share] replaces the memory for all views.
//
// Storages are pooled after they have released a block, because allocating one and registering its
// cleanup takes longer than the rest of a small tensor. Each reuse increments the storage's
// generation. Tensors record the generation of their storage, so a closed tensor is detected.
type Storage struct {
	mem     atomic.Pointer[memory]
	sharing sync.Mutex
	// uses is the generation in the high 32 bits, and the number of open tensors and messages in
	// flight in the low 32 bits.
	uses    atomic.Uint64
	onClose atomic.Pointer[func()]
	version atomic.Uint64
	own     *lease       // lease of its blocks; nil before the first one
	giver   *Tensor      // tensor that transferred s to a message in flight
	given   arena.Handle // block transferred to that message
	shell   *Tensor      // recycled Tensor for the first tensor of the next generation
	early   atomic.Bool  // in shared memory, but not shared by the program yet; see Note [Early sharing]
	counted runtime.Cleanup
	former  atomic.Pointer[weak.Pointer[Storage]] // heap memory before it was shared; see keepFormer
}

// A memory is the location of a storage's bytes. It is immutable.
type memory struct {
	bytes []byte
	lease holder // nil on the heap
	class int    // size class in the memory cache, if any; small if it is kept by length
}

// A holder keeps memory outside the Go heap: a block lease, a file, device memory or foreign
// memory. releaseMemory must be idempotent.
type holder interface{ releaseMemory() error }

// A lease is this process's single reference to a block, owned by one storage. Only the goroutine
// that ends the storage's generation or starts the next one may write to it.
type lease struct {
	storage  weak.Pointer[Storage]
	domain   *arena.Domain
	block    arena.Handle // 0 after it has been released
	received int          // bytes, if the block was received in a message
	pinned   bool         // guarded by the storage's lock; see PinMemory
	unlock   func() error // unlocks pinned pages, or nil
}

// alignment is the size of a cache line. Blocks of shared memory have the same alignment.
const alignment = 64

// newHeap returns a storage of n zero bytes, without views, on the heap or in shared memory; see
// Note [Early sharing].
func newHeap(n int) *Storage {
	s := earlies.newStorage(n)
	if s == nil {
		s = memories.takeStorage(n)
	}
	if s == nil {
		return memories.newStorage(n, sys.HeapBytes)
	}
	clear(s.mem.Load().bytes)
	return s
}

// newHeapStorage is like newHeap, but the bytes are uninitialized: clearing them takes as long as
// an operation.
func newHeapStorage(n int) *Storage {
	if s := earlies.newStorage(n); s != nil {
		return s
	}
	if s := memories.takeStorage(n); s != nil {
		return s
	}
	return memories.newStorage(n, sys.UnclearedBytes)
}

// alignBytes returns n bytes of b that begin at a multiple of alignment. b must have
// n+alignment-1 bytes.
func alignBytes(b []byte, n int) []byte {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % alignment)
	return b[skip : skip+n : skip+n]
}

// newStorageOver returns a storage over b, without views.
func newStorageOver(b []byte) *Storage {
	s := new(Storage)
	s.mem.Store(&memory{bytes: b})
	return s
}

// newShared returns a storage of n uninitialized bytes in this process's domain, with one
// reference, which the caller must release. The error wraps shm.ErrNoSpace if the domain is full.
func newShared(n int) (*Storage, error) {
	d, h, b, err := allocateBlock(n)
	if err != nil {
		return nil, err
	}
	s := newStorage()
	s.setBlock(d, h, b)
	s.addFirstView()
	return s, nil
}

// allocateBlock returns a new block of n uninitialized bytes, its domain and its bytes. The
// caller owns the reference to the block.
func allocateBlock(n int) (*arena.Domain, arena.Handle, []byte, error) {
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

// spares contains storages without views and without memory.
var spares sync.Pool

// newStorage returns a storage without memory and without views, with a lease for blocks. A block
// that it gets is released at the latest when the storage is collected.
func newStorage() *Storage {
	if s, ok := spares.Get().(*Storage); ok {
		if s.version.Load() != 0 {
			s.version.Store(0)
		}
		if s.early.Load() {
			s.early.Store(false)
		}
		return s
	}
	s := new(Storage)
	s.initLease()
	return s
}

// initLease creates the lease of a storage's blocks. Its block is released at the latest when the
// storage is collected.
func (s *Storage) initLease() {
	s.own = &lease{storage: weak.Make(s)}
	runtime.AddCleanup(s, func(l *lease) { l.releaseMemory() }, s.own)
}

// describeBlock records the dtype and shape of t for debugging tools, if t is in a block of a
// domain that they watch.
func (t *Tensor) describeBlock() {
	s := t.storage.Load()
	if s == nil {
		return
	}
	if l, ok := s.mem.Load().block(); ok && l.domain.Watched() {
		const most = 80 // bytes of the text of a shape
		shape := fmt.Sprint(t.Shape())
		if len(shape) > most {
			shape = shape[:most] + "…"
		}
		l.domain.Describe(l.block, arena.Contents{DType: t.dtype.String(), Shape: shape,
			Raw: t.dtype == Uint8 && t.Dims() == 1})
	}
}

// setBlock makes block h of d, with the bytes b, the memory of s. It takes over the caller's
// reference to the block. s must have a lease. Other goroutines may use s, but not its lease, at
// the same time.
func (s *Storage) setBlock(d *arena.Domain, h arena.Handle, b []byte) {
	l := s.own
	l.domain, l.block, l.pinned, l.unlock = d, h, false, nil
	// Usually it is the block that the storage had before.
	if m := s.mem.Load(); m == nil || m.lease != holder(l) || !sameBytes(m.bytes, b) {
		s.mem.Store(&memory{bytes: b, lease: l})
	}
}

// sameBytes reports whether a and b are the same memory.
func sameBytes(a, b []byte) bool {
	return len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// block returns the lease of the block that contains the memory; ok is false if the memory is not
// a block.
func (m *memory) block() (l *lease, ok bool) {
	l, ok = m.lease.(*lease)
	return l, ok
}

// setForeign makes m, which must have a holder and must not be a block, the memory of s. The
// memory is released at the latest when s is collected.
func (s *Storage) setForeign(m *memory) {
	s.mem.Store(m)
	runtime.AddCleanup(s, func(h holder) { h.releaseMemory() }, m.lease)
}

// share moves the storage's bytes into shared memory, unless they are there, on a device or in a
// shared file. They stay there until the storage is closed. The error is ErrForeign if the memory
// belongs to another program; it wraps shm.ErrNoSpace if the domain is full.
func (s *Storage) share() error {
	if _, ok := s.mem.Load().block(); ok {
		s.markShared()
		return nil // locking would take a fifth of the time of encoding a tensor
	}
	s.sharing.Lock()
	defer s.sharing.Unlock()
	old := s.mem.Load()
	if _, ok := old.block(); ok {
		return nil
	}
	if _, ok := old.lease.(*onDevice); ok {
		return nil // shared by all processes that use the device
	}
	if f, ok := old.mappedFile(); ok {
		if err := f.truncatedError(); f.shared || err != nil {
			return err
		}
	} else if old.lease != nil {
		return ErrForeign
	}
	d, h, b, err := allocateBlock(len(old.bytes))
	if err != nil {
		return fmt.Errorf("share %d bytes: %w", len(old.bytes), err)
	}
	copy(b, old.bytes)
	d.CountCopied(len(b))
	s.initLease()
	s.setBlock(d, h, b)
	if old.lease == nil {
		s.keepFormer(old)
		earlies.countShared(d, len(b))
	}
	return nil
}

// keepFormer keeps a weak reference to the heap memory that s had before it was shared, so that
// the cache gets this memory when the storage is closed. Until then slices of [Data] may refer to
// it. The reference is weak so that the memory of a storage that stays open is left to the
// garbage collector.
func (s *Storage) keepFormer(old *memory) {
	if old.class <= 0 {
		return
	}
	r := new(Storage)
	r.mem.Store(old)
	if _, size := classOf(len(old.bytes)); size >= countedFrom {
		s.counted.Stop() // the memory is now collected with r
		r.counted = runtime.AddCleanup(r, memories.addUncollected, -size)
	}
	former := weak.Make(r)
	s.former.Store(&former)
}

// returnFormer gives the former heap memory to the cache, if it has not been collected.
func (s *Storage) returnFormer() {
	if s.former.Load() == nil {
		return
	}
	if r := s.former.Swap(nil).Value(); r != nil {
		memories.putStorage(r)
	}
}

// addFirstView counts the first view of a storage without views. Until then no other goroutine
// changes uses: none has a tensor of this generation, and a table that still contains the lease
// finds the storage closed.
func (s *Storage) addFirstView() { word.SetLocal(&s.uses, s.uses.Load()+1) }

// generationBits is the position of the generation number.
const generationBits = 32

// generation returns the current generation, which ends with the last reference.
func (s *Storage) generation() uint32 { return uint32(s.uses.Load() >> generationBits) }

// retain adds a reference and returns true, or returns false if the given generation has ended.
func (s *Storage) retain(number uint32) bool {
	for {
		n := s.uses.Load()
		if uint32(n>>generationBits) != number {
			return false
		}
		if s.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// retainOpen adds a reference to the current generation and returns true, or returns false if the
// storage is closed. It also accepts a storage that has never had a reference.
func (s *Storage) retainOpen() bool {
	for {
		n := s.uses.Load()
		if uint32(n) == 0 && n != 0 {
			return false
		}
		if s.uses.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release drops one reference of the current generation, which the caller must hold. The last one
// ends the generation and releases the memory.
func (s *Storage) release() error { return s.releaseView(s.generation(), nil) }

// releaseView drops one reference of the given generation. It is a no-op if that generation has
// ended, because the reference may have been transferred. shell, if not nil, must be a closed
// tensor that no other code refers to; it is kept for the storage's next generation.
func (s *Storage) releaseView(number uint32, shell *Tensor) error {
	for {
		n := s.uses.Load()
		if uint32(n>>generationBits) != number || uint32(n) == 0 {
			return nil
		}
		next := n - 1
		if uint32(next) == 0 {
			next += 1 << generationBits
		}
		if s.uses.CompareAndSwap(n, next) {
			if uint32(next) != 0 {
				return nil
			}
			break
		}
	}
	var f *func()
	if s.onClose.Load() != nil { // Swap locks the cache line even if the value is nil
		f = s.onClose.Swap(nil)
	}
	var err error
	m := s.mem.Load()
	if m.lease != nil {
		err = m.lease.releaseMemory()
	}
	if shell != nil {
		s.shell = shell
	}
	switch {
	case m.class == small:
		smalls[len(m.bytes)].Put(s)
	case m.class != 0:
		memories.putStorage(s)
	case m.lease == holder(s.own) && s.own != nil:
		s.returnFormer()
		spares.Put(s)
	}
	if f != nil {
		(*f)()
	}
	return err
}

// releaseMemory unlocks pinned pages and releases the block. It is idempotent.
func (l *lease) releaseMemory() error {
	h := l.block
	if h == 0 {
		return nil
	}
	l.detachBlock()
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

// detachBlock removes the block from the lease and from the table of its domain. The caller must
// then release the reference to the block or transfer it to a message.
func (l *lease) detachBlock() {
	known.tableOf(l.domain).removeLease(l)
	l.block = 0
	if l.received != 0 {
		l.domain.Returned(l.received)
		l.received = 0
	}
}

// check returns an error that wraps ErrDomain unless the block is in the current default domain
// of this process.
func (l *lease) check() error {
	if d, err := arena.Default(); err != nil || d != l.domain {
		return errors.Join(fmt.Errorf("send tensor: %w", ErrDomain), err)
	}
	return nil
}

// adoptBlock returns the storage of a block, with one more reference, which the caller must
// release. It takes over the caller's reference to the block, and releases it if the block
// already has a storage or if there is an error.
func adoptBlock(d *arena.Domain, h arena.Handle) (*Storage, error) {
	table := known.tableOf(d)
	if s := table.open(h); s != nil {
		return s, d.Release(h)
	}
	b, err := d.Bytes(h)
	if err != nil {
		return nil, errors.Join(err, d.Release(h))
	}
	fresh := newStorage()
	fresh.setBlock(d, h, b)
	fresh.addFirstView()
	fresh.own.received = len(b)
	d.Received(len(b))
	if s := table.openOrPut(fresh.own); s != nil {
		return s, fresh.release()
	}
	return fresh, nil
}
