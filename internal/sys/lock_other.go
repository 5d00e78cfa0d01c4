//go:build !linux

package sys

import "os"

// LockByte returns an error that wraps [errors.ErrUnsupported]: locking a byte of a file needs
// Linux.
func LockByte(f *os.File, i int64) (bool, error) { return false, unsupportedError("F_OFD_SETLK") }

// UnlockByte returns an error that wraps [errors.ErrUnsupported]: locking a byte of a file
// needs Linux.
func UnlockByte(f *os.File, i int64) error { return unsupportedError("F_OFD_SETLK") }

// ByteLocked returns an error that wraps [errors.ErrUnsupported]: querying the lock of a byte
// needs Linux.
func ByteLocked(f *os.File, i int64) (bool, error) { return false, unsupportedError("F_OFD_GETLK") }
