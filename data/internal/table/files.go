package table

import (
	"errors"
	"io"
	"sort"
)

// Files is the concatenation of the files of a data set. The zero value has no files. Add must
// not be called concurrently with other methods.
type Files[F io.Closer] struct {
	all  []F
	ends []int // number of rows up to the end of each file
}

// Add appends a file with the given number of rows. Files takes ownership of the file.
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

// At returns the file that contains row i, and the index of the row in it. i must be in range.
func (f *Files[F]) At(i int) (file F, row int) {
	k := sort.SearchInts(f.ends, i+1)
	if k > 0 {
		i -= f.ends[k-1]
	}
	return f.all[k], i
}

// Close closes the files and joins their errors.
func (f *Files[F]) Close() error {
	var errs []error
	for _, file := range f.all {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}
