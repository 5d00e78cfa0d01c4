//go:build !linux

package sys

import "os"

// MemoryFilesOf needs Linux.
func MemoryFilesOf(pid int, prefix string) ([]*os.File, error) { return nil, unsupportedError("/proc") }

// MapReadOnly needs Linux.
func MapReadOnly(f *os.File, size int) ([]byte, error) { return nil, unsupportedError("mmap") }

// Sealed returns false: fixing the size of a file needs Linux.
func Sealed(f *os.File) bool { return false }

// Backed needs Linux.
func Backed(f *os.File, off int64) int64 { return 0 }

// Inode needs Linux.
func Inode(f *os.File) (uint64, error) { return 0, unsupportedError("fstat") }
