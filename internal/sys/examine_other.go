//go:build !linux

package sys

import "os"

// MemoryFilesOf returns an error that wraps [errors.ErrUnsupported]: opening the memory files
// of another process needs Linux.
func MemoryFilesOf(pid int, prefix string) ([]*os.File, error) { return nil, unsupportedError("/proc") }

// MapReadOnly returns an error that wraps [errors.ErrUnsupported]: mapping a file needs Linux.
func MapReadOnly(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Sealed returns false: fixing the size of a file needs Linux.
func Sealed(f *os.File) bool { return false }

// Backed returns 0: finding the backed bytes of a file needs Linux.
func Backed(f *os.File, off int64) int64 { return 0 }

// Inode returns an error that wraps [errors.ErrUnsupported]: reading the inode number of a file
// needs Linux.
func Inode(f *os.File) (uint64, error) { return 0, unsupportedError("fstat") }
