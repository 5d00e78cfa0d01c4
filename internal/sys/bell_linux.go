package sys

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Bell is a process's doorbell: a datagram socket on an abstract address, which vanishes with the
// process. Only one goroutine may wait on it. Any goroutine may call Close.
type Bell struct {
	sock  *os.File
	raw   syscall.RawConn
	drain func(fd uintptr) bool // created once, so that a wakeup allocates nothing
	buf   [8]byte
}

// ListenBell binds the abstract address @name. The caller must close the bell. The error wraps
// EADDRINUSE if another socket has the address.
func ListenBell(name string) (*Bell, error) {
	fd, err := datagramSocket()
	if err == nil {
		// The address is package syscall's, because unix's takes one byte less.
		if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@" + name}); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create doorbell %s: %w", name, err)
	}
	sock := newFile(fd, "doorbell")
	raw, err := sock.SyscallConn()
	if err != nil {
		sock.Close()
		return nil, fmt.Errorf("create doorbell %s: %w", name, err)
	}
	b := &Bell{sock: sock, raw: raw}
	b.drain = b.drainDatagrams
	return b, nil
}

// Wait blocks in Go's poller until a datagram has arrived since the last Wait, and consumes all
// pending datagrams. So many wakeups may end one Wait. A datagram may also come from an unrelated
// process, so the caller must check its condition after Wait. After Close, Wait returns
// [os.ErrClosed]. Wait allocates nothing.
func (b *Bell) Wait() error { return pollError(b.raw.Read(b.drain)) }

// drainDatagrams consumes all pending datagrams and reports whether there was at least one. Any
// error but EAGAIN also ends the wait: the caller then checks the shared memory, and a broken
// socket is reported by the next Wait.
func (b *Bell) drainDatagrams(fd uintptr) (rung bool) {
	for {
		_, err := unix.Read(int(fd), b.buf[:])
		switch err {
		case nil:
			rung = true
		case unix.EINTR:
		case unix.EAGAIN:
			return rung
		default:
			return true
		}
	}
}

// Close closes the bell and ends a Wait in progress.
func (b *Bell) Close() error { return b.sock.Close() }

// A BellAddr is the address of a bell in the kernel's form, built once per peer.
type BellAddr struct {
	raw struct { // struct sockaddr_un
		family uint16
		path   [108]byte
	}
	len uint32
}

// NewBellAddr returns the address of the bell with the given name. It panics if the name has more
// than 107 bytes.
func NewBellAddr(name string) BellAddr {
	var a BellAddr
	if len(name) > len(a.raw.path)-1 {
		panic("sys: doorbell name exceeds 107 bytes")
	}
	a.raw.family = unix.AF_UNIX
	copy(a.raw.path[1:], name) // path[0] stays 0: an abstract address
	a.len = uint32(unsafe.Offsetof(a.raw.path)) + 1 + uint32(len(name))
	return a
}

// A Ringer wakes processes by their bells. All methods may be called concurrently.
type Ringer struct {
	mu sync.RWMutex // held for reading while fd is in use
	fd int          // -1 after Close
}

// NewRinger returns a Ringer, which owns one unbound socket. The caller must close it.
func NewRinger() (*Ringer, error) {
	fd, err := datagramSocket()
	if err != nil {
		return nil, err
	}
	reportOpened(fd)
	return &Ringer{fd: fd}, nil
}

// datagramSocket returns a socket without an address.
func datagramSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("create datagram socket: %w", err)
	}
	return fd, nil
}

// Ring wakes the process that waits on the bell. It never blocks and allocates nothing. A full
// queue means that a wakeup is pending, and a missing bell means that there is no process to wake,
// so Ring returns nil in both cases. After Close it returns [os.ErrClosed].
func (r *Ringer) Ring(addr *BellAddr) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.fd < 0 {
		return os.ErrClosed
	}
	errno := sendDatagram(r.fd, addr)
	if errno != unix.EAGAIN {
		return bellError(errno)
	}
	return resendWakeup(addr)
}

// resendWakeup sends the wakeup again from a new socket. EAGAIN has two causes. Either the bell's
// queue is full, or our own send buffer is full of datagrams that other, sleeping or stopped
// processes have not received yet. In the second case the wakeup would be lost. A new socket has an
// empty send buffer, so its result distinguishes the two causes.
func resendWakeup(addr *BellAddr) error {
	fd, err := datagramSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	errno := sendDatagram(fd, addr)
	if errno == unix.EAGAIN {
		return nil
	}
	return bellError(errno)
}

func bellError(errno syscall.Errno) error {
	switch errno {
	case 0, unix.ECONNREFUSED, unix.ENOENT:
		return nil
	}
	return fmt.Errorf("ring doorbell: %w", errno)
}

var ding = [1]byte{1}

// sendDatagram sends one datagram. A raw system call is appropriate because the socket never
// blocks.
func sendDatagram(fd int, addr *BellAddr) syscall.Errno {
	for {
		// The pointers must be converted in the argument list, which keeps their targets in place
		// during the call.
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&ding)), 1,
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&addr.raw)), uintptr(addr.len))
		if errno != unix.EINTR {
			return errno
		}
	}
}

// Close closes the socket.
func (r *Ringer) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fd < 0 {
		return nil
	}
	fd := r.fd
	r.fd = -1
	return unix.Close(fd)
}
