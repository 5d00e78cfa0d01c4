package sys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// An OpenWatch detects the opening of files, including unnamed ones, which it watches through
// /proc. The caller must close it. All methods but Close may be called concurrently.
type OpenWatch struct {
	mu sync.Mutex
	fd int
}

// NewOpenWatch returns an OpenWatch that watches no files yet.
func NewOpenWatch() (*OpenWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch file opens: %w", err)
	}
	reportOpened(fd)
	return &OpenWatch{fd: fd}, nil
}

// Add watches f, and returns the number that identifies f in [OpenWatch.Opened]. It needs /proc.
func (w *OpenWatch) Add(f *os.File) (id int, err error) {
	err = withDescriptor(f, func(fd int) error {
		id, err = unix.InotifyAddWatch(w.fd, fmt.Sprintf("/proc/self/fd/%d", fd), unix.IN_OPEN)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("watch opens of %s: %w", f.Name(), err)
	}
	return id, nil
}

// Remove ends the watch of the file with the number that [OpenWatch.Add] returned.
func (w *OpenWatch) Remove(id int) { unix.InotifyRmWatch(w.fd, uint32(id)) }

// Close ends the watch of all files. No other method may be called at the same time or
// afterwards.
func (w *OpenWatch) Close() error { return unix.Close(w.fd) }

// Opened calls opened with the number of each file that was opened since the last call, on the
// calling goroutine. It does not wait. opened must not call Opened. The kernel may report
// several consecutive openings as one: https://man7.org/linux/man-pages/man7/inotify.7.html.
func (w *OpenWatch) Opened(opened func(id int)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var buf [4096]byte
	for {
		n, err := unix.Read(w.fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < unix.SizeofInotifyEvent {
			return
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			id, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			if mask&unix.IN_OPEN != 0 {
				opened(int(id))
			}
			b = b[min(len(b), unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:]))):]
		}
	}
}

// OpenElsewhere reports whether an open file description other than f's, in this or another
// process, can write to the file. A mapping without a descriptor counts. If there is an error, open
// is true. f must come from [Reopen], because the kernel does not count the description made by
// memfd_create: https://github.com/torvalds/linux/blob/v6.12/fs/locks.c.
func OpenElsewhere(f *os.File) (open bool, err error) {
	err = withDescriptor(f, func(fd int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		}
		return err
	})
	if errors.Is(err, unix.EAGAIN) {
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("find processes that have %s open: %w", f.Name(), err)
	}
	return false, nil
}

// A FileID identifies a file while a process has it open.
type FileID struct{ Device, Inode uint64 }

// Identify returns the identity of f, and its size in bytes.
func Identify(f *os.File) (id FileID, size int64, err error) {
	err = withDescriptor(f, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			return fmt.Errorf("stat %s: %w", f.Name(), err)
		}
		id, size = FileID{uint64(st.Dev), st.Ino}, st.Size
		return nil
	})
	return id, size, err
}
