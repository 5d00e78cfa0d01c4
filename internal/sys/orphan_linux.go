package sys

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An Orphanage ends this process when one of its ancestors has died. [NewOrphanage] makes it,
// and [Orphanage.Watch] starts it.
type Orphanage struct {
	fds   []unix.PollFd
	grace unix.Timespec
	wake  uintptr
	code  uintptr
}

// NewOrphanage returns an Orphanage that watches lifelines: read ends of pipes with write ends
// that only the ancestors have. When a lifeline hangs up, the Orphanage shuts down the reading
// side of the socket wake, so that a goroutine reading from it learns of the death. After grace
// the process exits with code, regardless of its other threads. The descriptors must stay open.
// [Orphanage.Watch] must be called to start watching. The error wraps EINVAL if there are no
// lifelines.
func NewOrphanage(lifelines []int, wake int, grace time.Duration, code int) (*Orphanage, error) {
	o := &Orphanage{grace: unix.NsecToTimespec(int64(grace)), wake: uintptr(wake), code: uintptr(code)}
	for _, fd := range lifelines {
		o.fds = append(o.fds, unix.PollFd{Fd: int32(fd)}) // a hang-up is reported unasked
	}
	if len(o.fds) == 0 {
		return nil, fmt.Errorf("watch lifelines: %w", unix.EINVAL)
	}
	// ppoll is called once here, where an error can still be returned. Later it can fail only with
	// EINTR.
	err := retryInterrupted(func() error {
		_, err := unix.Ppoll(o.fds, &unix.Timespec{}, nil)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch lifelines: %w", wrapMissingCall("ppoll", err))
	}
	return o, nil
}

// entersyscallblock releases the P of the calling goroutine, as before a system call that
// blocks. The runtime keeps this name stable for other users that need a thread without the
// scheduler.
//
//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

// Watch blocks until an ancestor dies, and then ends the process. It never returns. It must be
// called on a goroutine of its own, locked to its thread.
//
// Note [Watching without a P]: a goroutine that returns from a system call must first get a P.
// With GOMAXPROCS=1 the only P may be executing a second of assembly, which cannot be
// preempted. So this thread releases its P before it waits, and never asks for one again:
// https://github.com/golang/go/blob/go1.24.0/src/runtime/proc.go. From there to the exit it
// must make only raw system calls, on memory prepared in advance, and must not grow its stack.
//
//go:nosplit
//go:norace
func (o *Orphanage) Watch() {
	// Neither address moves: both are on the heap, because o came from NewOrphanage. Neither is
	// freed, because each loop keeps o alive. Otherwise the collector would find o dead here, and
	// after a signal the kernel reads and writes the memory again.
	fds, grace := uintptr(unsafe.Pointer(&o.fds[0])), uintptr(unsafe.Pointer(&o.grace))
	n, wake, code := uintptr(len(o.fds)), o.wake, o.code
	entersyscallblock()
	for {
		_, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, fds, n, 0, 0, 0, 0)
		runtime.KeepAlive(o)
		if errno != unix.EINTR {
			break
		}
	}
	syscall.RawSyscall(unix.SYS_SHUTDOWN, wake, unix.SHUT_RD, 0)
	for {
		// The kernel writes the remaining time into grace, so a signal does not prolong it.
		_, _, errno := syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, grace, 0, 0, 0)
		runtime.KeepAlive(o)
		if errno != unix.EINTR {
			break
		}
	}
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, code, 0, 0)
	}
}

// GoesOnAsOrphan returns the attributes of a child that gets SIGCONT when this process dies, so
// that a stopped child goes on and can detect that an ancestor has died:
// https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html. The kernel also sends the
// signal when the thread that started the child ends, which does no harm: SIGCONT has no effect
// on a running child.
func GoesOnAsOrphan() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT} }

// EndsWithThread returns the attributes of a child that gets SIGTERM when the thread that started
// it ends, at the latest with this process. If ownGroup is true, the child gets its own process
// group, so that the signals of a terminal reach only this process. The caller must start the child
// on a locked thread, and must wait for it there.
func EndsWithThread(ownGroup bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: ownGroup}
}

// EndedByBrokenPipe reports whether a process was killed by SIGPIPE, because its output had no
// reader.
func EndedByBrokenPipe(p *os.ProcessState) bool {
	w, ok := p.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGPIPE
}

// SignalGroup sends a signal to the process group that p leads.
func SignalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }
