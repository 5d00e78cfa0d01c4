package parquet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Errors of a file. Test for them with [errors.Is].
var (
	// ErrFormat is wrapped if a file is not a Parquet file, or is damaged.
	ErrFormat = errors.New("parquet: malformed")
	// ErrEmpty is wrapped if the files have no rows in total.
	ErrEmpty = errors.New("parquet: no rows")
	// ErrKind is wrapped if a column has an unsupported type, such as decimals and times of 96
	// bits, and if an integer does not fit int64.
	ErrKind = errors.New("parquet: type of column")
	// ErrSize is wrapped if a part of a file would need more memory than Options.MaxPage.
	ErrSize = errors.New("parquet: too large")
)

// The errors are registered so that errors.Is recognizes them in the parent of a worker process.
func init() {
	codec.RegisterError("parquet.ErrEmpty", ErrEmpty)
	codec.RegisterError("parquet.ErrFormat", ErrFormat)
	codec.RegisterError("parquet.ErrKind", ErrKind)
	codec.RegisterError("parquet.ErrSize", ErrSize)
}

// Options configure [Open].
type Options struct {
	Columns []row.Column // columns of each row to read; empty: all columns
	// maximum number of bytes of decoded rows in memory; 0 means 64 MiB
	Cache int
	// maximum number of bytes of decoded rows in an unlinked temporary file in [os.TempDir]. Rows
	// are written to it if they are read in random order and do not fit into Cache. 0 means 16 GiB,
	// and a negative number disables the file
	Spill int64
	// maximum number of bytes of a decompressed page, of a row, and of the footer; 0 means 1 GiB
	MaxPage int
}

// A set is the concatenation of the rows of files. It is made by [Open]. Several goroutines may
// use it.
type set struct {
	options              Options
	table.Files[*source] // provides Len

	mu     sync.Mutex
	cache  cache
	stream *stream // row group being decoded, or nil
	next   int     // index of the row after the latest decoded block
	window int     // maximum distance of a row from next in a sequential read
	misses int     // number of reads that had to decode
	jumps  int     // number of misses that were not sequential
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open reads the footers of the files at paths and returns a data set of their rows, one file after
// the other. The data set may be used from several goroutines, but decodes pages in one at a time.
// The caller must close it. The error wraps [row.ErrColumn] if a file lacks a column in
// Options.Columns, or [ErrEmpty], [ErrFormat], [ErrKind] or [ErrSize].
//
// The data set is a [data.ValueDataset]. The value of a row is a map[string]any with values of type
// bool, int64, float64, string and []byte, and nil for a missing value. A list of numbers is a
// tensor of the column's dtype, another list is a []any, and a group or a map with string keys is a
// map[string]any. Dates and times are the numbers in the file. Get returns the columns of a row as
// tensors, in the order of Options.Columns, or sorted by name if that is empty; all columns must be
// numbers or lists of numbers. If a row cannot be converted to a sample, Value and Get return a
// [*row.Error].
func Open(o Options, paths ...string) (data.DatasetCloser, error) {
	if o.Cache <= 0 {
		o.Cache = 64 << 20
	}
	if o.MaxPage <= 0 {
		o.MaxPage = 1 << 30
	}
	o.MaxPage = min(o.MaxPage, math.MaxInt32-maxTarget) // offsets in a block have 32 bits
	if o.Spill == 0 {
		o.Spill = 16 << 30
	}
	s := &set{options: o, cache: cache{room: o.Cache, spill: spill{room: max(o.Spill, 0)}}}
	for _, path := range paths {
		f, err := open(path, o)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("open %s: %w", path, err)
		}
		s.Add(f, f.rows)
	}
	if s.Len() == 0 {
		s.Close()
		return nil, fmt.Errorf("open %q: %w", paths, ErrEmpty)
	}
	return s, nil
}

// Close closes the files and the spill file.
func (s *set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		s.stream.close()
		s.stream = nil
	}
	return errors.Join(s.Files.Close(), s.cache.spill.close())
}

