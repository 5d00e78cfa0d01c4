package jsonl

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Faults of a file. Test for them with errors.Is.
var (
	// ErrEmpty is wrapped where all files together have no line.
	ErrEmpty = errors.New("jsonl: no lines")
	// ErrLong is wrapped where a line is longer than Options.MaxLine.
	ErrLong = errors.New("jsonl: line too long")
	// ErrValue is wrapped where a line is not JSON, or has a value that the set does not take.
	ErrValue = errors.New("jsonl: not such a value")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("jsonl.ErrEmpty", ErrEmpty)
	codec.RegisterError("jsonl.ErrLong", ErrLong)
	codec.RegisterError("jsonl.ErrValue", ErrValue)
}

// Options configure Open.
type Options struct {
	Columns []row.Column // the wanted keys of each line, which must be an object; none: all keys
	MaxLine int          // longest line in bytes; 0 stands for 64 MiB
}

// A set is the lines of files, one after the other, without those that are blank.
type set struct {
	options            Options
	table.Files[*file] // Len and Close are theirs
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open finds the lines of files, one file after the other. It skips blank lines. Several goroutines
// may use the set; the caller closes it. The error wraps ErrEmpty, or is the error of reading.
//
// The set is a data.ValueDataset. The value of a line is nil, bool, int64, float64, string, []any
// or map[string]any, in which lists of numbers are tensors: see package row. Get returns the
// columns of a line as tensors, in the order of Options.Columns, or of their names; all of them
// must be numbers or lists of numbers. For a line that is a number or a list of numbers, Get
// returns one tensor. For a line that is not a sample, the error of Value and Get is a
// [*row.Error].
func Open(o Options, paths ...string) (data.DatasetCloser, error) {
	if o.MaxLine == 0 {
		o.MaxLine = 64 << 20
	}
	s := &set{options: o}
	for _, path := range paths {
		f, err := open(path)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("open lines of JSON: %w", err)
		}
		s.Add(f, f.lines())
	}
	if s.Len() == 0 {
		s.Close()
		return nil, fmt.Errorf("open %q: %w", paths, ErrEmpty)
	}
	return s, nil
}

// Value returns line i.
func (s *set) Value(_ context.Context, i int) (v any, err error) {
	err = s.with(i, func(line any) error {
		object, ok := line.(map[string]any)
		switch {
		case ok:
			if object, err = table.Pick(s.options.Columns, object); err == nil {
				v = table.Tensors(object)
			}
		case len(s.options.Columns) > 0:
			err = notAnObject(line)
		default:
			v = table.Tensors(line)
		}
		return err
	})
	return v, err
}

// Get returns the columns of line i.
func (s *set) Get(_ context.Context, i int) (sample data.Sample, err error) {
	err = s.with(i, func(line any) error {
		object, ok := line.(map[string]any)
		columns := s.options.Columns
		switch {
		case !ok && len(columns) > 0:
			return notAnObject(line)
		case !ok:
			object = map[string]any{"line": line}
		}
		sample, err = table.Sample(columns, object)
		return err
	})
	return sample, err
}

func notAnObject(line any) error {
	return fmt.Errorf("%w: %T has no columns", ErrValue, line)
}

// with calls f with a line. The error of f becomes one of the line.
func (s *set) with(i int, f func(line any) error) error {
	if i < 0 || i >= s.Len() {
		return fmt.Errorf("line %d of %d: out of range", i, s.Len())
	}
	in, i := s.At(i)
	b, err := in.line(i, s.options.MaxLine)
	if err == nil {
		var v any
		if v, err = decode(b); err == nil {
			err = f(v)
		}
	}
	if err != nil {
		return in.fail(i, err)
	}
	return nil
}
