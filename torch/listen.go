package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A stream is what a connection is made of: a socket or a pipe.
type stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Dial connects to a multiprocessing.connection.Listener: network is "unix", with the path of a socket or "@" and an abstract
// name, or "tcp", with host and port. The caller closes the connection. The error wraps ErrAuth where the keys differ.
func Dial(ctx context.Context, network, addr string, opts Options) (*Conn, error) {
	s, err := dialStream(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, s, opts, func(rw io.ReadWriter, key []byte) error { return authClient(rw, key) })
}

func dialStream(ctx context.Context, network, addr string) (stream, error) {
	if network == "unix" {
		return dialUnix(ctx, sys.Dial, addr)
	}
	if network != "tcp" {
		return nil, fmt.Errorf("dial %s %s: the networks are unix and tcp", network, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// dialUnix waits where the listener has more callers than it takes at once: of Python's up to 3.12 the third has to.
func dialUnix(ctx context.Context, dial func(addr string) (*sys.Conn, error), addr string) (*sys.Conn, error) {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		c, err := dial(addr)
		if !errors.Is(err, syscall.EAGAIN) {
			return c, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// handshake authenticates a stream, if there is a key, and makes it a connection. On an error it is closed.
func handshake(ctx context.Context, s stream, opts Options, auth func(io.ReadWriter, []byte) error) (*Conn, error) {
	c := newConn(s, opts)
	if len(opts.AuthKey) == 0 {
		return c, nil
	}
	if err := c.within(ctx, both(s), func() error { return auth(s, opts.AuthKey) }); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// A Listener is multiprocessing.connection's Listener.
type Listener struct {
	opts   Options
	addr   string
	accept func() (stream, error)
	close  func() error
}

// Listen begins to listen; see Dial for the addresses. The caller closes the listener, which removes the path.
func Listen(network, addr string, opts Options) (*Listener, error) {
	switch network {
	case "unix":
		l, err := sys.Listen(addr)
		if err != nil {
			return nil, err
		}
		return &Listener{opts: opts, addr: addr, accept: func() (stream, error) { return l.Accept() }, close: l.Close}, nil
	case "tcp":
		l, err := net.Listen(network, addr)
		if err != nil {
			return nil, err
		}
		return &Listener{opts: opts, addr: l.Addr().String(), accept: func() (stream, error) { return l.Accept() }, close: l.Close}, nil
	}
	return nil, fmt.Errorf("listen at %s %s: the networks are unix and tcp", network, addr)
}

// Addr returns the address; for "tcp" with the port that was chosen.
func (l *Listener) Addr() string { return l.addr }

// Accept waits for the next connection that authenticates itself, which the caller closes. Those that do not, or not within
// ten seconds, are closed and passed over. After Close the error wraps os.ErrClosed; ctx does not end Accept before that.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	for {
		s, err := l.accept()
		if errors.Is(err, net.ErrClosed) {
			err = os.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		soon, cancel := context.WithTimeout(ctx, patience)
		c, err := handshake(soon, s, l.opts, authServer)
		cancel()
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// patience is how long whoever connects may take for what takes microseconds.
const patience = 10 * time.Second

// Close ends the listener, and Accept. Connections stay.
func (l *Listener) Close() error { return l.close() }

// fromPython returns the address of a socket as Python has it: a str or bytes, which begins with NUL where it is abstract.
func fromPython(addr any) (string, error) {
	var s string
	switch a := addr.(type) {
	case string:
		s = a
	case []byte:
		s = string(a)
	default:
		return "", protocolError("a socket's address is %T", addr)
	}
	if name, abstract := strings.CutPrefix(s, "\x00"); abstract {
		return "@" + name, nil
	}
	if strings.HasPrefix(s, "@") {
		return "./" + s, nil
	}
	return s, nil
}
