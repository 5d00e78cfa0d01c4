package image

import (
	"errors"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
	"github.com/shoal-mp/shoal/internal/codec"
)

// Errors of an encoded image. [Image.Decode] returns them in an [*encoding.FileError] with the
// offset of the fault. Test for them with [errors.Is].
var (
	ErrFormat      = pixel.ErrFormat      // not an image
	ErrCorrupt     = pixel.ErrCorrupt     // damaged
	ErrTruncated   = pixel.ErrTruncated   // the file ends early
	ErrUnsupported = pixel.ErrUnsupported // a format, or a feature of it, that is not supported
	ErrTooLarge    = pixel.ErrTooLarge    // more pixels than allowed
)

// ErrSize is wrapped if an image does not have the size that a step, or the row of a batch,
// requires.
var ErrSize = errors.New("image: wrong size")

func init() {
	codec.RegisterError("image.ErrFormat", ErrFormat)
	codec.RegisterError("image.ErrCorrupt", ErrCorrupt)
	codec.RegisterError("image.ErrTruncated", ErrTruncated)
	codec.RegisterError("image.ErrUnsupported", ErrUnsupported)
	codec.RegisterError("image.ErrTooLarge", ErrTooLarge)
	codec.RegisterError("image.ErrSize", ErrSize)
}
