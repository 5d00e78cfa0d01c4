package sys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Note [No package net] These are the sockets of package net without its cost. With a C compiler on
// the machine, net makes every program dynamic, so that each process loads the C library before its
// first statement, 0.6 ms. A file on a non-blocking descriptor is in Go's poller just as well.

// A Conn is one end of a connection between two processes of this machine, a Unix stream socket.
// Its reads and writes park only the goroutine. All methods may be called at the same time.
type Conn struct{ file *os.File }

// Dial connects to the listener at addr: "@" and an abstract name, or the path of a socket. It
// waits only if the listener has no room for more callers, and until ctx ends. Then the error wraps
// EAGAIN and the cause of that end. The caller closes the connection.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	// the kernel does not tell when there is room again
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		fd, err := streamSocket(addr, syscall.Connect)
		if err == nil {
			return newConn(fd), nil
		}
		err = fmt.Errorf("connect to %s: %w", addr, err)
		if !errors.Is(err, unix.EAGAIN) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// SocketConn makes a connection of a socket that came from elsewhere. It owns the socket from then
// on, even after an error. The socket becomes non-blocking, for all who have it.
func SocketConn(f *os.File) (*Conn, error) {
	defer f.Close()
	var again int
	err := control(f, func(fd int) (err error) {
		if again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.SetNonblock(again, true)
	})
	if err != nil {
		return nil, fmt.Errorf("use %s as a socket: %w", f.Name(), err)
	}
	return newConn(again), nil
}

// Pair returns the ends of a new connection: ours, and one for a child process, which blocks, as
// programs expect. The caller closes both.
func Pair() (ours *Conn, theirs *os.File, err error) {
	a, theirs, err := BlockingPair()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = SocketConn(a); err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	return ours, theirs, nil
}

// BlockingPair is Pair with two ends for system calls that wait. Neither is in Go's poller, so a
// message wakes no goroutine.
func BlockingPair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a pair of sockets: %w", err)
	}
	return newFile(fds[0], "connection"), newFile(fds[1], "connection"), nil
}

func newConn(fd int) *Conn { return &Conn{newFile(fd, "connection")} }

// streamSocket makes a socket and gives it an address by bind or connect.
func streamSocket(addr string, use func(fd int, sa syscall.Sockaddr) error) (int, error) {
	if addr == "" || addr == "@" {
		return -1, fmt.Errorf("no address: %w", unix.EINVAL) // the kernel would choose one
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := retry(func() error { return use(fd, &syscall.SockaddrUnix{Name: addr}) }); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Read reads at least one byte. It returns io.EOF once the other end is closed for writing.
func (c *Conn) Read(b []byte) (int, error) { return c.file.Read(b) }

// Write writes all of b or returns an error.
func (c *Conn) Write(b []byte) (int, error) { return c.file.Write(b) }

// SetDeadline ends reads and writes at t, with os.ErrDeadlineExceeded; the zero time means never.
func (c *Conn) SetDeadline(t time.Time) error { return c.file.SetDeadline(t) }

// SetReadDeadline is SetDeadline for reads alone.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// SetWriteDeadline is SetDeadline for writes alone.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.file.SetWriteDeadline(t) }

// SyscallConn gives access to the descriptor.
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.file.SyscallConn() }

// Readable reports whether a read would not wait: bytes are there, or the other end is closed.
func (c *Conn) Readable() bool {
	var readable bool
	err := control(c, func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		readable = n > 0
		return err
	})
	return readable || err != nil
}

// CloseWrite lets the other end read to the end of what was written.
func (c *Conn) CloseWrite() error {
	err := control(c, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	if err != nil {
		return fmt.Errorf("end the writing: %w", err)
	}
	return nil
}

// Close ends the connection. Calls on it that are under way return os.ErrClosed.
func (c *Conn) Close() error { return c.file.Close() }

// A Listener accepts connections. All methods may be called at the same time.
type Listener struct {
	file *os.File
	addr string
	once sync.Once // of removing a path
}

// Listen binds addr: "@" and an abstract name, which is gone with the process, or a path, which
// Close removes. The error wraps EADDRINUSE if the address is taken. The caller closes the
// listener.
func Listen(addr string) (*Listener, error) {
	fd, err := streamSocket(addr, func(fd int, sa syscall.Sockaddr) error {
		if err := syscall.Bind(fd, sa); err != nil {
			return err
		}
		return unix.Listen(fd, unix.SOMAXCONN)
	})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", addr, err)
	}
	return &Listener{file: newFile(fd, addr), addr: addr}, nil
}

// ListenAnew is Listen that takes the place of a socket whose listener has ended without removing
// its path. If a process listens there, or the path is no socket, or somebody keeps the lock of its
// directory, the error wraps EADDRINUSE.
func ListenAnew(addr string) (*Listener, error) {
	l, err := Listen(addr)
	if !errors.Is(err, unix.EADDRINUSE) || strings.HasPrefix(addr, "@") {
		return l, err
	}
	// its lock: of two that take over at once the second must not remove the first one's socket
	dir, e := os.Open(filepath.Dir(addr))
	if e != nil {
		return nil, err
	}
	defer dir.Close()
	if e := lockSoon(dir); e != nil {
		return nil, fmt.Errorf("%w: to see whether anybody listens there: %w", err, e)
	}
	if info, e := os.Lstat(addr); e == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%w: it is no socket", err)
	}
	if bound(addr) {
		return nil, fmt.Errorf("%w: another program listens there", err)
	}
	if e := os.Remove(addr); e != nil && !errors.Is(e, fs.ErrNotExist) {
		return nil, e
	}
	l, err = Listen(addr)
	if errors.Is(err, unix.EADDRINUSE) { // a program that found no path did not come for the lock
		return nil, fmt.Errorf("%w: another program listens there", err)
	}
	return l, err
}

// takeoverTime is how long others may have the lock of a directory. Each user who may read the
// directory can take it, and keep it.
var takeoverTime = 5 * time.Second

// lockSoon is LockFile that waits for others, but not for ever.
func lockSoon(f *os.File) error {
	for end := time.Now().Add(takeoverTime); ; time.Sleep(time.Millisecond) {
		err := LockFile(f)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

// bound reports whether a living socket has a path. A socket of another type is refused for its
// type before its listener hears of it. Without a listener the connection is refused.
func bound(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	return !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT)
}

// ListenerOn makes a listener of a socket that listens at addr already. It owns the socket from
// then on, even after an error. The socket becomes non-blocking, for all who have it, and has room
// for as many callers as one of Listen.
func ListenerOn(f *os.File, addr string) (*Listener, error) {
	defer f.Close()
	var again int
	err := control(f, func(fd int) (err error) {
		if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
			return err
		}
		if again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.SetNonblock(again, true)
	})
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", addr, err)
	}
	return &Listener{file: newFile(again, addr), addr: addr}, nil
}

// Addr returns the address, as given to Listen.
func (l *Listener) Addr() string { return l.addr }

// Accept waits for the next connection, which the caller closes. After Close the error wraps
// os.ErrClosed.
func (l *Listener) Accept() (*Conn, error) {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	fd := -1
	err = poll(raw.Read, func(s int) (err error) {
		fd, _, err = unix.Accept4(s, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	return newConn(fd), nil
}

// Close ends the listener. An Accept that is under way returns os.ErrClosed.
func (l *Listener) Close() error {
	if !strings.HasPrefix(l.addr, "@") {
		l.once.Do(func() { unix.Unlink(l.addr) }) // first: a program that finds the path can connect
	}
	return l.file.Close()
}
