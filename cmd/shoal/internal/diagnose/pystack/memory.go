package pystack

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose/procfs"
)

var (
	errLayout = errors.New("unknown layout of the interpreter")

	// ErrNoPython means that the process has no interpreter of a supported version.
	ErrNoPython = errors.New("no CPython interpreter found")
)

const (
	maxString = 4096
	maxBytes  = 1 << 20
)

// memory reads the memory of a process. r is its open mem file, and o the layout of its
// interpreter. The zero offsets suffice for the methods read, word and number.
type memory struct {
	r io.ReaderAt
	o offsets
}

func (m memory) read(addr uint64, n int) ([]byte, error) {
	if addr == 0 || addr >= 1<<56 {
		return nil, fmt.Errorf("%w: address %#x", errLayout, addr)
	}
	b := make([]byte, n)
	if _, err := m.r.ReadAt(b, int64(addr)); err != nil {
		return nil, err
	}
	return b, nil
}

func (m memory) word(addr uint64) (uint64, error) {
	b, err := m.read(addr, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

func (m memory) number(addr uint64) (int, error) {
	b, err := m.read(addr, 4)
	if err != nil {
		return 0, err
	}
	return int(int32(binary.LittleEndian.Uint32(b))), nil
}

// text reads a str object of at most 4096 characters; a longer one is an error that wraps
// errLayout. Names that are not ASCII are read if they are stored as Latin-1; wider ones are
// replaced by "?".
func (m memory) text(addr uint64) (string, error) {
	head, err := m.read(addr, 40)
	if err != nil {
		return "", err
	}
	length := binary.LittleEndian.Uint64(head[16:])
	state := binary.LittleEndian.Uint32(head[32:])
	if length > maxString {
		return "", fmt.Errorf("%w: a name of %d bytes", errLayout, length)
	}
	kind, ascii := stringKind(state)
	data := addr + m.o.stringCompact
	if ascii {
		data = addr + m.o.stringASCII
	}
	if kind > 1 {
		return "?", nil
	}
	b, err := m.read(data, int(length))
	if err != nil {
		return "", err
	}
	if ascii {
		return string(b), nil
	}
	runes := make([]rune, len(b))
	for i, c := range b {
		runes[i] = rune(c)
	}
	return string(runes), nil
}

// stringKind returns the width of a string's characters in bytes, and whether they are ASCII.
// state is the bit field in the string's header.
//
// https://github.com/python/cpython/blob/v3.11.7/Include/cpython/unicodeobject.h#L106-L168
func stringKind(state uint32) (kind uint32, ascii bool) { return state >> 2 & 7, state>>6&1 == 1 }

func (m memory) bytes(addr uint64) ([]byte, error) {
	n, err := m.word(addr + 16)
	if err != nil {
		return nil, err
	}
	if n > maxBytes {
		return nil, fmt.Errorf("%w: a table of %d bytes", errLayout, n)
	}
	return m.read(addr+m.o.bytesValue, int(n))
}

// symbols caches the addresses of symbols by file and inode, since a job's processes share a file.
var symbols sync.Map

type symbol struct {
	value, base uint64
	version     uint64 // value of Py_Version, or 0
	err         error
}

// findRuntime returns the address of _PyRuntime in the process, and the minor version of Python,
// or 0 if the file does not tell. The error is [ErrNoPython] if no mapped file has that symbol.
func findRuntime(s procfs.System, p *procfs.Process) (addr uint64, minor int, err error) {
	for _, m := range p.Maps.Python {
		if m.Offset != 0 {
			continue
		}
		key := fmt.Sprint(m.Path, m.Inode)
		v, ok := symbols.Load(key)
		if !ok {
			v = readSymbol(filepath.Join(s.Proc, strconv.Itoa(p.PID), "root", m.Path))
			symbols.Store(key, v)
		}
		if sym := v.(symbol); sym.err == nil {
			return m.Start + sym.value - sym.base, int(sym.version >> 16 & 0xff), nil
		}
	}
	return 0, 0, ErrNoPython
}

// readSymbol finds _PyRuntime in the dynamic symbols of a file, in its static ones, or in the
// section that 3.13 and later has for it. If it finds none, the result has an err.
func readSymbol(path string) symbol {
	f, err := elf.Open(path)
	if err != nil {
		return symbol{err: err}
	}
	defer f.Close()
	s := symbol{err: ErrNoPython, base: 1<<64 - 1}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			s.base = min(s.base, p.Vaddr&^0xfff)
		}
	}
	dynamic, _ := f.DynamicSymbols()
	for _, y := range dynamic {
		switch y.Name {
		case "_PyRuntime":
			s.value, s.err = y.Value, nil
		case "Py_Version":
			s.version = readStatic(f, y.Value)
		}
	}
	if s.err == nil {
		return s
	}
	static, _ := f.Symbols()
	for _, y := range static {
		if y.Name == "_PyRuntime" {
			s.value, s.err = y.Value, nil
		}
	}
	if section := f.Section(".PyRuntime"); section != nil && s.err != nil {
		s.value, s.err = section.Addr, nil
	}
	return s
}

