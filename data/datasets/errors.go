package datasets

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/safefile"
	"github.com/shoal-mp/shoal/internal/wire"
)

// ErrMagic is wrapped where the first four bytes of a file are not the magic number of an IDX file.
var ErrMagic = errors.New("datasets: not an IDX file")

// ErrLimit is wrapped where a file asks for more memory than its reader gives.
var ErrLimit = safefile.ErrLimit

// ErrKey is wrapped where the name of a file in a shard would lead out of the folder into which
// somebody unpacks it.
var ErrKey = errors.New("datasets: a name that leads elsewhere")

// Workers that are processes return these.
func init() {
	wire.RegisterError("datasets.ErrKey", ErrKey)
	wire.RegisterError("datasets.ErrLimit", ErrLimit)
	wire.RegisterError("datasets.ErrMagic", ErrMagic)
	wire.RegisterError("datasets.ErrRecords", ErrRecords)
	wire.RegisterError("datasets.ErrNoImages", ErrNoImages)
	wire.RegisterError("datasets.ErrTar", ErrTar)
	wire.RegisterError("datasets.ErrPattern", ErrPattern)
}
