//go:build !linux

package sys

import "os"

// An OpenWatch detects the opening of files. It needs Linux: [NewOpenWatch] returns an error on
// other systems.
type OpenWatch struct{}

// NewOpenWatch returns an error that wraps [errors.ErrUnsupported]: watching the opening of
// files needs Linux.
func NewOpenWatch() (*OpenWatch, error) { return nil, unsupportedError("inotify") }

// Add returns an error that wraps [errors.ErrUnsupported]: watching the opening of files needs
// Linux.
func (w *OpenWatch) Add(f *os.File) (id int, err error) { return 0, unsupportedError("inotify") }

// Remove does nothing: watching the opening of files needs Linux.
func (w *OpenWatch) Remove(id int) {}

// Close returns an error that wraps [errors.ErrUnsupported]: watching the opening of files
// needs Linux.
func (w *OpenWatch) Close() error { return unsupportedError("inotify") }

// Opened does nothing and does not call opened: watching the opening of files needs Linux.
func (w *OpenWatch) Opened(opened func(id int)) {}

// OpenElsewhere returns true and an error that wraps [errors.ErrUnsupported]: finding other
// openings of a file needs Linux.
func OpenElsewhere(f *os.File) (open bool, err error) { return true, unsupportedError("F_SETLEASE") }

// A FileID identifies a file while a process has it open.
type FileID struct{ Device, Inode uint64 }

// Identify returns an error that wraps [errors.ErrUnsupported]: reading the identity of a file
// needs Linux.
func Identify(f *os.File) (id FileID, size int64, err error) { return id, 0, unsupportedError("fstat") }