// readStatic returns the word at an address of the file's image, or 0.
func readStatic(f *elf.File, addr uint64) uint64 {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr+8 <= p.Vaddr+p.Filesz {
			b := make([]byte, 8)
			if _, err := p.ReadAt(b, int64(addr-p.Vaddr)); err == nil {
				return binary.LittleEndian.Uint64(b)
			}
		}
	}
	return 0
}

// open opens the memory of the process for reading. The caller must close the file.
func open(s procfs.System, pid int) (*os.File, error) {
	return os.Open(filepath.Join(s.Proc, strconv.Itoa(pid), "mem"))
}

// A Semaphore is the state of a POSIX semaphore in glibc.
type Semaphore struct {
	Value   int
	Waiters int
}

// ReadSemaphore reads the semaphore at an address of the process.
//
// https://sourceware.org/git/?p=glibc.git;a=blob;f=nptl/sem_waitcommon.c;hb=glibc-2.36
func ReadSemaphore(s procfs.System, pid int, addr uint64) (Semaphore, error) {
	f, err := open(s, pid)
	if err != nil {
		return Semaphore{}, err
	}
	defer f.Close()
	b, err := memory{r: f}.read(addr, 8)
	if err != nil {
		return Semaphore{}, err
	}
	return Semaphore{int(binary.LittleEndian.Uint32(b)), int(binary.LittleEndian.Uint32(b[4:]))}, nil
}

// A SemLock is the interpreter's object for a lock or a semaphore of multiprocessing.
type SemLock struct {
	Object uint64 // address of the object
	Holder uint64 // thread that acquired it last, as pthread_self returns it
	Count  int    // acquisitions minus releases by this process
	Max    int    // 1 for locks
	Kind   int    // 0 for an RLock
}

// maxScan limits the resident memory that [FindSemLocks] reads of one process.
const maxScan = 512 << 20

