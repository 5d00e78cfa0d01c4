//go:build !linux

package sys

import "os"

// Memfd needs Linux.
func Memfd(name string) (*os.File, error) { return nil, unsupportedError("memfd_create") }

// Resize needs Linux.
func Resize(f *os.File, size int64) error { return unsupportedError("ftruncate") }

// Seal needs Linux.
func Seal(f *os.File) error { return unsupportedError("F_ADD_SEALS") }

// Map needs Linux.
func Map(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// MapPrivate needs Linux.
func MapPrivate(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Populate needs Linux.
func Populate(b []byte) {}

// Forget does nothing: the pages stay until the mapping ends.
func Forget(b []byte) {}

func isResident([]byte) bool { return true }

// Unmap needs Linux.
func Unmap(b []byte) error { return unsupportedError("munmap") }

func wantHugePages([]byte) {}

// ProtectNone returns an error that wraps [errors.ErrUnsupported]: making b inaccessible needs
// Linux.
func ProtectNone(b []byte) error { return unsupportedError("mprotect") }

// ProtectReadWrite needs Linux.
func ProtectReadWrite(b []byte) error { return unsupportedError("mprotect") }

// Commit needs Linux.
func Commit(f *os.File, off, n int64) error { return unsupportedError("fallocate") }

// Punch needs Linux.
func Punch(f *os.File, off, n int64) error { return unsupportedError("fallocate") }

// Allocated needs Linux.
func Allocated(f *os.File) (bytes int64, err error) { return 0, unsupportedError("fstat") }

// Reopen needs Linux.
func Reopen(f *os.File) (*os.File, error) { return nil, unsupportedError("/proc/self/fd") }
