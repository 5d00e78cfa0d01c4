//go:build !linux

package sys

import "os"

// An OpenWatch needs Linux.
type OpenWatch struct{}

// NewOpenWatch needs Linux.
func NewOpenWatch() (*OpenWatch, error) { return nil, unsupportedError("inotify") }

// Add needs Linux.
func (w *OpenWatch) Add(f *os.File) (id int, err error) { return 0, unsupportedError("inotify") }

// Remove needs Linux.
func (w *OpenWatch) Remove(id int) {}

// Close needs Linux.
func (w *OpenWatch) Close() error { return unsupportedError("inotify") }

// Opened needs Linux.
func (w *OpenWatch) Opened(opened func(id int)) {}

// OpenElsewhere needs Linux.
func OpenElsewhere(f *os.File) (open bool, err error) { return true, unsupportedError("F_SETLEASE") }

// A FileID identifies a file while a process has it open.
type FileID struct{ Device, Inode uint64 }

// Identify needs Linux.
func Identify(f *os.File) (id FileID, size int64, err error) { return id, 0, unsupportedError("fstat") }
