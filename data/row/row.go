package row

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Faults of a row. Test for them with errors.Is.
var (
	// ErrColumn is wrapped where a row does not have a wanted column.
	ErrColumn = errors.New("row: no such column")
	// ErrKind is wrapped where the value of a column has a type that the set does not take.
	ErrKind = errors.New("row: not of this kind")
)

// errors.Is finds them in the starter of the worker that returns them.
func init() {
	codec.RegisterError("row.ErrColumn", ErrColumn)
	codec.RegisterError("row.ErrKind", ErrKind)
}

// A Column is a wanted column of a table.
type Column struct {
	Name  string
	DType *tensor.DType // dtype for its numbers, such as new(tensor.Int64); nil: as in torch.tensor
}
