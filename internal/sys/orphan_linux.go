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

// An Orphanage ends this process when one of its ancestors has died.
type Orphanage struct {
	fds   []unix.PollFd
	grace unix.Timespec
	wake  uintptr
	code  uintptr
}

// NewOrphanage watches lifelines: read ends of pipes whose write ends exist only in the ancestors.
// When a lifeline hangs up, the Orphanage shuts down the reading side of the socket wake, so that a
// goroutine that reads from it learns of the death. After grace the process exits with code,
// whatever its other threads do.
func NewOrphanage(lifelines []int, wake int, grace time.Duration, code int) (*Orphanage, error) {
	o := &Orphanage{grace: unix.NsecToTimespec(int64(grace)), wake: uintptr(wake), code: uintptr(code)}
	for _, fd := range lifelines {
		o.fds = append(o.fds, unix.PollFd{Fd: int32(fd)}) // a hang-up is reported unasked
	}
	if len(o.fds) == 0 {
		return nil, fmt.Errorf("watch lifelines: %w", unix.EINVAL)
	}
	// The watching is tried once here, where an error can still be returned. It cannot fail in
	// another way than by EINTR.
	if err := retry(func() error { _, err := unix.Ppoll(o.fds, &unix.Timespec{}, nil); return err }); err != nil {
		return nil, fmt.Errorf("watch lifelines: %w", missing("ppoll", err))
	}
	return o, nil
}

// The runtime keeps this name stable for other users that need a thread without the scheduler.
//
//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

// Watch blocks for ever. Call it on a goroutine of its own, locked to its thread.
//
// Note [Watching without a P]: a goroutine that comes back from a system call must first get a P.
// With GOMAXPROCS=1 the only P may be inside a second of assembly, which nothing preempts. So this
// thread gives its P away before it waits, and never asks for one again. From there to the exit it
// makes raw system calls only, on memory that was laid out before, and grows no stack.
//
//go:nosplit
//go:norace
func (o *Orphanage) Watch() {
	// Neither moves: both are on the heap, because o came from NewOrphanage. Neither goes away,
	// because each loop keeps o. Without that the collector would find o dead here, and after a
	// signal the kernel reads and writes the memory once more.
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
		// The kernel writes the time that is left into grace, so a signal does not prolong it.
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

// GoesOnAsOrphan has a child go on when this process dies, if it is stopped then: so it comes to
// see that an ancestor has died. SIGCONT does nothing to a child that runs, so it does no harm that
// the kernel sends it also when the thread ends that has started the child.
func GoesOnAsOrphan() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGCONT} }

// EndsWithThread has a child get SIGTERM when the thread ends that has started it, as at the latest
// with this process. With a process group of its own, the signals of a terminal reach this process
// alone. The caller starts it on a locked thread, and waits for it there.
func EndsWithThread(ownGroup bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: ownGroup}
}

// EndedByBrokenPipe reports whether a process ended because nobody read what it wrote.
func EndedByBrokenPipe(p *os.ProcessState) bool {
	w, ok := p.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGPIPE
}

// SignalGroup sends a signal to a process that leads a process group, and to all of the group.
func SignalGroup(p *os.Process, sig syscall.Signal) error { return syscall.Kill(-p.Pid, sig) }
