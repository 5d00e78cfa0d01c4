//go:build !linux

package sys

import "os"

// LockRange returns an error that wraps [errors.ErrUnsupported]: locking a range of a file
// needs Linux.
func LockRange(f *os.File, off, n int64) (bool, error) { return false, unsupportedError("F_OFD_SETLK") }

// ShareRange returns an error that wraps [errors.ErrUnsupported]: locking a range of a file
// needs Linux.
func ShareRange(f *os.File, off, n int64) (bool, error) {
	return false, unsupportedError("F_OFD_SETLK")
}

// LockedRange returns an error that wraps [errors.ErrUnsupported]: querying the locks of a file
// needs Linux.
func LockedRange(f *os.File, off, n int64) (start, size int64, err error) {
	return 0, 0, unsupportedError("F_OFD_GETLK")
}

// MapRange returns an error that wraps [errors.ErrUnsupported]: mapping a file needs Linux.
func MapRange(f *os.File, off int64, n int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Duplicate returns an error that wraps [errors.ErrUnsupported]: duplicating a descriptor needs
// Linux.
func Duplicate(f *os.File) (int, error) { return -1, unsupportedError("F_DUPFD_CLOEXEC") }

// DuplicateInherited returns an error that wraps [errors.ErrUnsupported]: duplicating a
// descriptor needs Linux.
func DuplicateInherited(f *os.File) (int, error) { return -1, unsupportedError("F_DUPFD") }

// ThreadID returns 0: reading the number of a thread needs Linux.
func ThreadID() int { return 0 }

// DuplicateNumber returns an error that wraps [errors.ErrUnsupported]: duplicating a descriptor
// needs Linux.
func DuplicateNumber(fd int) (*os.File, error) { return nil, unsupportedError("F_DUPFD_CLOEXEC") }

// FileOf returns an error that wraps [errors.ErrUnsupported]: adopting a descriptor of foreign
// code, which f would open, needs Linux.
func FileOf(name string, f func() (fd int, err error)) (*os.File, error) {
	return nil, unsupportedError("O_CLOEXEC")
}
