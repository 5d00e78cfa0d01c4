package datasets

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/wire"
)

// ErrMagic is returned for a file whose first four bytes are no IDX magic number.
var ErrMagic = errors.New("datasets: not an IDX file")

// Workers that are processes return these.
func init() {
	wire.RegisterError("datasets.ErrMagic", ErrMagic)
	wire.RegisterError("datasets.ErrRecords", ErrRecords)
	wire.RegisterError("datasets.ErrNoImages", ErrNoImages)
	wire.RegisterError("datasets.ErrTar", ErrTar)
}
