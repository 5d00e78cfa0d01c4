//go:build !linux

package sys

import "os"

// OpenUnnamed needs Linux.
func OpenUnnamed(_, _ string) (*os.File, error) {
	return nil, unsupportedError("a file without a name")
}

// LinkUnnamed needs Linux.
func LinkUnnamed(*os.File) error { return unsupportedError("a file without a name") }
