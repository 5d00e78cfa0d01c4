package encoding

import (
	"fmt"
	"strings"
)

// FileError records an error in a file and its location. Callers should use [errors.As] to find it.
type FileError struct {
	Path   string // path of the file; empty if the input was a reader
	Name   string // name of the tensor or array, or empty
	Offset int64  // byte offset in the decompressed file; 0 for the whole file
	Err    error  // wraps an error of the format's package, or is a read error
}

// Error returns a single-line message.
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
