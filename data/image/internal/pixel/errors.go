package pixel

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
)

var (
	ErrFormat      = errors.New("image: unknown format")
	ErrCorrupt     = errors.New("image: damaged")
	ErrTruncated   = errors.New("image: unexpected end of file")
	ErrUnsupported = errors.New("image: unsupported kind of image")
	ErrTooLarge    = errors.New("image: too large")
)

// Decoding returns an [*encoding.FileError] for an image of the given format, such as "jpeg" or
// "png", with a fault at a byte offset. err, which it wraps, should wrap one of the errors of
// this package.
func Decoding(format string, offset int, err error) error {
	return &encoding.FileError{Offset: int64(offset), Err: fmt.Errorf("decode %s: %w", format, err)}
}

// A Place allocates the memory of an image, c·h·w bytes, when a decoder knows the dimensions. The
// decoder stops if it returns an error.
type Place func(c, h, w int) ([]uint8, error)
