package parquet

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"sort"
	"sync"

	"github.com/shoal-mp/shoal/internal/sys"
)

// Limits of a block. A block is decoded at once and has at least one row.
const (
	minTarget    = 16 << 10
	maxTarget    = 256 << 10
	maxBlockRows = 1 << 16
)

// A block holds consecutive rows of a row group as records, and is not modified after it is
// decoded. See Note [Records].
type block struct {
	first int      // index of the first row in the group
	ends  []uint32 // end of each row in data
	data  []byte
}

// rowRecord returns the record of a row, which is an index in the group and must be in the
// block. The result is a slice of the block and must not be modified.
func (b *block) rowRecord(row int) []byte {
	i := row - b.first
	start := uint32(0)
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.data[start:b.ends[i]:b.ends[i]]
}

func (b *block) size() int { return cap(b.data) + 4*cap(b.ends) + blockOverhead }

// blockOverhead is the approximate memory of a block without rows.
const blockOverhead = 128

// A place records the location of a block that was decoded before: in memory, in the spill file,
// or in neither, so that it must be decoded again. It is guarded by the lock of the data set.
type place struct {
	first, rows int
	block       *block        // nil unless in memory
	used        *list.Element // its element of cache.used
	spilled     int64         // offset in the spill file; negative if it is not there
}

// A group is a row group of a file. Its places cover its first rows and are guarded by the lock
// of the data set.
type group struct {
	file   *source
	number int
	rows   int
	places []*place
	known  int // number of rows covered by places
}

// placeOf returns the place of a row, or nil if the row was never decoded. The caller must hold
// the lock of the data set.
func (g *group) placeOf(row int) *place {
	if row >= g.known {
		return nil
	}
	k := sort.Search(len(g.places), func(k int) bool { return g.places[k].first > row })
	return g.places[k-1]
}

// recordBlock records that b was decoded as the k-th block of the group, and returns its [place],
// to be passed to [cache.addBlock]. The caller must hold the lock of the data set.
func (g *group) recordBlock(k int, b *block) *place {
	if k == len(g.places) {
		g.places = append(g.places, &place{first: b.first, rows: len(b.ends), spilled: -1})
		g.known += len(b.ends)
	}
	return g.places[k]
}

// A cache is an LRU cache of blocks. It may write evicted blocks to a spill file. The caller of
// its methods must hold the lock of the data set.
type cache struct {
	room  int       // free bytes; negative only while one block exceeds the cache
	used  list.List // of *place, most recently used first
	spill spill
}

// markUsed marks a block, which must be in memory, as most recently used.
func (c *cache) markUsed(s *place) { c.used.MoveToFront(s.used) }

// addBlock adds b, the block of the place s, and evicts others until the cache is within its
// limit. If keep is set, evicted blocks are written to the spill file. The caller must hold the
// lock of the data set.
func (c *cache) addBlock(s *place, b *block, keep bool) {
	s.block, s.used = b, c.used.PushFront(s)
	c.room -= b.size()
	for c.room < 0 && c.used.Len() > 1 {
		old := c.used.Remove(c.used.Back()).(*place)
		c.room += old.block.size()
		if keep {
			old.spilled = c.spill.write(old.block)
		}
		old.block, old.used = nil, nil
	}
}

// A spill is a temporary file of blocks. The file is unlinked after it is created, so it is removed
// when the process ends.
type spill struct {
	room int64 // bytes that may still be written
	file *os.File
	end  int64
	buf  []byte

	mu   sync.RWMutex // held for reading while view is read
	view []byte       // mapping of the file and of room to grow; nil if there is none
}

// isFull reports whether the spill accepts no more blocks. The caller must hold the lock of the
// data set.
func (s *spill) isFull() bool { return s.room <= 0 }

// write appends a block and returns its offset, or -1 if the block does not fit. After an error,
// such as a full disk, the spill accepts no more blocks. This is not an error of the data set.
// The caller must hold the lock of the data set.
func (s *spill) write(b *block) int64 {
	size := int64(4*len(b.ends) + len(b.data))
	if size > s.room {
		s.room = 0
	}
	if s.isFull() {
		return -1
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "shoal-parquet-*")
		if err != nil {
			return s.fail(err)
		}
		s.file = f
		os.Remove(f.Name())
		s.mapFile()
	}
	s.buf = s.buf[:0]
	for _, end := range b.ends {
		s.buf = binary.LittleEndian.AppendUint32(s.buf, end)
	}
	s.buf = append(s.buf, b.data...)
	if _, err := s.file.WriteAt(s.buf, s.end); err != nil {
		return s.fail(err)
	}
	at := s.end
	s.end += size
	s.room -= size
	return at
}

