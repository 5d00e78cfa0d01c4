package arena

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/arena/keeper"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/arena/park"
	"github.com/shoal-mp/shoal/internal/arena/socket"
	"github.com/shoal-mp/shoal/internal/arena/word"
	"github.com/shoal-mp/shoal/internal/sys"
)

// memfds is the store of domains that several processes share. It consists of two sealed memory
// files, locks on the control file as proofs of life, and datagram sockets as doorbells.
type memfds struct {
	ctlFile, dataFile *os.File
	life              *os.File // separate description of ctlFile, holds this participant's lock
	ctl, mem          []byte
	lives             *lifetimes
	ringer            *sys.Ringer
	addrs             [word.MaxParticipants]atomic.Pointer[bellAddr]
	room              roomCache
}

type bellAddr struct {
	name uint64
	addr sys.BellAddr
}

// New makes a domain and joins it as its first participant. The caller must close it. The error
// wraps [ErrNoSpace] if the machine has too little free memory, and [ErrAddressSpace] if the
// process may not map the segments.
func New(opts Options) (_ *Domain, err error) {
	defer func() { err = sys.Advised(err) }()
	s, budget, err := newMemfds(opts)
	if err != nil {
		return nil, fmt.Errorf("new domain: %w", err)
	}
	d, err := createDomain(s, budget)
	if err != nil {
		s.unmapSegments()
		return nil, errors.Join(fmt.Errorf("new domain: %w", err), s.ctlFile.Close(), s.dataFile.Close())
	}
	s.unmapAfter(d)
	k, err := keeper.New(d)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("new domain: %w", err), d.Close())
	}
	d.services = append(d.services, k)
	return d, nil
}

// leastDefault is the smallest default budget of a domain. With less, a program would start and run
// out of space a little later.
const leastDefault = 256 << 20

// newMemfds makes both files and maps them. It also returns the budget in bytes. If the system
// refuses the address space, the reserve is halved, down to the requested budget or to
// leastDefault.
func newMemfds(opts Options) (*memfds, int64, error) {
	m, err := sys.MemoryLimit()
	if err != nil {
		return nil, 0, err
	}
	budget, err := budgetFor(opts.Budget, m)
	if err != nil {
		return nil, 0, err
	}
	reserve := opts.Reserve
	if reserve == 0 {
		reserve = reserveFor(m.Total)
	}
	least := budget
	if opts.Budget == 0 {
		least = min(budget, leastDefault)
	}
	s, err := mapMemfds(max(reserve, least), budget, least)
	if err != nil {
		return nil, 0, err
	}
	got := int64(len(s.mem))
	if got < budget && (opts.Reserve == 0 || got < opts.Reserve) {
		slog.Warn("shoal: address space is smaller than free memory, which reduces the budget; check ulimit -v, "+
			"ulimit -f and vm.overcommit_memory, or set Budget with shoal.SetMemory",
			"budget", got, "free", budget)
	}
	return s, min(budget, got), nil
}

// budgetFor returns the requested budget in bytes, or if asked is 0, the memory that may be
// committed according to m. It returns [ErrNoSpace] if too little is free for any program to
// start, and another error if asked is less than 64 KiB.
func budgetFor(asked int64, m sys.Memory) (int64, error) {
	switch free := m.Headroom(); {
	case asked >= layout.SlabSize:
		return asked, nil
	case asked != 0:
		return 0, fmt.Errorf("budget is %d bytes, want at least %d", asked, layout.SlabSize)
	case free >= layout.SlabSize:
		return free, nil
	}
	return 0, fmt.Errorf("%w: %s; the rest is reserved: end other processes that use memory, or set Budget with "+
		"shoal.SetMemory",
		ErrNoSpace, describeFree(m))
}

// describeFree describes the free memory of the machine and the control group.
func describeFree(m sys.Memory) string {
	s := fmt.Sprintf("the machine has %d of %d bytes free", m.Available, m.Total)
	if m.CgroupLimit >= 0 {
		s += fmt.Sprintf(", and its control group uses %d of %d bytes", m.CgroupUsage-m.CgroupReclaimable,
			m.CgroupLimit)
	}
	return s
}

// reserveFor returns the default address space of a domain on a machine with total bytes of memory.
// If the process has an address space limit, half of the remaining space is left to the rest of the
// process.
func reserveFor(total int64) int64 {
	n := min(8*total, 1<<40, int64(1)<<(sys.AddressBits()-2))
	if l := sys.FileSizeLimit(); l >= 0 {
		n = min(n, l)
	}
	if l := sys.AddressSpaceLeft(); l >= 0 {
		n = min(n, (l-layout.ControlSize)/2)
	}
	return n
}

