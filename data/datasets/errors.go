package datasets

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
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
	codec.RegisterError("datasets.ErrKey", ErrKey)
	codec.RegisterError("datasets.ErrLimit", ErrLimit)
	codec.RegisterError("datasets.ErrMagic", ErrMagic)
	codec.RegisterError("datasets.ErrRecords", ErrRecords)
	codec.RegisterError("datasets.ErrNoImages", ErrNoImages)
	codec.RegisterError("datasets.ErrTar", ErrTar)
	codec.RegisterError("datasets.ErrPattern", ErrPattern)
}
