package image

import (
	"errors"

	"github.com/shoal-mp/shoal/internal/pixel"
	"github.com/shoal-mp/shoal/internal/wire"
)

// What is wrong with an encoded image. A decoder returns them in an
// [*encoding.FileError] with the byte at which that was noticed.
var (
	ErrFormat      = pixel.ErrFormat      // neither JPEG nor PNG
	ErrCorrupt     = pixel.ErrCorrupt     // damaged
	ErrTruncated   = pixel.ErrTruncated   // the file ends early
	ErrUnsupported = pixel.ErrUnsupported // of a kind that is not read
	ErrTooLarge    = pixel.ErrTooLarge    // more pixels than allowed
)

// ErrSize is returned where an image does not have the size that a step needs, or a batch's row.
var ErrSize = errors.New("image: not of this size")

func init() {
	wire.RegisterError("image.ErrFormat", ErrFormat)
	wire.RegisterError("image.ErrCorrupt", ErrCorrupt)
	wire.RegisterError("image.ErrTruncated", ErrTruncated)
	wire.RegisterError("image.ErrUnsupported", ErrUnsupported)
	wire.RegisterError("image.ErrTooLarge", ErrTooLarge)
	wire.RegisterError("image.ErrSize", ErrSize)
}
