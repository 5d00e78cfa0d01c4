package table

import (
	"errors"
	"io"
	"sort"
)

// Files are the files of a set, one behind the other. The zero value has none.
type Files[F io.Closer] struct {
	all  []F
	ends []int // numbers of the rows up to the end of each file
}

// Add takes over a file with so many rows.
func (f *Files[F]) Add(file F, rows int) {
	f.all = append(f.all, file)
	f.ends = append(f.ends, f.Len()+rows)
}

// Len returns the number of rows.
func (f *Files[F]) Len() int {
	if len(f.ends) == 0 {
		return 0
	}
	return f.ends[len(f.ends)-1]
}

// At returns the file of row i, which is in range, and the number of the row there.
func (f *Files[F]) At(i int) (file F, row int) {
	k := sort.SearchInts(f.ends, i+1)
	if k > 0 {
		i -= f.ends[k-1]
	}
	return f.all[k], i
}

// Close closes the files.
func (f *Files[F]) Close() error {
	var errs []error
	for _, file := range f.all {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
