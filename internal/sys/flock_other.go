//go:build !linux

package sys

import "os"

// LockFile returns nil without locking the file: flock's lock is implemented for Linux only.
func LockFile(*os.File) error { return nil }
