package datasets

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/wire"
)

// ErrMagic is wrapped where the first four bytes of a file are not the magic number of an IDX file.
var ErrMagic = errors.New("datasets: not an IDX file")

// Workers that are processes return these.
func init() {
	wire.RegisterError("datasets.ErrMagic", ErrMagic)
	wire.RegisterError("datasets.ErrRecords", ErrRecords)
	wire.RegisterError("datasets.ErrNoImages", ErrNoImages)
	wire.RegisterError("datasets.ErrTar", ErrTar)
}
