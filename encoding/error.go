package encoding

import (
	"fmt"
	"strings"
)

// A FileError says which file could not be read, and where in it the fault is.
type FileError struct {
	Path   string // path of the file, empty where the bytes came from a reader
	Name   string // name of the tensor or array in the file, or empty
	Offset int64  // bytes from the beginning of the decompressed file; 0 for the file as a whole
	Err    error  // wraps an error of the format's package, or is the error of the read
}

// Error returns one line.
func (e *FileError) Error() string {
	var b strings.Builder
	b.WriteString("read")
	if e.Path != "" {
		b.WriteString(" " + e.Path)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, ": %q", e.Name)
	}
	if e.Offset != 0 {
		fmt.Fprintf(&b, ": byte %d", e.Offset)
	}
	return fmt.Sprintf("%s: %v", &b, e.Err)
}

// Unwrap returns Err.
func (e *FileError) Unwrap() error { return e.Err }
