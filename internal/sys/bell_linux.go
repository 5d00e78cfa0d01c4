package sys

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Bell is a process's doorbell: a datagram socket on an abstract address, which vanishes with
// the process. [ListenBell] makes it. Other processes ring it with [Ringer.Ring], and each time
// send a note, a number that they choose. Only one goroutine may wait on it. Any goroutine may
// call Close.
type Bell struct {
	sock  *os.File
	raw   syscall.RawConn
	drain func(fd uintptr) bool // created once, so that a wakeup allocates nothing
	buf   [9]byte               // one byte more than a note, so that a longer datagram is detected
	notes []uint64              // received by the Wait in progress
}

// mostNotes is the maximum number of notes that one [Bell.Wait] returns.
const mostNotes = 64

// ListenBell binds the abstract address with the given name, which peers pass to [NewBellAddr].
// The caller must close the bell. The error wraps EADDRINUSE if another socket has the address.
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
	b := &Bell{sock: sock, raw: raw, notes: make([]uint64, 0, mostNotes)}
	b.drain = b.drainDatagrams
	return b, nil
}

// Wait blocks in Go's poller until a datagram has arrived since the last Wait. It consumes the
// pending datagrams, up to 64, and returns their notes, each one once. So many wakeups may end one
// Wait. A datagram may also come from an unrelated process, so the caller must check its conditions
// after Wait. A datagram that is not a note counts as the note 0. The returned slice is valid until
// the next Wait. After Close, Wait returns [os.ErrClosed]. Wait allocates nothing.
func (b *Bell) Wait() ([]uint64, error) {
	b.notes = b.notes[:0]
	err := pollError(b.raw.Read(b.drain))
	return b.notes, err
}

// drainDatagrams consumes pending datagrams and reports whether there was at least one. If it
// returns false, the poller goes on waiting. Any error but EAGAIN also ends the wait, with the
// note 0: the caller then checks the shared memory, and a broken socket is reported by the next
// Wait.
func (b *Bell) drainDatagrams(fd uintptr) (rung bool) {
	for len(b.notes) < mostNotes {
		n, err := unix.Read(int(fd), b.buf[:])
		switch err {
		case nil:
			b.addNote(b.buf[:n])
		case unix.EINTR:
		case unix.EAGAIN:
			return len(b.notes) > 0
		default:
			b.addNote(nil)
			return true
		}
	}
	return true
}

// addNote adds the note in a datagram to the notes of this Wait, unless it is among them
// already. A datagram that does not have 8 bytes counts as the note 0.
func (b *Bell) addNote(datagram []byte) {
	note := uint64(0)
	if len(datagram) == 8 {
		note = binary.NativeEndian.Uint64(datagram)
	}
	if !slices.Contains(b.notes, note) {
		b.notes = append(b.notes, note)
	}
}

// Close closes the bell and ends a Wait in progress.
func (b *Bell) Close() error { return b.sock.Close() }

// A BellAddr is the address of a bell in the kernel's form. [NewBellAddr] makes it. It should
// be made once per peer and reused, also by several goroutines.
type BellAddr struct {
	raw struct { // struct sockaddr_un
		family uint16
		path   [108]byte
	}
	len uint32
}

// NewBellAddr returns the address of the bell with the given name, as passed to [ListenBell].
// It panics if the name has more than 107 bytes.
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

// datagramSocket returns a non-blocking, close-on-exec Unix socket without an address. The
// caller must close it. With an error the descriptor is -1.
func datagramSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("create datagram socket: %w", err)
	}
	return fd, nil
}

// Ring wakes the process that waits on the bell, and sends it a note. It never blocks and
// allocates nothing. It returns full if the bell's queue is full: then wakeups are pending, but
// this note is not among them. full is also true, with an error, if Ring cannot find out. A
// missing bell means that there is no process to wake, which is not an error. After Close, Ring
// returns [os.ErrClosed].
func (r *Ringer) Ring(addr *BellAddr, note uint64) (full bool, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.fd < 0 {
		return false, os.ErrClosed
	}
	errno := sendDatagram(r.fd, addr, &note)
	if errno != unix.EAGAIN {
		return false, bellError(errno)
	}
	return resendWakeup(addr, &note)
}

// resendWakeup sends the wakeup again from a new socket, after EAGAIN, and returns the results
// of [Ringer.Ring]. EAGAIN has two causes. Either the bell's queue is full, or our own send
// buffer is full of datagrams that other, sleeping or stopped processes have not received yet.
// In the second case the wakeup would be lost. A new socket has an empty send buffer, so its
// result distinguishes the two causes.
func resendWakeup(addr *BellAddr, note *uint64) (full bool, err error) {
	fd, err := datagramSocket()
	if err != nil {
		return true, err
	}
	defer unix.Close(fd)
	errno := sendDatagram(fd, addr, note)
	if errno == unix.EAGAIN {
		return true, nil
	}
	return false, bellError(errno)
}

func bellError(errno syscall.Errno) error {
	switch errno {
	case 0, unix.ECONNREFUSED, unix.ENOENT:
		return nil
	}
	return fmt.Errorf("ring doorbell: %w", errno)
}

// sendDatagram sends one datagram with a note, and returns 0 or the error number. It is EAGAIN
// if the datagram would have to wait. A raw system call is appropriate because the socket never
// blocks. The caller must keep fd open meanwhile.
func sendDatagram(fd int, addr *BellAddr, note *uint64) syscall.Errno {
	for {
		// The pointers must be converted in the argument list, which keeps their targets in place
		// during the call.
		_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(note)), 8,
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&addr.raw)), uintptr(addr.len))
		if errno != unix.EINTR {
			return errno
		}
	}
}

// Close closes the socket. It is not an error to close a Ringer twice.
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
