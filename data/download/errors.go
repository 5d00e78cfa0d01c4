package download

import "errors"

var (
	ErrStatus   = errors.New("download: refused by the server")          // an HTTP status other than success
	ErrPartial  = errors.New("download: connection closed early")        // the part is kept: call again
	ErrChecksum = errors.New("download: file differs from the original") // wrong checksum; file removed
)
