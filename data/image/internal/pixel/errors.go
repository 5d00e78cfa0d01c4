package pixel

import (
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/encoding"
)

var (
	ErrFormat      = errors.New("image: not of this format")
	ErrCorrupt     = errors.New("image: damaged")
	ErrTruncated   = errors.New("image: the file ends early")
	ErrUnsupported = errors.New("image: of a kind that is not read")
	ErrTooLarge    = errors.New("image: larger than allowed")
)

// Decoding returns the error of an image of a format, "jpeg" or "png", at a byte of it. err wraps
// one of the package's errors.
func Decoding(format string, offset int, err error) error {
	return &encoding.FileError{Offset: int64(offset), Err: fmt.Errorf("decode %s: %w", format, err)}
}

// A Place is asked for the memory of an image, c·h·w bytes, when its dimensions are known; its
// error ends the decoding.
type Place func(c, h, w int) ([]uint8, error)
