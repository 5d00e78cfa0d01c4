package jsonl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/internal/table"
	"github.com/shoal-mp/shoal/data/row"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Errors of a file. Test for them with [errors.Is].
var (
	// ErrEmpty is wrapped if the files have no lines in total.
	ErrEmpty = errors.New("jsonl: no lines")
	// ErrLong is wrapped if a line is longer than Options.MaxLine.
	ErrLong = errors.New("jsonl: line too long")
	// ErrValue is wrapped if a line is not valid JSON, or has a value that is not supported.
	ErrValue = errors.New("jsonl: value does not match")
)

// The errors are registered so that errors.Is recognizes them in the parent of a worker process.
func init() {
	codec.RegisterError("jsonl.ErrEmpty", ErrEmpty)
	codec.RegisterError("jsonl.ErrLong", ErrLong)
	codec.RegisterError("jsonl.ErrValue", ErrValue)
}

// Options configure [Open].
type Options struct {
	Columns []row.Column // keys of each line to read; lines must be objects; empty: all keys
	MaxLine int          // longest line in bytes; 0 means 64 MiB
}

// A set is the concatenation of the lines of files, except blank lines. It is made by [Open].
// Several goroutines may use it.
type set struct {
	options            Options
	table.Files[*file]           // provides Len and Close
	buffers            sync.Pool // of *lineBuffer
}

var (
	_ data.DatasetCloser = (*set)(nil)
	_ data.ValueDataset  = (*set)(nil)
)

// Open returns a data set of the lines of the files at paths, one file after the other. Blank lines
// are skipped. The data set may be used from several goroutines. The caller must close it. The
// error wraps [ErrEmpty], or is an error of reading.
//
// The data set is a [data.ValueDataset]. The value of a line is nil, bool, int64, float64, string,
// []any or map[string]any, with tensors for lists of numbers; see package row. Get returns the
// columns of a line as tensors, in the order of Options.Columns, or sorted by name if that is
// empty; all columns must be numbers or lists of numbers. For a line that is a number or a list of
// numbers, Get returns one tensor. If a line cannot be converted to a sample, Value and Get return
// a [*row.Error].
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
		s.Add(f, f.lineCount())
	}
	if s.Len() == 0 {
		s.Close()
		return nil, fmt.Errorf("open %q: %w", paths, ErrEmpty)
	}
	return s, nil
}

// Value returns the value of line i, as [Open] describes. The error is a [*row.Error], or says
// that i is out of range.
func (s *set) Value(_ context.Context, i int) (v any, err error) {
	err = s.withLine(i, func(line any) error {
		object, ok := line.(map[string]any)
		switch {
		case ok && len(s.options.Columns) == 0:
			v = table.Tensors(object)
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

// Get implements [data.Dataset]. It returns the columns of line i. If i is out of range, it returns
// an error; see [Open] for the others.
func (s *set) Get(_ context.Context, i int) (sample data.Sample, err error) {
	err = s.withLine(i, func(line any) error {
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

// withLine decodes line i and calls f with its value. An error of reading, decoding or f is wrapped
// in a [*row.Error]. An index out of range is another error.
func (s *set) withLine(i int, f func(line any) error) error {
	if i < 0 || i >= s.Len() {
		return fmt.Errorf("line %d is out of range [0, %d)", i, s.Len())
	}
	in, i := s.At(i)
	buffer, _ := s.buffers.Get().(*lineBuffer)
	if buffer == nil {
		buffer = new(lineBuffer)
	}
	defer s.buffers.Put(buffer)
	b, err := in.readLine(i, s.options.MaxLine, buffer)
	if err == nil {
		var v any
		if v, err = decode(b); err == nil { // which has no reference to the buffer
			err = f(v)
		}
	}
	if err != nil {
		return in.wrapError(i, err)
	}
	return nil
}
