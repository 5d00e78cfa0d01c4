package datasets

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// hdf5Rows is a data set over data sets of an HDF5 file.
type hdf5Rows struct {
	Path  string
	Names []string // paths of the fields in the file
	Rows  int
}

// OpenHDF5 returns a data set over several data sets of an HDF5 file. Each name is a field, and
// sample i consists of row i of each. Rows are read from the file on demand, so the file may be
// larger than memory. The result is a [data.Opener]: each worker opens the file itself, and
// OpenHDF5 leaves no file open. The error is an [*encoding.FileError]. It wraps an error of package
// hdf5 for a malformed file or a missing data set, and [data.ErrShape] if the data sets differ in
// their number of rows. OpenHDF5 panics without names.
//
// Reading a row reads all chunks of the file that contain a part of it. Files that are read in
// random order should have chunks of one or a few rows.
func OpenHDF5(path string, names ...string) (data.Dataset, error) {
	if len(names) == 0 {
		panic("data: OpenHDF5: got no data sets, want at least 1")
	}
	set := &hdf5Rows{Path: path, Names: slices.Clone(names)}
	o, err := set.open()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	set.Rows = o.Len()
	return set, nil
}

// Len returns the number of rows.
func (s *hdf5Rows) Len() int { return s.Rows }

// Get opens the file and reads row i. The workers of a Loader keep the file open instead.
func (s *hdf5Rows) Get(ctx context.Context, i int) (data.Sample, error) {
	o, err := s.open()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return o.Get(ctx, i)
}

// Open opens the file for one worker, which must close the result, an [*openedHDF5]. It returns
// an error that wraps [data.ErrShape] if the number of rows has changed.
func (s *hdf5Rows) Open(context.Context) (any, error) {
	o, err := s.open()
	if err != nil {
		return nil, err
	}
	if o.Len() != s.Rows {
		return nil, &encoding.FileError{Path: s.Path, Err: fmt.Errorf("%w: number of rows changed from %d to %d",
			data.ErrShape, s.Rows, o.Len())}
	}
	return o, nil
}

func (s *hdf5Rows) open() (*openedHDF5, error) {
	f, err := hdf5.Open(s.Path)
	if err != nil {
		return nil, &encoding.FileError{Path: s.Path, Err: err}
	}
	o := &openedHDF5{f: f}
	for _, name := range s.Names {
		d, err := f.Dataset(name)
		if err == nil && (len(d.Shape()) == 0 || len(o.fields) > 0 && d.Shape()[0] != o.Len()) {
			err = fmt.Errorf("%w: got data set shape %v in field %d, want at least 1 dimension and equal first "+
				"dimensions",
				data.ErrShape, d.Shape(), len(o.fields))
		}
		if err != nil {
			f.Close()
			return nil, &encoding.FileError{Path: s.Path, Err: err}
		}
		o.fields = append(o.fields, d)
	}
	return o, nil
}

// An openedHDF5 is the open data set of one worker. It is made by [hdf5Rows.Open] and must be
// closed.
type openedHDF5 struct {
	f      *hdf5.File
	fields []*hdf5.Dataset
}

// Len returns the number of rows.
func (o *openedHDF5) Len() int { return o.fields[0].Shape()[0] }

// Get reads row i of each field. It returns an error if i is out of range or the file is
// damaged.
func (o *openedHDF5) Get(_ context.Context, i int) (data.Sample, error) {
	var s data.Sample
	for _, d := range o.fields {
		shape := d.Shape()
		shape[0] = 1
		row := tensor.Empty(d.DType(), shape...)
		if err := readRows(d, row, i); err != nil {
			return nil, err
		}
		s = append(s, row.Reshape(shape[1:]...))
		row.Close()
	}
	return s, nil
}

// readRows reads rows from row i on into dst: as many as its first dimension. It returns an
// error if a row is out of range or the file is damaged.
func readRows(d *hdf5.Dataset, dst *tensor.Tensor, i int) error {
	start := make([]int, dst.Dims())
	start[0] = i
	return d.ReadSlab(dst, start...)
}

// Gather reads row indices[k] of each field into row k of into. Consecutive rows are read with
// one call. The error wraps [data.ErrShape] if into has another number of fields.
func (o *openedHDF5) Gather(_ context.Context, indices []int, into data.Batch) error {
	if len(into) != len(o.fields) {
		return fmt.Errorf("%w: got %d fields, want %d", data.ErrShape, len(into), len(o.fields))
	}
	for f, d := range o.fields {
		for k := 0; k < len(indices); {
			n := 1
			for k+n < len(indices) && indices[k+n] == indices[k]+n {
				n++
			}
			part := into[f].Narrow(0, k, n)
			err := readRows(d, part, indices[k])
			if part.Close(); err != nil {
				return err
			}
			k += n
		}
	}
	return nil
}

// Close closes the file.
func (o *openedHDF5) Close() error { return o.f.Close() }
