package parquet

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
)

// What may be wrong.
var (
	// ErrFormat is wrapped where a file is no Parquet, or is damaged.
	ErrFormat = errors.New("parquet: malformed")
	// ErrEmpty is wrapped where files have no rows.
	ErrEmpty = errors.New("parquet: no rows")
	// ErrKind is wrapped where a column is of a type that has no form here: decimals, and times of
	// 96 bits.
	ErrKind = errors.New("parquet: type of column")
	// ErrSize is wrapped where a file asks for more memory than Options.MaxPage.
	ErrSize = errors.New("parquet: too large")
)

// Options says what samples are.
type Options struct {
	Columns []row.Column // of each row; none stand for all
	Cache   int          // bytes of rows that stay in memory, about; 0 stands for 64 MiB
	// bytes of a column in a row group, unpacked, of a block of rows, and of the footer; 0 stands
	// for 1 GiB
	MaxPage int
}

// A set is the rows of files, one after the other.
type set struct {
	options Options
	files   []*file
	ends    []int // numbers of the rows up to the end of each file

	mu    sync.Mutex
	cache cache
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open reads the footers of files, whose rows follow each other in the set. The caller closes the
// set, which several goroutines may use; one of them reads at a time. The error wraps
// row.ErrColumn where a file lacks a wanted column, and ErrEmpty, ErrFormat, ErrKind or ErrSize.
//
// The set is a data.ValueDataset. The value of a row is a map[string]any: bool, int64, float64,
// string and []byte are such, lists of numbers are tensors of the column's type, other lists []any,
// groups and maps with names map[string]any, and what is not there nil. Dates and times are the
// numbers in the file. Its Get returns the columns of a row, all of which are numbers or lists of
// them, in the order of Options.Columns or of their names. The error of both is a *row.Error where
// the row is no good.
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
		s.files = append(s.files, f)
		s.ends = append(s.ends, s.Len()+f.rows)
	}
	if s.Len() == 0 {
		s.Close()
		return nil, fmt.Errorf("open %q: %w", paths, ErrEmpty)
	}
	return s, nil
}

// Len returns the number of rows.
func (s *set) Len() int {
	if len(s.ends) == 0 {
		return 0
	}
	return s.ends[len(s.ends)-1]
}

// Close closes the files.
func (s *set) Close() error {
	var errs []error
	for _, f := range s.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
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
	k := sort.SearchInts(s.ends, i+1)
	if k > 0 {
		i -= s.ends[k-1]
	}
	s.mu.Lock()
	r, err := s.row(k, i)
	s.mu.Unlock()
	if err == nil {
		err = f(r)
	}
	if err != nil {
		return &row.Error{Path: s.files[k].Name(), Unit: "row", Number: i, Err: err}
	}
	return nil
}

// row returns row i of file k.
func (s *set) row(k, i int) (map[string]any, error) {
	f := s.files[k]
	g, first := f.group(i)
	at := place{k, g, (i - first) / blockRows}
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