// Value returns row i, a map[string]any as [Open] describes. The error is a [*row.Error], or
// says that i is out of range.
func (s *set) Value(_ context.Context, i int) (any, error) {
	var picked map[string]any
	err := s.withRow(i, func(r map[string]any) (err error) {
		if picked = r; len(s.options.Columns) > 0 {
			picked, err = table.Pick(s.options.Columns, r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return picked, nil
}

// Get returns the columns of row i as tensors. Errors are as with Value.
func (s *set) Get(_ context.Context, i int) (sample data.Sample, err error) {
	err = s.withRow(i, func(r map[string]any) error {
		sample, err = table.Sample(s.options.Columns, r)
		return err
	})
	return sample, err
}

// withRow calls f with row i, which f may keep. It returns the error of f, or of reading the
// row, in a [*row.Error]. If i is out of range, it returns a plain error.
func (s *set) withRow(i int, f func(r map[string]any) error) error {
	if i < 0 || i >= s.Len() {
		return fmt.Errorf("row %d of %d: out of range", i, s.Len())
	}
	in, n := s.At(i)
	err := s.read(i, in, n, f)
	if err != nil {
		return &row.Error{Path: in.Name(), Unit: "row", Number: n, Err: err}
	}
	return nil
}

// read calls f with row n of a file, which is row i of the set, without s.mu. It returns the
// error of f or of reading the row.
func (s *set) read(i int, in *source, n int, f func(r map[string]any) error) error {
	b, spilled, err := s.find(i, in, n)
	if err != nil {
		return err
	}
	var r map[string]any
	decode := func(record []byte) error {
		cells, err := parse(in.leaves, record)
		if err == nil {
			r, err = assembleRow(in.schema, cells)
		}
		return err
	}
	err = recoverPanic(func() error {
		if b == nil {
			return spilled.use(decode)
		}
		return decode(b)
	})
	if err != nil {
		return err
	}
	return f(r)
}

// find returns the record of row n of a file, which is row i of the set. The record must not be
// modified. It is nil if the row is in the spill file at the location at.
func (s *set) find(i int, in *source, n int) (record []byte, at spilledRow, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, r := in.locateRow(n)
	if at := g.placeOf(r); at != nil {
		if at.block != nil {
			s.cache.markUsed(at)
			return at.block.rowRecord(r), spilledRow{}, nil
		}
		if at.spilled >= 0 {
			return nil, spilledRow{&s.cache.spill, at.spilled, s.cache.spill.end, at.rows, r - at.first}, nil
		}
	}
	record, err = s.decode(i, g, r)
	return record, spilledRow{}, err
}

// Note [Order of reads] A page can only be decoded from its start. Without an index, finding a row
// of a list column requires decoding all pages before it. Sequential reads therefore decode blocks
// on demand and drop the oldest ones. Shuffled reads decode each row group once, from its first row
// to its last, and write the blocks that do not fit into memory to the spill file. Reads count as
// shuffled if more than one miss, and more than a quarter of the misses, are jumps. The limit of
// one allows for the start of a rank's part of the rows; the start of the next epoch is a jump as
// well.

// minWindow is the minimum of set.window, in rows. Several workers of one Loader may be this far
// apart.
const minWindow = 4096

// decode decodes the block of row r of a group, which is row i of the set, and returns the record
// of the row. The record is a slice of the block and must not be modified. The caller must hold
// s.mu.
func (s *set) decode(i int, g *group, r int) (record []byte, err error) {
	window := max(s.window, minWindow)
	s.misses++
	if ahead := i - s.next; ahead < 0 || ahead > window {
		s.jumps++
	}
	shuffled := s.jumps > 1 && 4*s.jumps > s.misses
	keep := shuffled && !s.cache.spill.isFull()
	if s.stream != nil && (s.stream.group != g || s.stream.next > r) {
		s.stream.close()
		s.stream = nil
	}
	if s.stream == nil {
		if s.stream, err = openStream(g); err != nil {
			s.stream = nil
			return nil, err
		}
	}
	target := min(max(s.options.Cache/32, minTarget), maxTarget)
	for record == nil || keep && s.stream.next < g.rows {
		k := s.stream.block
		b, err := s.stream.read(target)
		if err != nil {
			s.stream.close()
			s.stream = nil
			return nil, err
		}
		at := g.recordBlock(k, b)
		if at.block == nil && at.spilled < 0 {
			s.cache.addBlock(at, b, keep)
		}
		if r >= b.first && r < b.first+len(b.ends) {
			record = b.rowRecord(r)
			s.next = i - r + b.first + len(b.ends)
			s.window = 8 * len(b.ends)
		}
	}
	if s.stream.next == g.rows {
		s.stream.close()
		s.stream = nil
	}
	return record, nil
}
