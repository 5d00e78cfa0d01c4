package sys

import (
	"os"
	"sync/atomic"
	"syscall"
)

// onOpen is the hook of [OnOpen]. It is nil except in test binaries.
var onOpen atomic.Pointer[func(fd int)]

// OnOpen makes this package call hook with each descriptor that it opens or receives from now on,
// on the goroutine that opens it. Descriptors that are closed before they reach the caller may be
// left out. hook may be called from several goroutines concurrently. A nil hook ends the calls.
func OnOpen(hook func(fd int)) {
	if hook == nil {
		onOpen.Store(nil)
		return
	}
	onOpen.Store(&hook)
}

// reportOpened calls the hook of [OnOpen], if there is one.
func reportOpened(fd int) {
	if hook := onOpen.Load(); hook != nil {
		(*hook)(fd)
	}
}

// Opened reports descriptors that the caller has opened without this package to the hook of
// [OnOpen].
func Opened(files ...syscall.Conn) {
	if onOpen.Load() == nil {
		return
	}
	for _, f := range files {
		if raw, err := f.SyscallConn(); err == nil {
			raw.Control(func(fd uintptr) { reportOpened(int(fd)) })
		}
	}
}

// newFile returns a file that owns fd, a descriptor that this package has opened, and reports
// fd to the hook of [OnOpen].
func newFile(fd int, name string) *os.File {
	reportOpened(fd)
	return os.NewFile(uintptr(fd), name)
}
