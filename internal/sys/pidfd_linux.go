package sys

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Pidfd is a handle to one process. It never refers to a later process with the same number. All
// methods may be called concurrently.
type Pidfd struct {
	file  *os.File
	watch sync.Once
	ended chan struct{} // closed when the watcher returns; err is set before
	err   error
}

// OpenPidfd returns a handle to the process pid, which must be running or not reaped yet. The
// caller must close it. A caller that is not the parent of pid must verify by other means that the
// number still refers to the same process; see [StartTime]. OpenPidfd returns an error that wraps a
// [*MissingCallError] if the kernel has no pidfd_open:
// https://man7.org/linux/man-pages/man2/pidfd_open.2.html.
func OpenPidfd(pid int) (*Pidfd, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err == unix.EINVAL { // before Linux 5.10
		fd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("open process %d: %w", pid, wrapMissingCall("pidfd_open", err))
	}
	return newPidfd(fd)
}

// newPidfd returns a Pidfd that owns fd. It makes fd non-blocking, so that os.NewFile adds it
// to Go's poller. If that fails, it closes fd.
func newPidfd(fd int) (*Pidfd, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make pidfd non-blocking: %w", err)
	}
	return &Pidfd{file: newFile(fd, "pidfd"), ended: make(chan struct{})}, nil
}

// Wait returns nil when the process has ended. It blocks no thread, only the goroutine. If ctx
// is done before, it returns the cause of ctx, and if p is closed, an error that wraps
// [os.ErrClosed]. From the first call on there is one more goroutine, which ends with the
// process or with Close. Wait does not reap the process.
func (p *Pidfd) Wait(ctx context.Context) error {
	p.watch.Do(func() { go p.awaitEnd() })
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitEnd waits in Go's poller until the process has ended or p is closed. It then sets p.err
// and closes p.ended. It must run in a goroutine of its own, because a raw read holds the
// descriptor's read lock: two Waits would queue behind each other and could not be cancelled.
func (p *Pidfd) awaitEnd() {
	defer close(p.ended)
	raw, err := p.file.SyscallConn()
	if err != nil {
		p.err = fmt.Errorf("wait for process: %w", err)
		return
	}
	err = retryWhenReady(raw.Read, func(fd int) error {
		ended, err := isReadable(fd)
		if err == nil && !ended {
			err = unix.EAGAIN
		}
		return err
	})
	if err != nil {
		p.err = fmt.Errorf("wait for process: %w", err)
	}
}

// Exited reports whether the process has ended. A zombie has ended.
func (p *Pidfd) Exited() (ended bool, err error) {
	err = withDescriptor(p.file, func(fd int) error {
		ended, err = isReadable(fd)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("query process: %w", err)
	}
	return ended, nil
}

// Signal sends sig to the process. The error wraps [os.ErrProcessDone] if the process has been
// reaped.
func (p *Pidfd) Signal(sig syscall.Signal) error {
	err := withDescriptor(p.file, func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
	if err == unix.ESRCH {
		err = os.ErrProcessDone
	}
	if err != nil {
		return fmt.Errorf("send %v: %w", sig, err)
	}
	return nil
}

// File returns the descriptor, which may be sent with [SendFiles]. p keeps its ownership, so the
// caller must not close it.
func (p *Pidfd) File() *os.File { return p.file }

// PidfdFromFile returns a Pidfd for a descriptor received by [RecvFiles]. It takes ownership of
// f, even if it returns an error. The caller must close the Pidfd.
func PidfdFromFile(f *os.File) (*Pidfd, error) {
	defer f.Close()
	var fd int
	err := withDescriptor(f, func(old int) (err error) {
		fd, err = unix.FcntlInt(uintptr(old), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("duplicate pidfd: %w", err)
	}
	return newPidfd(fd)
}

// Close closes the handle. Every Wait on it returns an error that wraps [os.ErrClosed]. The process
// is not affected.
func (p *Pidfd) Close() error { return p.file.Close() }

// isReadable reports, without waiting, whether a descriptor is readable.
func isReadable(fd int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	var n int
	err := retryInterrupted(func() (err error) {
		n, err = unix.Poll(fds, 0)
		return err
	})
	return n > 0, err
}
