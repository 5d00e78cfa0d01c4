//go:build !linux

package sys

import "os"

// LockByte needs Linux.
func LockByte(f *os.File, i int64) (bool, error) { return false, unsupportedError("F_OFD_SETLK") }

// UnlockByte needs Linux.
func UnlockByte(f *os.File, i int64) error { return unsupportedError("F_OFD_SETLK") }

// ByteLocked needs Linux.
func ByteLocked(f *os.File, i int64) (bool, error) { return false, unsupportedError("F_OFD_GETLK") }
