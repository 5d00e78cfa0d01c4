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

// Note [No package net] These are the sockets of package net without its cost. If the machine has a
// C compiler, net makes every program dynamic, so each process loads the C library before its first
// statement, which takes 0.6 ms. A file with a non-blocking descriptor uses Go's poller just as
// well.

// A Conn is one end of a Unix stream socket between two processes of this machine. Its reads and
// writes block only the goroutine. All methods may be called concurrently.
type Conn struct{ file *os.File }

// Dial connects to the listener at addr, which is "@" and an abstract name, or the path of a
// socket. It waits only if the listener's backlog is full, until ctx ends. Then the error wraps
// EAGAIN and the cause of ctx. The caller must close the connection.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	// The kernel does not report when there is room again.
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

// SocketConn returns a connection for a socket that was made elsewhere. It takes ownership of f,
// even if it returns an error. The socket becomes non-blocking, for all its holders.
func SocketConn(f *os.File) (*Conn, error) {
	defer f.Close()
	var again int
	err := withDescriptor(f, func(fd int) (err error) {
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

// Pair returns the two ends of a new connection. ours is for this process. theirs is for a
// child process and is blocking, as programs expect. Both are close-on-exec. The caller must
// close both.
func Pair() (ours *Conn, theirs *os.File, err error) {
	a, theirs, err := BlockingPair()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = SocketConn(a); err != nil {
		theirs.Close()
		return nil, nil, fmt.Errorf("create socket pair: %w", err)
	}
	return ours, theirs, nil
}

// BlockingPair is [Pair] with two blocking ends, for system calls that wait. Neither is in Go's
// poller, so a message wakes no goroutine. The caller must close both.
func BlockingPair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("create socket pair: %w", err)
	}
	return newFile(fds[0], "connection"), newFile(fds[1], "connection"), nil
}

func newConn(fd int) *Conn { return &Conn{newFile(fd, "connection")} }

// streamSocket makes a non-blocking stream socket and binds or connects it to an address by
// use. The caller must close the descriptor. If use fails, streamSocket closes it and returns
// -1 and the error. The error wraps EINVAL if the address is empty.
func streamSocket(addr string, use func(fd int, sa syscall.Sockaddr) error) (int, error) {
	if addr == "" || addr == "@" {
		return -1, fmt.Errorf("address is empty: %w", unix.EINVAL) // the kernel would choose one
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := retryInterrupted(func() error { return use(fd, &syscall.SockaddrUnix{Name: addr}) }); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Read reads at least one byte. It returns [io.EOF] after the other end is closed for writing.
func (c *Conn) Read(b []byte) (int, error) { return c.file.Read(b) }

// Write writes all of b or returns an error.
func (c *Conn) Write(b []byte) (int, error) { return c.file.Write(b) }

// SetDeadline makes reads and writes fail from t on, with an error that wraps
// [os.ErrDeadlineExceeded]. The zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error { return c.file.SetDeadline(t) }

// SetReadDeadline is [Conn.SetDeadline] for reads only.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.file.SetReadDeadline(t) }

// SetWriteDeadline is [Conn.SetDeadline] for writes only.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.file.SetWriteDeadline(t) }

// SyscallConn returns access to the descriptor. It implements [syscall.Conn].
func (c *Conn) SyscallConn() (syscall.RawConn, error) { return c.file.SyscallConn() }

// Readable reports whether a read would return at once, because bytes have arrived or the other
// end is closed. It also returns true after Close.
func (c *Conn) Readable() bool {
	var readable bool
	err := withDescriptor(c, func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		readable = n > 0
		return err
	})
	return readable || err != nil
}

// CloseWrite closes the connection for writing. The other end reads [io.EOF] after all written
// bytes.
func (c *Conn) CloseWrite() error {
	err := withDescriptor(c, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_WR) })
	if err != nil {
		return fmt.Errorf("shut down writing: %w", err)
	}
	return nil
}

