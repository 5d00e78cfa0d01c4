//go:build !linux

package sys

import "os"

// Memfd returns an error that wraps [errors.ErrUnsupported]: a memory file needs Linux.
func Memfd(name string) (*os.File, error) { return nil, unsupportedError("memfd_create") }

// Resize returns an error that wraps [errors.ErrUnsupported]: resizing a memory file needs
// Linux.
func Resize(f *os.File, size int64) error { return unsupportedError("ftruncate") }

// Seal returns an error that wraps [errors.ErrUnsupported]: fixing the size of a file needs
// Linux.
func Seal(f *os.File) error { return unsupportedError("F_ADD_SEALS") }

// Map returns an error that wraps [errors.ErrUnsupported]: mapping a file needs Linux.
func Map(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// MapPrivate returns an error that wraps [errors.ErrUnsupported]: mapping a file needs Linux.
func MapPrivate(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Populate does nothing: making pages present in advance needs Linux.
func Populate(b []byte) {}

// Forget does nothing: the pages stay until the mapping ends.
func Forget(b []byte) {}

func isResident([]byte) bool { return true }

// Unmap returns an error that wraps [errors.ErrUnsupported]: a mapping of [Map] needs Linux.
func Unmap(b []byte) error { return unsupportedError("munmap") }

func wantHugePages([]byte) {}

// ProtectNone returns an error that wraps [errors.ErrUnsupported]: making b inaccessible needs
// Linux.
func ProtectNone(b []byte) error { return unsupportedError("mprotect") }

// ProtectReadWrite returns an error that wraps [errors.ErrUnsupported]: changing the protection
// of memory needs Linux.
func ProtectReadWrite(b []byte) error { return unsupportedError("mprotect") }

// Commit returns an error that wraps [errors.ErrUnsupported]: backing a file with pages needs
// Linux.
func Commit(f *os.File, off, n int64) error { return unsupportedError("fallocate") }

// Punch returns an error that wraps [errors.ErrUnsupported]: returning the pages of a file
// needs Linux.
func Punch(f *os.File, off, n int64) error { return unsupportedError("fallocate") }

// Allocated returns an error that wraps [errors.ErrUnsupported]: counting the pages of a file
// needs Linux.
func Allocated(f *os.File) (bytes int64, err error) { return 0, unsupportedError("fstat") }

// Reopen returns an error that wraps [errors.ErrUnsupported]: a second open file description
// needs Linux.
func Reopen(f *os.File) (*os.File, error) { return nil, unsupportedError("/proc/self/fd") }
