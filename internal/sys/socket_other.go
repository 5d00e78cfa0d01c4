//go:build !linux

package sys

import (
	"context"
	"os"
	"time"
)

// A Conn is one end of a Unix stream socket. It needs Linux: [Dial], [SocketConn] and [Pair]
// return an error on other systems.
type Conn struct{}

// Dial returns an error that wraps [errors.ErrUnsupported]: a connection of this package needs
// Linux.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Read returns an error that wraps [errors.ErrUnsupported]: a connection of this package needs
// Linux.
func (c *Conn) Read(b []byte) (int, error) { return 0, unsupportedError("an abstract socket address") }

// Write returns an error that wraps [errors.ErrUnsupported]: a connection of this package needs
// Linux.
func (c *Conn) Write(b []byte) (int, error) { return 0, unsupportedError("an abstract socket address") }

// SocketConn returns an error that wraps [errors.ErrUnsupported]: a connection of this package
// needs Linux.
func SocketConn(f *os.File) (*Conn, error) { return nil, unsupportedError("a socket in Go's poller") }

// Pair returns an error that wraps [errors.ErrUnsupported]: a connection of this package needs
// Linux.
func Pair() (ours *Conn, theirs *os.File, err error) {
	return nil, nil, unsupportedError("a pair of sockets")
}

// BlockingPair returns an error that wraps [errors.ErrUnsupported]: a pair of sockets needs
// Linux.
func BlockingPair() (a, b *os.File, err error) {
	return nil, nil, unsupportedError("a pair of sockets")
}

// SetDeadline returns an error that wraps [errors.ErrUnsupported]: a connection of this package
// needs Linux.
func (c *Conn) SetDeadline(t time.Time) error { return unsupportedError("an abstract socket address") }

// SetReadDeadline returns an error that wraps [errors.ErrUnsupported]: a connection of this
// package needs Linux.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return unsupportedError("an abstract socket address")
}

// SetWriteDeadline returns an error that wraps [errors.ErrUnsupported]: a connection of this
// package needs Linux.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return unsupportedError("an abstract socket address")
}

// Readable returns false: a connection of this package needs Linux.
func (c *Conn) Readable() bool { return false }

// CloseWrite returns an error that wraps [errors.ErrUnsupported]: a connection of this package
// needs Linux.
func (c *Conn) CloseWrite() error { return unsupportedError("an abstract socket address") }

// Close returns an error that wraps [errors.ErrUnsupported]: a connection of this package needs
// Linux.
func (c *Conn) Close() error { return unsupportedError("an abstract socket address") }

// A Listener accepts connections. It needs Linux: [Listen], [ListenAnew] and [ListenerOn]
// return an error on other systems.
type Listener struct{}

// Listen returns an error that wraps [errors.ErrUnsupported]: a listener of this package needs
// Linux.
func Listen(addr string) (*Listener, error) {
	return nil, unsupportedError("an abstract socket address")
}

// ListenAnew returns an error that wraps [errors.ErrUnsupported]: a listener of this package
// needs Linux.
func ListenAnew(addr string) (*Listener, error) { return Listen(addr) }

// ListenerOn returns an error that wraps [errors.ErrUnsupported]: a listener of this package
// needs Linux.
func ListenerOn(f *os.File, addr string) (*Listener, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Addr returns "".
func (l *Listener) Addr() string { return "" }

// Accept returns an error that wraps [errors.ErrUnsupported]: a listener of this package needs
// Linux.
func (l *Listener) Accept() (*Conn, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Close returns an error that wraps [errors.ErrUnsupported]: a listener of this package needs
// Linux.
func (l *Listener) Close() error { return unsupportedError("an abstract socket address") }
