package data

import (
	"io"

	"github.com/shoal-mp/shoal/tensor"
)

// ReadIDX reads the IDX file r of size bytes.
func ReadIDX(r io.Reader, size int64) (*tensor.Tensor, error) {
	t, _, err := readIDX(r, size)
	return t, err
}
