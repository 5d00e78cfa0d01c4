package parquet

import (
	"container/list"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"sort"
)

// The sizes of a block. A block is decoded at once, and has at least one row.
const (
	minTarget    = 16 << 10
	maxTarget    = 256 << 10
	maxBlockRows = 1 << 16
)

// A block is consecutive rows of a row group, as records.
type block struct {
	first int      // the number of the first row in the group
	ends  []uint32 // the ends of the rows in data
	data  []byte
}

// record returns the record of a row of the group.
func (b *block) record(row int) []byte {
	i := row - b.first
	start := uint32(0)
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.data[start:b.ends[i]:b.ends[i]]
}

func (b *block) size() int { return len(b.data) + 4*len(b.ends) + blockOverhead }

// blockOverhead is about the memory of a block without rows.
const blockOverhead = 128

// A place records where a block is that was decoded before: in memory, in the spill file, or in
// neither, and then it must be decoded again.
type place struct {
	first, rows int
	block       *block        // nil unless in memory
	used        *list.Element // its element of cache.used
	spilled     int64         // its offset in the spill file, below 0 if it is not there
}

// A group is a row group of a file. Its places cover its first rows.
type group struct {
	file   *source
	number int
	rows   int
	places []*place
	known  int // the rows that the places cover
}

// place returns the place of a row, or nil if the row was never decoded.
func (g *group) place(row int) *place {
	if row >= g.known {
		return nil
	}
	k := sort.Search(len(g.places), func(k int) bool { return g.places[k].first > row })
	return g.places[k-1]
}

// put records a block that was decoded as the k-th of the group, and returns its place.
func (g *group) put(k int, b *block) *place {
	if k == len(g.places) {
		g.places = append(g.places, &place{first: b.first, rows: len(b.ends), spilled: -1})
		g.known += len(b.ends)
	}
	return g.places[k]
}

// A cache keeps the blocks that were used last in memory. It may write others to a spill file.
type cache struct {
	room  int       // the bytes that are free; below 0 only while one block is larger than the cache
	used  list.List // of *place; the front was used last
	spill spill
}

// touch marks a block as used.
func (c *cache) touch(s *place) { c.used.MoveToFront(s.used) }

// put adds a block, and evicts others. If keep is set, evicted blocks go to the spill file.
func (c *cache) put(s *place, b *block, keep bool) {
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

// A spill is a temporary file of blocks. The file has no name, so it vanishes with the process.
type spill struct {
	room int64 // the bytes that may still be written
	file *os.File
	end  int64
	buf  []byte
}

// full reports whether the spill takes no more blocks.
func (s *spill) full() bool { return s.room <= 0 }

// write appends a block and returns its offset, or -1 if the block does not fit. An error, such as
// a full disk, ends the use of the file for more blocks; it is not an error of the data set.
func (s *spill) write(b *block) int64 {
	size := int64(4*len(b.ends) + len(b.data))
	if size > s.room {
		s.room = 0
	}
	if s.full() {
		return -1
	}
	if s.file == nil {
		f, err := os.CreateTemp("", "shoal-parquet-*")
		if err != nil {
			s.room = 0
			return -1
		}
		s.file = f
		os.Remove(f.Name())
	}
	s.buf = s.buf[:0]
	for _, end := range b.ends {
		s.buf = binary.LittleEndian.AppendUint32(s.buf, end)
	}
	s.buf = append(s.buf, b.data...)
	if _, err := s.file.WriteAt(s.buf, s.end); err != nil {
		s.room = 0
		return -1
	}
	at := s.end
	s.end += size
	s.room -= size
	return at
}

// A spilledRow is the place of a record in a spill file.
type spilledRow struct {
	file  *os.File
	block int64 // the offset of the block
	rows  int   // of the block
	row   int   // in the block
}

// read reads the record.
func (r spilledRow) read() ([]byte, error) {
	var b [8]byte
	bounds, from := b[4:], r.block
	if r.row > 0 {
		bounds, from = b[:], r.block+4*int64(r.row-1)
	}
	if _, err := r.file.ReadAt(bounds, from); err != nil {
		return nil, fmt.Errorf("read the spill file: %w", err)
	}
	start, end := binary.LittleEndian.Uint32(b[:]), binary.LittleEndian.Uint32(b[4:])
	if end < start || end > math.MaxInt32 {
		return nil, fmt.Errorf("%w: a spilled row from byte %d to %d", ErrFormat, start, end)
	}
	record := make([]byte, end-start)
	if _, err := r.file.ReadAt(record, r.block+4*int64(r.rows)+int64(start)); err != nil {
		return nil, fmt.Errorf("read the spill file: %w", err)
	}
	return record, nil
}

// close closes the file.
func (s *spill) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
