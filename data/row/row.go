package row

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/tensor"
)

// Errors of a row. Test for them with [errors.Is].
var (
	// ErrColumn is wrapped if a row lacks a requested column.
	ErrColumn = errors.New("row: no such column")
	// ErrKind is wrapped if the value of a column has a type that is not supported.
	ErrKind = errors.New("row: wrong kind of value")
)

// The errors are registered so that errors.Is recognizes them in the parent of a worker process.
func init() {
	codec.RegisterError("row.ErrColumn", ErrColumn)
	codec.RegisterError("row.ErrKind", ErrKind)
}

// A Column selects a column of a table.
type Column struct {
	Name  string
	DType *tensor.DType // dtype for its numbers, such as new(tensor.Int64); nil: as in torch.tensor
}
