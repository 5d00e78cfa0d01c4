//go:build !linux

package sys

import "os"

// OpenUnnamed returns an error that wraps [errors.ErrUnsupported]: a file without a name needs
// Linux.
func OpenUnnamed(_, _ string) (*os.File, error) {
	return nil, unsupportedError("a file without a name")
}

// LinkUnnamed returns an error that wraps [errors.ErrUnsupported]: a file without a name needs
// Linux.
func LinkUnnamed(*os.File) error { return unsupportedError("a file without a name") }