// FindSemLocks searches the objects of a process for the SemLocks of its shared semaphores. The
// keys of the result are the addresses at which the semaphores are mapped. The search ends when
// it has found the one at addr, so others may be missing; if addr is 0, it searches for all. It
// skips pages that are not resident, so that reading does not make the kernel map them. The
// caller must have read Maps. It returns an error if the memory may not be read.
//
// hint is the address of the object in another process, or 0. A forked process has it at the
// same one.
//
// https://github.com/python/cpython/blob/v3.11.7/Modules/_multiprocessing/semaphore.c#L25-L33
func FindSemLocks(s procfs.System, p *procfs.Process, addr, hint uint64) (map[uint64]SemLock, error) {
	f, err := open(s, p.PID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if hint != 0 {
		object, err := memory{r: f}.read(hint, semLockSize)
		if err == nil && binary.LittleEndian.Uint64(object[16:]) == addr {
			if lock, ok := parseSemLock(object, hint); ok {
				return map[uint64]SemLock{addr: lock}, nil
			}
		}
	}
	pages, err := os.Open(filepath.Join(s.Proc, strconv.Itoa(p.PID), "pagemap"))
	if err != nil {
		return nil, err
	}
	defer pages.Close()
	w := scan{locks: make(map[uint64]SemLock), low: 1<<64 - 1}
	for _, m := range p.Maps.Shared {
		if m.Semaphore() {
			w.addrs = append(w.addrs, m.Start)
			w.low, w.high = min(w.low, m.Start), max(w.high, m.Start)
		}
	}
	buffer := make([]byte, scanPages*pageSize)
	for _, m := range arenasFirst(p.Maps.Private) {
		for at := m.Start; at < m.End && w.total < maxScan && len(w.locks) < len(w.addrs); {
			if _, found := w.locks[addr]; found {
				return w.locks, nil
			}
			n := min(scanPages, (m.End-at)/pageSize)
			if n == 0 {
				break
			}
			first, last := residentRange(pages, at, n)
			if last > first {
				chunk := buffer[:(last-first)*pageSize]
				got, _ := f.ReadAt(chunk, int64(at+first*pageSize))
				w.search(chunk[:got], at+first*pageSize)
			}
			at += n * pageSize
		}
	}
	return w.locks, nil
}

// arenasFirst returns a copy of the mappings in the best order of a search: first those that are
// probably arenas of the interpreter's allocator, because their sizes are multiples of an arena's,
// the small ones before the large ones; then the others; then the heap of malloc.
func arenasFirst(maps []procfs.Mapping) []procfs.Mapping {
	class := func(m procfs.Mapping) int {
		switch {
		case m.Path != "":
			return 2
		case (m.End-m.Start)%arenaSize == 0:
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(maps), func(a, b procfs.Mapping) int {
		return cmp.Or(cmp.Compare(class(a), class(b)), cmp.Compare(a.End-a.Start, b.End-b.Start))
	})
}

const (
	arenaSize = 256 << 10 // before 3.10; later ones are larger
	pageSize  = 4096
	scanPages = 256
)

// residentRange returns the range of pages, of n from the address at, that contains all resident
// ones. first and last count pages from at, and last is not of the range; both are 0 if the file
// pages, a pagemap, cannot be read. If no page is resident, last is 0.
func residentRange(pages io.ReaderAt, at, n uint64) (first, last uint64) {
	entries := make([]byte, 8*n)
	if _, err := pages.ReadAt(entries, int64(at/pageSize*8)); err != nil {
		return 0, 0
	}
	first = n
	for i := range n {
		if entries[8*i+7]&0x80 != 0 { // present; see Documentation/admin-guide/mm/pagemap.rst
			first, last = min(first, i), i+1
		}
	}
	return first, last
}

// A scan collects SemLocks. An object does not cross a page, because the allocator's pools do not.
type scan struct {
	addrs     []uint64
	low, high uint64
	total     int
	locks     map[uint64]SemLock
}

// search adds the SemLocks in data that use one of the semaphores at w.addrs to w.locks. data is
// at the address base of the process.
func (w *scan) search(data []byte, base uint64) {
	w.total += len(data)
	for at := 16; at+semLockSize-16 <= len(data); at += 8 {
		v := binary.LittleEndian.Uint64(data[at:])
		if v < w.low || v > w.high || v%pageSize != 0 || !slices.Contains(w.addrs, v) {
			continue
		}
		if lock, ok := parseSemLock(data[at-16:], base+uint64(at-16)); ok {
			w.locks[v] = lock
		}
	}
}

// semLockSize is the size of the fields of an object that are read.
const semLockSize = 56

// parseSemLock parses an object at an address, and returns false if a field is implausible.
// object must have semLockSize bytes.
func parseSemLock(object []byte, addr uint64) (SemLock, bool) {
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(object[8*n:]) }
	count, limit, kind := int32(word(4)), int32(word(4)>>32), int32(word(5))
	references, class := uint32(word(0)), word(1)
	if references == 0 || class < 4096 || limit < 1 || kind < 0 || kind > 1 || count < -1<<24 {
		return SemLock{}, false
	}
	return SemLock{Object: addr, Holder: word(3), Count: int(count), Max: int(limit), Kind: int(kind)}, true
}
