package datasets

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/tensor"
)

// OpenNPY maps NumPy files as a data set: each array is a field, and sample i consists of row i of
// each. The kernel reads pages when they are accessed. Arrays in Fortran order are copied. Share,
// or sending the set, copies it to shared memory once. The caller must close the set. The error is
// an [*encoding.FileError]. It wraps an error of package npy, or [data.ErrShape] if the arrays
// differ in their number of rows. OpenNPY panics without paths.
func OpenNPY(paths ...string) (*data.TensorDataset, error) {
	if len(paths) == 0 {
		panic("data: OpenNPY: got no files, want at least 1")
	}
	var fields []*tensor.Tensor
	for _, path := range paths {
		t, err := npy.Map(path)
		if err == nil && (t.Dims() == 0 || len(fields) > 0 && t.Dim(0) != fields[0].Dim(0)) {
			err = errors.Join(
				fmt.Errorf("%w: got array shape %v in field %d, want at least 1 dimension and equal first dimensions",
					data.ErrShape, t.Shape(),
					len(fields)), t.Close())
		}
		if err != nil {
			data.Batch(fields).Close()
			return nil, &encoding.FileError{Path: path, Err: err}
		}
		fields = append(fields, t)
	}
	return data.NewTensorDataset(fields...), nil
}
