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

// Faults of a file. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is not Parquet, or is damaged.
	ErrFormat = errors.New("parquet: malformed")
	// ErrEmpty is wrapped where all files together have no row.
	ErrEmpty = errors.New("parquet: no rows")
	// ErrKind is wrapped where a column has a type that this package does not read, such as
	// decimals and times of 96 bits, and where an integer does not fit int64.
	ErrKind = errors.New("parquet: type of column")
	// ErrSize is wrapped where a part of a file would take more memory than Options.MaxPage.
	ErrSize = errors.New("parquet: too large")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("parquet.ErrEmpty", ErrEmpty)
	codec.RegisterError("parquet.ErrFormat", ErrFormat)
	codec.RegisterError("parquet.ErrKind", ErrKind)
	codec.RegisterError("parquet.ErrSize", ErrSize)
}

// Options configure Open.
type Options struct {
	Columns []row.Column // the wanted columns of each row; none: all columns
	// the bytes of decoded rows that stay in memory; 0 stands for 64 MiB
	Cache int
	// the most bytes of decoded rows in a temporary file without a name, in the directory of
	// os.TempDir. Rows go there if they are read in no order and do not fit into Cache. 0 stands
	// for 16 GiB, and a negative number for no file.
	Spill int64
	// the most bytes of an unpacked page, of a row, and of the footer; 0 stands for 1 GiB
	MaxPage int
}

// A set is the rows of files, one after the other.
type set struct {
	options              Options
	table.Files[*source] // Len is its method

	mu     sync.Mutex
	cache  cache
	stream *stream // the row group that is being decoded, or nil
	next   int     // the number of the row after the block that was decoded last
	window int     // how far ahead of next a row may be in a read in order
	misses int     // the reads of rows that had to be decoded
	jumps  int     // the misses that were not in order
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open reads the footers of files. The set has the rows of one file after the other. It may be used
// from several goroutines, of which one at a time decodes pages. The caller must close the set. The
// error wraps row.ErrColumn if a file lacks a wanted column, or ErrEmpty, ErrFormat, ErrKind or
// ErrSize.
//
// The set is a [data.ValueDataset]. The value of a row is a map[string]any. Its values are bool,
// int64, float64, string and []byte, and nil for a missing value. A list of numbers is a tensor of
// the column's dtype, another list is a []any, and a group or a map with string keys is a
// map[string]any. Dates and times are the numbers in the file. Get returns the columns of a row as
// tensors, in the order of Options.Columns, or of their names; all of them must be numbers or lists
// of numbers. For a row that is not a sample, the error of Value and Get is a [*row.Error].
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

// Close closes the files.
func (s *set) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream != nil {
		s.stream.close()
		s.stream = nil
	}
	return errors.Join(s.Files.Close(), s.cache.spill.close())
}

// Value returns row i.
func (s *set) Value(_ context.Context, i int) (any, error) {
	var picked map[string]any
	err := s.with(i, func(r map[string]any) (err error) {
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

// Get returns the columns of row i.
func (s *set) Get(_ context.Context, i int) (sample data.Sample, err error) {
	err = s.with(i, func(r map[string]any) error {
		sample, err = table.Sample(s.options.Columns, r)
		return err
	})
	return sample, err
}

// with calls f with a row. The error of f becomes one of the row.
func (s *set) with(i int, f func(r map[string]any) error) error {
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

// read calls f with row n of a file, which is row i of the set.
func (s *set) read(i int, in *source, n int, f func(r map[string]any) error) error {
	b, spilled, err := s.find(i, in, n)
	if err == nil && b == nil {
		b, err = spilled.read()
	}
	if err != nil {
		return err
	}
	var r map[string]any
	if err = guarded(func() error {
		cells, err := parse(in.leaves, b)
		if err == nil {
			r, err = assemble(in.schema, cells)
		}
		return err
	}); err != nil {
		return err
	}
	return f(r)
}

// find returns the record of a row, or its place in the spill file.
func (s *set) find(i int, in *source, n int) (record []byte, at spilledRow, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, r := in.locate(n)
	if at := g.place(r); at != nil {
		if at.block != nil {
			s.cache.touch(at)
			return at.block.record(r), spilledRow{}, nil
		}
		if at.spilled >= 0 {
			return nil, spilledRow{s.cache.spill.file, at.spilled, at.rows, r - at.first}, nil
		}
	}
	record, err = s.decode(i, g, r)
	return record, spilledRow{}, err
}

// Note [Order of reads] A page can only be decoded from its start, and without an index a row of a
// list is found only by decoding all pages before it. So a read in order decodes blocks as it comes
// to them, and drops the oldest ones. A shuffled read decodes each row group once, from its first
// row to its last, and writes the blocks that do not fit into memory to the spill file. Reads are
// shuffled if more than a quarter of the misses, and more than one, are jumps: the start of a
// rank's part of the rows, and of the next epoch, are jumps as well.

// minWindow is the least distance, in rows, that several workers of one loader may be apart.
const minWindow = 4096

// decode decodes the block of row r of a group, which is row i of the set, and returns its record.
func (s *set) decode(i int, g *group, r int) (record []byte, err error) {
	window := max(s.window, minWindow)
	s.misses++
	if ahead := i - s.next; ahead < 0 || ahead > window {
		s.jumps++
	}
	shuffled := s.jumps > 1 && 4*s.jumps > s.misses
	keep := shuffled && !s.cache.spill.full()
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
		at := g.put(k, b)
		if at.block == nil && at.spilled < 0 {
			s.cache.put(at, b, keep)
		}
		if r >= b.first && r < b.first+len(b.ends) {
			record = b.record(r)
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