// mapMemfds maps files with as much address space as available between least and reserve bytes,
// and with the whole budget if that fits. If the address space is short, or too many closed
// domains are still mapped, it unmaps closed domains first. The error wraps [ErrAddressSpace] if
// least bytes do not fit.
func mapMemfds(reserve, budget, least int64) (*memfds, error) {
	if lingering.Load() >= maxLingering {
		unmapClosed()
	}
	ctl, err := newFile(controlName, layout.ControlSize)
	if err != nil {
		return nil, err
	}
	name, err := dataName(ctl)
	if err != nil {
		return nil, errors.Join(err, ctl.Close())
	}
	unmapped := false
	for {
		reserve = int64(layout.RoundUp(uint64(reserve), layout.HugeAlign))
		data, err := newFile(name, reserve)
		if err != nil {
			return nil, errors.Join(err, ctl.Close())
		}
		s, err := openMemfds(ctl, data)
		if err == nil {
			return s, nil
		}
		data.Close()
		if !errors.Is(err, ErrAddressSpace) {
			return nil, errors.Join(err, ctl.Close())
		}
		if !unmapped && unmapClosed() {
			unmapped = true
			continue
		}
		if reserve <= int64(layout.RoundUp(uint64(least), layout.HugeAlign)) {
			return nil, errors.Join(err, ctl.Close())
		}
		if reserve > int64(layout.RoundUp(uint64(budget), layout.HugeAlign)) {
			reserve = max(reserve/2, budget)
		} else {
			reserve = max(reserve/2, least)
		}
	}
}

// The names of the two files appear in /proc. The name of the data file has the number of its
// control file, so that [Check] finds both in a process with several domains.
const (
	fileNames   = "shoal-" // all begin so
	controlName = "shoal-control"
)

// dataName returns the name of the data file that belongs to a control file.
func dataName(ctl *os.File) (string, error) {
	n, err := sys.Inode(ctl)
	return fmt.Sprintf("shoal-data-%d", n), err
}

func newFile(name string, size int64) (*os.File, error) {
	f, err := sys.Memfd(name)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(sys.Resize(f, size), sys.Seal(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openMemfds maps the two files. It owns them if it succeeds. The error wraps [ErrAddressSpace]
// if the process may not map them.
func openMemfds(ctl, data *os.File) (_ *memfds, err error) {
	info, err := data.Stat()
	if err != nil {
		return nil, err
	}
	s := &memfds{ctlFile: ctl, dataFile: data}
	defer func() {
		if err != nil {
			s.unmapSegments()
		}
	}()
	if s.ctl, err = sys.Map(ctl, layout.ControlSize); err != nil {
		return nil, fmt.Errorf("%w: control segment has %d bytes, limit of this process is %d: %w",
			ErrAddressSpace, layout.ControlSize, sys.AddressSpaceLimit(), err)
	}
	if s.mem, err = sys.Map(data, int(info.Size())); err != nil {
		return nil, fmt.Errorf("%w: data segment has %d bytes, limit of this process is %d: %w: raise ulimit -v, "+
			"or set a smaller Budget with shoal.SetMemory",
			ErrAddressSpace, info.Size(), sys.AddressSpaceLimit(), err)
	}
	if s.life, err = sys.Reopen(ctl); err != nil {
		return nil, err
	}
	if s.ringer, err = sys.NewRinger(); err != nil {
		return nil, err
	}
	if s.lives, err = newLifetimes(data, int(info.Size())); err != nil {
		return nil, err
	}
	return s, nil
}

// Attach joins the domain in the two files that [Domain.Files] returned in another process. The
// domain owns the files if Attach succeeds; otherwise the caller must close them. It returns
// [ErrVersion] if the domain was made by a program that does not fit, [ErrAddressSpace], and
// [ErrTooManyParticipants].
func Attach(control, data *os.File) (_ *Domain, err error) {
	defer func() { err = sys.Advised(err) }()
	if info, err := control.Stat(); err != nil || info.Size() != layout.ControlSize {
		return nil, fmt.Errorf("attach domain: %w", errors.Join(controlSizeError(control), err))
	}
	s, err := openMemfds(control, data)
	if err != nil {
		return nil, fmt.Errorf("attach domain: %w", err)
	}
	d, err := attachDomain(s)
	if err != nil {
		s.unmapSegments()
		return nil, fmt.Errorf("attach domain: %w", err)
	}
	s.unmapAfter(d)
	return d, nil
}

// controlSizeError returns an error that wraps [ErrVersion], for a file that does not have the
// size of a control segment. A control segment of another version has the same words at its
// beginning, so the error can name both versions.
func controlSizeError(f *os.File) error {
	var b [unsafe.Offsetof(layout.Header{}.Version) + 8]byte
	field := func(at uintptr) uint64 { return binary.NativeEndian.Uint64(b[at:]) }
	if _, err := f.ReadAt(b[:], 0); err != nil || field(unsafe.Offsetof(layout.Header{}.Magic)) != layout.Magic {
		return fmt.Errorf("%w: not a control segment", ErrVersion)
	}
	return programLayout().Mismatch(socket.Layout{Version: field(unsafe.Offsetof(layout.Header{}.Version)),
		Hash: field(unsafe.Offsetof(layout.Header{}.Layout))})
}

// Files returns the control file and the data file, in the order in which a child process must
// inherit them. The domain keeps their ownership, so the caller must not close them. It returns nil
// if the domain has no files.
func (d *Domain) Files() []*os.File {
	s, ok := d.store.(*memfds)
	if !ok {
		return nil
	}
	return []*os.File{s.ctlFile, s.dataFile}
}

func (s *memfds) control() []byte { return s.ctl }
func (s *memfds) data() []byte    { return s.mem }

func (s *memfds) commitControl(off, n uint64) error {
	return sys.Commit(s.ctlFile, int64(off), int64(n))
}
func (s *memfds) commitData(off, n uint64) error {
	if word.Crashing && word.CommitFails() {
		return errors.Join(sys.Commit(s.dataFile, int64(off), int64(n/2)), errors.ErrUnsupported)
	}
	return sys.Commit(s.dataFile, int64(off), int64(n))
}
func (s *memfds) punchData(off, n uint64) error { return sys.Punch(s.dataFile, int64(off), int64(n)) }

func (s *memfds) headroom() int64 { return s.room.get() }

// roomCache caches the headroom of the machine for a moment: a query costs as much as committing a
// megabyte.
type roomCache struct {
	mu    sync.Mutex
	asked time.Time
	bytes int64
}

const roomAge = 5 * time.Millisecond // at most 20 MiB can be committed meanwhile

func (r *roomCache) get() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.asked) < roomAge {
		return r.bytes
	}
	// if the query fails, only the domain's own budget limits it
	r.asked, r.bytes = time.Now(), 1<<62
	if m, err := sys.MemoryLimit(); err == nil {
		r.bytes = m.Headroom()
	}
	return r.bytes
}

// lockSeat takes the proof of life of a seat: a lock on one byte of the control file. The lock
// belongs to an open file description that only this process has (docs/memory.md, "Notice"), so the
// kernel drops it when the last descriptor is closed, however the process ends. lockSeat returns
// false if another participant holds the lock.
func (s *memfds) lockSeat(seat int) (bool, error) { return sys.LockByte(s.life, int64(seat)) }
func (s *memfds) unlockSeat(seat int) error       { return sys.UnlockByte(s.life, int64(seat)) }
func (s *memfds) isAlive(seat int) (bool, error)  { return sys.ByteLocked(s.life, int64(seat)) }

// openBell opens a doorbell with a random name. Any user of the machine may bind names in the
// abstract namespace, and can see in /proc/net/unix which names are bound. So a predictable name
// could be taken in advance.
func (s *memfds) openBell() (bell, uint64, error) { return bindBell(randomBellName) }

func bindBell(draw func() (uint64, error)) (bell, uint64, error) {
	for tries := 1; ; tries++ {
		name, err := draw()
		if err != nil {
			return nil, 0, err
		}
		b, err := sys.ListenBell(bellName(name))
		if err == nil {
			return b, name, nil
		}
		if tries == bellTries || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, 0, err
		}
	}
}