// Close closes the connection. Calls in progress, and later ones, return an error that wraps
// [os.ErrClosed].
func (c *Conn) Close() error { return c.file.Close() }

// A Listener accepts connections. All methods may be called concurrently.
type Listener struct {
	file *os.File
	addr string
	once sync.Once // guards the removal of the path
}

// Listen binds addr and listens on it. addr is "@" and an abstract name, which vanishes with the
// process, or a path, which [Listener.Close] removes. The error wraps EADDRINUSE if the address is
// taken. The caller must close the listener.
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

// ListenAnew is [Listen], but replaces a socket that a dead listener left at the path. The error
// wraps EADDRINUSE if a process listens there, if the path is not a socket, or if the lock of its
// directory stays taken.
func ListenAnew(addr string) (*Listener, error) {
	l, err := Listen(addr)
	if !errors.Is(err, unix.EADDRINUSE) || strings.HasPrefix(addr, "@") {
		return l, err
	}
	// The directory's lock must be held: if two processes take over at once, the second must not
	// remove the first one's socket.
	dir, e := os.Open(filepath.Dir(addr))
	if e != nil {
		return nil, err
	}
	defer dir.Close()
	if e := lockSoon(dir); e != nil {
		return nil, fmt.Errorf("%w: check whether another program listens there: %w", err, e)
	}
	if info, e := os.Lstat(addr); e == nil && info.Mode().Type() != os.ModeSocket {
		return nil, fmt.Errorf("%w: it is not a socket", err)
	}
	if hasListener(addr) {
		return nil, fmt.Errorf("%w: another program listens there", err)
	}
	if e := os.Remove(addr); e != nil && !errors.Is(e, fs.ErrNotExist) {
		return nil, e
	}
	l, err = Listen(addr)
	// a program that found no path did not take the lock
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another program listens there", err)
	}
	return l, err
}

// takeoverTime is the time to wait for the lock of a directory. Each user with read access to the
// directory can take the lock, and keep it.
var takeoverTime = 5 * time.Second

// lockSoon is [LockFile], but waits for the lock for at most takeoverTime.
func lockSoon(f *os.File) error {
	for end := time.Now().Add(takeoverTime); ; time.Sleep(time.Millisecond) {
		err := LockFile(f)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(end) {
			return err
		}
	}
}

// hasListener reports whether the socket at path has a listener. It returns true if it cannot
// find out. It connects with another socket type: the kernel refuses the type before the
// listener learns of it, and refuses the connection if there is no listener:
// https://github.com/torvalds/linux/blob/v6.12/net/unix/af_unix.c.
func hasListener(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
	return !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT)
}

// ListenerOn returns a listener for a socket that already listens at addr. It takes ownership of f,
// even if it returns an error. The socket becomes non-blocking, for all its holders, and gets the
// same backlog as by [Listen].
func ListenerOn(f *os.File, addr string) (*Listener, error) {
	defer f.Close()
	var again int
	err := withDescriptor(f, func(fd int) (err error) {
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

// Addr returns the address, as passed to [Listen], [ListenAnew] or [ListenerOn].
func (l *Listener) Addr() string { return l.addr }

// Accept waits for the next connection, which the caller must close. After Close the error wraps
// [os.ErrClosed].
func (l *Listener) Accept() (*Conn, error) {
	raw, err := l.file.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	fd := -1
	err = retryWhenReady(raw.Read, func(s int) (err error) {
		fd, _, err = unix.Accept4(s, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	return newConn(fd), nil
}

// Close closes the listener and removes its path. An Accept in progress returns an error that wraps
// [os.ErrClosed].
func (l *Listener) Close() error {
	if !strings.HasPrefix(l.addr, "@") {
		// must come first: a program that finds the path must be able to connect
		l.once.Do(func() { unix.Unlink(l.addr) })
	}
	return l.file.Close()
}
