package row

import (
	"errors"

	"github.com/shoal-mp/shoal/tensor"
)

// What may be wrong with a row.
var (
	// ErrColumn is wrapped where a row has no such column.
	ErrColumn = errors.New("row: no such column")
	// ErrKind is wrapped where a column has not what it should have.
	ErrKind = errors.New("row: not of this kind")
)

// A Column is one that is wanted.
type Column struct {
	Name  string
	DType *tensor.DType // of the tensors of its numbers, new(tensor.Int64); nil leaves them as they are
}
