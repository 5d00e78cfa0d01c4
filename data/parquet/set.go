package parquet

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/internal/wire"
)

// Faults of a file. Test for them with errors.Is.
var (
	// ErrFormat is wrapped where a file is not Parquet, or is damaged.
	ErrFormat = errors.New("parquet: malformed")
	// ErrEmpty is wrapped where all files together have no row.
	ErrEmpty = errors.New("parquet: no rows")
	// ErrKind is wrapped where a column has a type that this package does not read: decimals, and
	// times of 96 bits.
	ErrKind = errors.New("parquet: type of column")
	// ErrSize is wrapped where a part of a file would take more memory than Options.MaxPage.
	ErrSize = errors.New("parquet: too large")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	wire.RegisterError("parquet.ErrEmpty", ErrEmpty)
	wire.RegisterError("parquet.ErrFormat", ErrFormat)
	wire.RegisterError("parquet.ErrKind", ErrKind)
	wire.RegisterError("parquet.ErrSize", ErrSize)
}

// Options configure Open.
type Options struct {
	Columns []row.Column // the wanted columns of each row; none: all columns
	Cache   int          // about how many bytes of rows stay in memory; 0 stands for 64 MiB
	// the most bytes of an unpacked column in a row group, of a block of rows, and of the footer; 0
	// stands for 1 GiB
	MaxPage int
}

// A set is the rows of files, one after the other.
type set struct {
	options            Options
	table.Files[*file] // Len and Close are theirs

	mu    sync.Mutex
	cache cache
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open reads the footers of files. The set has the rows of one file after the other. Several
// goroutines may use the set, and one at a time reads a file. The caller closes it. The error wraps
// row.ErrColumn if a file lacks a wanted column, or ErrEmpty, ErrFormat, ErrKind or ErrSize.
//
// The set is a data.ValueDataset. The value of a row is a map[string]any. Its values are bool,
// int64, float64, string and []byte, and nil for a missing value. A list of numbers is a tensor of
// the column's dtype, another list is a []any, and a group or a map with string keys is a
// map[string]any. Dates and times are the numbers in the file. Get returns the columns of a row as
// tensors, in the order of Options.Columns, or of their names; all of them must be numbers or lists
// of numbers. For a row that is not a sample, the error of Value and Get is a [*row.Error].
func Open(o Options, paths ...string) (data.DatasetCloser, error) {
	if o.Cache == 0 {
		o.Cache = 64 << 20
	}
	if o.MaxPage <= 0 {
		o.MaxPage = 1 << 30
	}
	s := &set{options: o, cache: cache{room: o.Cache}}
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

// Value returns row i.
func (s *set) Value(_ context.Context, i int) (any, error) {
	var picked map[string]any
	err := s.with(i, func(r map[string]any) (err error) {
		picked, err = table.Pick(s.options.Columns, r)
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
	in, i := s.At(i)
	s.mu.Lock()
	r, err := s.row(in, i)
	s.mu.Unlock()
	if err == nil {
		err = f(r)
	}
	if err != nil {
		return &row.Error{Path: in.Name(), Unit: "row", Number: i, Err: err}
	}
	return nil
}

// row returns row i of a file.
func (s *set) row(f *file, i int) (map[string]any, error) {
	g, first := f.group(i)
	at := place{f, g, (i - first) / blockRows}
	b := s.cache.get(at)
	if b == nil {
		var err error
		if b, err = f.read(g, at.block*blockRows); err != nil {
			return nil, err
		}
		s.cache.put(at, b)
	}
	return b.row(f.schema, i-first-at.block*blockRows)
}