// fail makes the spill accept no more blocks and returns -1. It logs a warning with err, because
// shuffled reads become slow.
func (s *spill) fail(err error) int64 {
	s.room = 0
	slog.Warn("parquet: cannot write the spill file, so each shuffled read may decode its row group again; make "+
		"room in the folder of temporary files, or raise the option cache", "folder", os.TempDir(), "error", err)
	return -1
}

// maxView is the maximum length of spill.view. It needs as many addresses from the beginning.
const maxView = 16 << 30

// mapFile sets s.view to a mapping of the file, because two system calls take longer than the
// rest of a short row. Some file systems cannot be mapped, and a process may have a limit of
// addresses; then s.view stays nil, and rows are read with pread.
func (s *spill) mapFile() {
	if sys.AddressSpaceLimit() >= 0 {
		return
	}
	view, err := sys.MapReadOnly(s.file, int(min(s.room, maxView, math.MaxInt)))
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = view
}

// A spilledRow is the location of a record in a spill file. Several goroutines may read records
// at once.
type spilledRow struct {
	spill *spill
	block int64 // offset of the block
	next  int64 // an offset behind the block
	rows  int   // number of rows in the block
	row   int   // index in the block
}

// use calls f with the record, which f must not retain or modify. It returns the error of f, an
// error that wraps [ErrFormat] if the offsets in the file are invalid, or an error of reading
// the file. If the file is mapped, it panics if the disk cannot be read; see [recoverPanic].
func (r spilledRow) use(f func(record []byte) error) error {
	r.spill.mu.RLock()
	defer r.spill.mu.RUnlock()
	view := r.spill.view
	if int64(len(view)) < r.next {
		record, err := r.read()
		if err != nil {
			return err
		}
		return f(record)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a read error of the disk is a fault
	n, from := r.bounds()
	start, end, err := decodeBounds(view[from : from+n])
	if err != nil {
		return err
	}
	at := r.block + 4*int64(r.rows)
	return f(view[at+start : at+end : at+end])
}

// read reads the record from the file and returns it in new memory. The caller must hold
// r.spill.mu for reading. The error wraps [ErrFormat] if the offsets in the file are invalid, or
// is an error of reading the file.
func (r spilledRow) read() ([]byte, error) {
	var buf [8]byte
	n, from := r.bounds()
	if _, err := r.spill.file.ReadAt(buf[:n], from); err != nil {
		return nil, fmt.Errorf("read the spill file: %w", err)
	}
	start, end, err := decodeBounds(buf[:n])
	if err != nil {
		return nil, err
	}
	record := make([]byte, end-start)
	if _, err := r.spill.file.ReadAt(record, r.block+4*int64(r.rows)+start); err != nil {
		return nil, fmt.Errorf("read the spill file: %w", err)
	}
	return record, nil
}

// bounds returns the size in bytes and the offset of the bounds of the record in the file. The
// bounds are the ends of the row before, if there is one, and of the row.
func (r spilledRow) bounds() (n, at int64) {
	if r.row == 0 {
		return 4, r.block
	}
	return 8, r.block + 4*int64(r.row-1)
}

// decodeBounds decodes the bounds of a record: the offsets in the data of its block where it
// starts and ends. b has 8 bytes, or 4 for the first row of a block. The error wraps [ErrFormat]
// if they are invalid.
func decodeBounds(b []byte) (start, end int64, err error) {
	if len(b) == 8 {
		start = int64(binary.LittleEndian.Uint32(b))
	}
	end = int64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	if end < start || end > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%w: spilled row from byte %d to %d", ErrFormat, start, end)
	}
	return start, end, nil
}

// close closes the file, if it was created. It waits for rows that are being read. No row may be
// read or written afterwards.
func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.view != nil {
		sys.Unmap(s.view)
		s.view = nil
	}
	return s.file.Close()
}
