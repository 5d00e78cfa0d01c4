package pixel

import (
	"errors"
	"fmt"
)

var (
	ErrFormat      = errors.New("image: not of this format")
	ErrCorrupt     = errors.New("image: damaged")
	ErrTruncated   = errors.New("image: the file ends early")
	ErrUnsupported = errors.New("image: of a kind that is not read")
	ErrTooLarge    = errors.New("image: larger than allowed")
)

// A DecodeError says what is wrong with an encoded image, and where.
type DecodeError struct {
	Format string // jpeg or png
	Offset int    // in bytes
	Err    error  // wraps one of the package's errors
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("decode %s: byte %d: %v", e.Format, e.Offset, e.Err)
}

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error { return e.Err }

// A Place is asked for the memory of an image, c·h·w bytes, when its dimensions are known; its
// error ends the decoding.
type Place func(c, h, w int) ([]uint8, error)
