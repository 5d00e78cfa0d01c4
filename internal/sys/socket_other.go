//go:build !linux

package sys

import (
	"context"
	"os"
	"time"
)

// A Conn needs Linux. No value of it can be made on other systems.
type Conn struct{}

// Dial needs Linux.
func Dial(ctx context.Context, addr string) (*Conn, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Read needs Linux.
func (c *Conn) Read(b []byte) (int, error) { return 0, unsupportedError("an abstract socket address") }

// Write needs Linux.
func (c *Conn) Write(b []byte) (int, error) { return 0, unsupportedError("an abstract socket address") }

// SocketConn needs Linux.
func SocketConn(f *os.File) (*Conn, error) { return nil, unsupportedError("a socket in Go's poller") }

// Pair needs Linux.
func Pair() (ours *Conn, theirs *os.File, err error) {
	return nil, nil, unsupportedError("a pair of sockets")
}

// BlockingPair needs Linux.
func BlockingPair() (a, b *os.File, err error) {
	return nil, nil, unsupportedError("a pair of sockets")
}

// SetDeadline needs Linux.
func (c *Conn) SetDeadline(t time.Time) error { return unsupportedError("an abstract socket address") }

// SetReadDeadline needs Linux.
func (c *Conn) SetReadDeadline(t time.Time) error {
	return unsupportedError("an abstract socket address")
}

// SetWriteDeadline needs Linux.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	return unsupportedError("an abstract socket address")
}

// Readable needs Linux.
func (c *Conn) Readable() bool { return false }

// CloseWrite needs Linux.
func (c *Conn) CloseWrite() error { return unsupportedError("an abstract socket address") }

// Close needs Linux.
func (c *Conn) Close() error { return unsupportedError("an abstract socket address") }

// A Listener needs Linux. No value of it can be made on other systems.
type Listener struct{}

// Listen needs Linux.
func Listen(addr string) (*Listener, error) {
	return nil, unsupportedError("an abstract socket address")
}

// ListenAnew needs Linux.
func ListenAnew(addr string) (*Listener, error) { return Listen(addr) }

// ListenerOn needs Linux.
func ListenerOn(f *os.File, addr string) (*Listener, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Addr returns "".
func (l *Listener) Addr() string { return "" }

// Accept needs Linux.
func (l *Listener) Accept() (*Conn, error) {
	return nil, unsupportedError("an abstract socket address")
}

// Close needs Linux.
func (l *Listener) Close() error { return unsupportedError("an abstract socket address") }
