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
// process. One goroutine waits on it. Any goroutine may call Close.
type Bell struct {
	sock  *os.File
	raw   syscall.RawConn
	drain func(fd uintptr) bool // built once, so that a wake allocates nothing
	buf   [8]byte
}

// ListenBell binds the abstract address @name. The error wraps EADDRINUSE if another socket has the
// address.
func ListenBell(name string) (*Bell, error) {
	fd, err := datagramSocket()
	if err == nil {
		// The address is package syscall's, because unix's takes one byte less.
		if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: "@" + name}); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("hang doorbell %s: %w", name, err)
	}
	sock := newFile(fd, "doorbell")
	raw, err := sock.SyscallConn()
	if err != nil {
		sock.Close()
		return nil, fmt.Errorf("hang doorbell %s: %w", name, err)
	}
	b := &Bell{sock: sock, raw: raw}
	b.drain = b.takeAll
	return b, nil
}

// Wait blocks in Go's poller until a datagram has come since the last Wait, and takes all datagrams
// that are pending. So many wakes may end one Wait. A datagram may also come from a stranger, so
// the caller must check its condition after Wait. After Close the error is os.ErrClosed. Wait
// allocates nothing.
func (b *Bell) Wait() error { return pollError(b.raw.Read(b.drain)) }

// takeAll reports whether at least one datagram was there. Any error but "empty" ends the wait as
// well. The next look at the shared memory decides, and a broken socket shows up at the next Wait.
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

// NewBellAddr returns the address of the bell with this name, which may have at most 107 bytes.
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

// A Ringer wakes processes by their bells. All methods may be called at the same time.
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
	opened(fd)
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
// whose queue is full has a wake pending, and a bell that is gone has no process to wake. Both are
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

// ringAfresh sends once more from a new socket. "Would block" has two causes. The queue of the bell
// may be full. Or our own send buffer may be full of datagrams that other processes, asleep or
// stopped, have not taken yet, and then this wake would be lost. A new socket has an empty send
// buffer, so it tells the two causes apart.
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
