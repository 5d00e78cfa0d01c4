package download

import "errors"

var (
	ErrStatus   = errors.New("download: refused by the server")      // an HTTP status other than success
	ErrPartial  = errors.New("download: the connection ended early") // what came is kept; call again to go on
	ErrChecksum = errors.New("download: not the original file")      // what came has another checksum, and is removed
)