func randomBellName() (uint64, error) {
	var r [8]byte
	err := sys.Random(r[:])
	return max(binary.LittleEndian.Uint64(r[:]), 1), err
}

// bellTries is the number of names that a participant tries if they are taken.
const bellTries = 8

func bellName(name uint64) string { return fmt.Sprintf("shoal/bell/%016x", name) }

// RingBell rings the doorbell of the participant in a seat. It reports whether the queue of the
// doorbell was full, so that the topic did not arrive. It caches the doorbell's address together
// with the name: the next participant in the seat has another name, and a datagram to the old
// one has no receiver.
func (s *memfds) RingBell(seat int, name uint64, t park.Topic) (full bool) {
	if name == 0 {
		return false
	}
	a := s.addrs[seat].Load()
	if a == nil || a.name != name {
		a = &bellAddr{name: name, addr: sys.NewBellAddr(bellName(name))}
		s.addrs[seat].Store(a)
	}
	full, _ = s.ringer.Ring(&a.addr, t)
	return full
}

// awaitDeath waits until the participant has ended, and then returns nil, or until ctx ends. It
// must open the pidfd before it asks for the proof of life: while the participant lives, the
// process number is its own.
func (s *memfds) awaitDeath(ctx context.Context, pid, seat int) error {
	p, err := sys.OpenPidfd(pid)
	if err != nil {
		return nil // gone; the reaper asks for the proof of life
	}
	defer p.Close()
	if alive, err := s.isAlive(seat); err != nil || !alive {
		return err
	}
	return p.Wait(ctx)
}

// close closes the files and sockets, and keeps the mappings; see Note [Unmapping].
func (s *memfds) close() error {
	if s.lives == nil {
		lingering.Add(1)
	}
	return errors.Join(s.ringer.Close(), s.life.Close(), s.ctlFile.Close(), s.dataFile.Close())
}

func (s *memfds) unmapSegments() {
	if s.ctl != nil {
		sys.Unmap(s.ctl)
	}
	if s.mem != nil {
		sys.Unmap(s.mem)
	}
	if s.life != nil {
		s.life.Close()
	}
	if s.ringer != nil {
		s.ringer.Close()
	}
}
