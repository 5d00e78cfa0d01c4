package datasets

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// ErrMagic is wrapped if a file does not begin with the magic number of an IDX file.
var ErrMagic = errors.New("datasets: not an IDX file")

// ErrLimit is wrapped if a file requires more memory than its reader allows.
var ErrLimit = safefile.ErrLimit

// ErrKey is wrapped if the name of a file in a shard would place it outside of the folder into
// which the shard is unpacked.
var ErrKey = errors.New("datasets: unsafe file name")

// The errors are registered because worker processes return them.
func init() {
	codec.RegisterError("datasets.ErrKey", ErrKey)
	codec.RegisterError("datasets.ErrLimit", ErrLimit)
	codec.RegisterError("datasets.ErrMagic", ErrMagic)
	codec.RegisterError("datasets.ErrRecords", ErrRecords)
	codec.RegisterError("datasets.ErrNoImages", ErrNoImages)
	codec.RegisterError("datasets.ErrTar", ErrTar)
	codec.RegisterError("datasets.ErrPattern", ErrPattern)
}
