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
// process. One goroutine waits on it; Close may be called from any.
type Bell struct {
	sock  *os.File
	raw   syscall.RawConn
	drain func(fd uintptr) bool // built once, so that a wake allocates nothing
	buf   [8]byte
}

// ListenBell binds the abstract address @name. The error wraps EADDRINUSE where somebody has it
// already.
func ListenBell(name string) (*Bell, error) {
	fd, err := datagramSocket()
	if err == nil {
		// That of package syscall, because unix's takes one byte less.
		if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@" + name}); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hang doorbell %s: %w", name, err)
	}
	sock := os.NewFile(uintptr(fd), "doorbell")
	raw, err := sock.SyscallConn()
	if err != nil {
		sock.Close()
		return nil, fmt.Errorf("hang doorbell %s: %w", name, err)
	}
	b := &Bell{sock: sock, raw: raw}
	b.drain = b.takeAll
	return b, nil
}

// Wait blocks in Go's poller until the bell has been rung since the last Wait, and takes all rings
// that are pending: many may end one Wait. A ring may also come from a stranger, so what was waited
// for must be checked after it. After Close the error is os.ErrClosed. It allocates nothing.
func (b *Bell) Wait() error { return pollError(b.raw.Read(b.drain)) }

// takeAll reports whether at least one datagram was there. Any error but "empty" ends the wait too:
// the next look at the shared memory decides, and a broken socket shows up at the next Wait.
func (b *Bell) takeAll(fd uintptr) (rung bool) {
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

// Close takes the bell down and ends a Wait that is under way.
func (b *Bell) Close() error { return b.sock.Close() }

// A BellAddr is the address of a bell in the kernel's form, built once per peer.
type BellAddr struct {
	raw struct { // struct sockaddr_un
		family uint16
		path   [108]byte
	}
	len uint32
}

// NewBellAddr returns the address of the bell that was hung as name, which may have at most 107
// bytes.
func NewBellAddr(name string) BellAddr {
	var a BellAddr
	if len(name) > len(a.raw.path)-1 {
		panic("sys: the name of a bell has more than 107 bytes")
	}
	a.raw.family = unix.AF_UNIX
	copy(a.raw.path[1:], name) // path[0] stays 0: an abstract address
	a.len = uint32(unsafe.Offsetof(a.raw.path)) + 1 + uint32(len(name))
	return a
}

// A Ringer rings bells. All methods may be called at the same time.
type Ringer struct {
	mu sync.RWMutex // held for reading while fd is in use
	fd int          // -1 after Close
}

// NewRinger returns a Ringer, which is one unbound socket. The caller closes it.
func NewRinger() (*Ringer, error) {
	fd, err := datagramSocket()
	if err != nil {
		return nil, err
	}
	return &Ringer{fd: fd}, nil
}

// datagramSocket makes a socket without an address.
func datagramSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make a datagram socket: %w", err)
	}
	return fd, nil
}

// Ring wakes the process that waits on the bell. It never blocks and allocates nothing. A bell
// whose queue is full has a wake pending, and a bell that is gone has nobody to wake: both are
// success. After Close the error is os.ErrClosed.
func (r *Ringer) Ring(addr *BellAddr) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.fd < 0 {
		return os.ErrClosed
	}
	errno := ring(r.fd, addr)
	if errno != unix.EAGAIN {
		return rungOr(errno)
	}
	return ringAfresh(addr)
}

// ringAfresh rings once more from a new socket. "Would block" means that the queue of the bell is
// full, or that our own send buffer is: it holds every datagram that other, sleeping or stopped,
// processes have not taken yet, and then this wake would be lost. A socket without such debts tells
// the two apart.
func ringAfresh(addr *BellAddr) error {
	fd, err := datagramSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	errno := ring(fd, addr)
	if errno == unix.EAGAIN {
		return nil
	}
	return rungOr(errno)
}

func rungOr(errno syscall.Errno) error {
	switch errno {
	case 0, unix.ECONNREFUSED, unix.ENOENT:
		return nil
	}
	return fmt.Errorf("ring a bell: %w", errno)
}

var ding = [1]byte{1}

// ring sends one datagram. A raw system call is right because the socket never blocks.
func ring(fd int, addr *BellAddr) syscall.Errno {
	for {
		// The pointers are converted in the argument list, which keeps what they point to in place
		// for the call.
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
