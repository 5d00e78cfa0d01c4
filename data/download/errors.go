package download

import "errors"

var (
	ErrStatus   = errors.New("download: refused by the server")      // an HTTP status other than success
	ErrPartial  = errors.New("download: the connection ended early") // the part is kept: call again
	ErrChecksum = errors.New("download: not the original file")      // wrong checksum; file removed
)
