//go:build !linux

package sys

import "os"

// LockRange needs Linux.
func LockRange(f *os.File, off, n int64) (bool, error) { return false, unsupportedError("F_OFD_SETLK") }

// ShareRange needs Linux.
func ShareRange(f *os.File, off, n int64) (bool, error) {
	return false, unsupportedError("F_OFD_SETLK")
}

// LockedRange needs Linux.
func LockedRange(f *os.File, off, n int64) (start, size int64, err error) {
	return 0, 0, unsupportedError("F_OFD_GETLK")
}

// MapRange needs Linux.
func MapRange(f *os.File, off int64, n int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Duplicate needs Linux.
func Duplicate(f *os.File) (int, error) { return -1, unsupportedError("F_DUPFD_CLOEXEC") }

// DuplicateInherited needs Linux.
func DuplicateInherited(f *os.File) (int, error) { return -1, unsupportedError("F_DUPFD") }

// ThreadID needs Linux.
func ThreadID() int { return 0 }

// DuplicateNumber needs Linux.
func DuplicateNumber(fd int) (*os.File, error) { return nil, unsupportedError("F_DUPFD_CLOEXEC") }

// FileOf needs Linux.
func FileOf(name string, f func() (fd int, err error)) (*os.File, error) {
	return nil, unsupportedError("O_CLOEXEC")
}
