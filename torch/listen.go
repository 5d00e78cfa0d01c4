package torch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
)

// A stream is the socket or the end of a pipe that carries a [Conn]. Close may be called during
// the other methods.
type stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Dial connects to a multiprocessing.connection.Listener. The network must be "unix" or "tcp". For
// "unix", addr is the path of a socket, or "@" followed by an abstract name; for "tcp" it is
// "host:port". The error wraps [ErrAuth] if the authkeys differ. The caller must close the
// connection.
func Dial(ctx context.Context, network, addr string, opts Options) (*Conn, error) {
	s, err := dialStream(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, s, opts, func(rw io.ReadWriter, key []byte) error { return authClient(rw, key) })
}

func dialStream(ctx context.Context, network, addr string) (stream, error) {
	if network == "unix" {
		return sys.Dial(ctx, addr)
	}
	if network != "tcp" {
		return nil, fmt.Errorf("dial %s %s: unknown network, want unix or tcp", network, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// handshake returns a connection over s. If opts has a key, it first authenticates the peer with
// auth. It closes s if the handshake fails. The error is [context.Cause] if ctx is done first.
func handshake(ctx context.Context, s stream, opts Options, auth func(io.ReadWriter, []byte) error) (*Conn, error) {
	c := newConn(s, opts)
	if len(opts.AuthKey) == 0 {
		return c, nil
	}
	if err := c.runWithin(ctx, setBothDeadlines(s), func() error { return auth(s, opts.AuthKey) }); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// A Listener is the counterpart of multiprocessing.connection.Listener. [Listen] makes it. Its
// methods may be called from several goroutines.
type Listener struct {
	opts      Options
	addr      string
	accept    func() (stream, error)
	close     func() error
	strangers *sys.Strangers // connections that are not authenticated yet
	waiting   chan struct{}  // a semaphore for connections that are not accepted yet
	met       chan *Conn
	ctx       context.Context // canceled by Close
	end       context.CancelFunc
	done      sync.WaitGroup
}

// maxWaiting is the number of authenticated connections that wait for [Listener.Accept], apart from
// those in their handshake. The kernel queues further ones.
const maxWaiting = 64

// Listen listens at an address in the form of [Dial]. For "unix", an empty address selects an
// abstract name, which disappears with the process. Listen replaces the socket file of a process
// that has ended. If a live process listens at the address, the error wraps [syscall.EADDRINUSE].
// The caller must close the listener, which removes the socket file.
func Listen(network, addr string, opts Options) (*Listener, error) {
	l := &Listener{opts: opts, strangers: sys.NewStrangers(sys.MostStrangers),
		waiting: make(chan struct{}, maxWaiting), met: make(chan *Conn)}
	switch network {
	case "unix":
		if addr == "" {
			addr = abstractName()
		}
		s, err := sys.ListenAnew(addr)
		if err != nil {
			return nil, err
		}
		l.addr, l.accept, l.close = addr, func() (stream, error) { return s.Accept() }, s.Close
	case "tcp":
		s, err := net.Listen(network, addr)
		if err != nil {
			return nil, err
		}
		l.addr, l.accept, l.close = s.Addr().String(), func() (stream, error) { return s.Accept() }, s.Close
	default:
		return nil, fmt.Errorf("listen at %s %s: unknown network, want unix or tcp", network, addr)
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.done.Go(func() { sys.Accept(l.acceptStream, l.authenticateConn) })
	return l, nil
}

// abstractName returns an abstract socket name that other processes cannot guess.
func abstractName() string { return fmt.Sprintf("@shoal-torch/%d/%s", os.Getpid(), rand.Text()) }

// Addr returns the address of the listener, for "tcp" with the port that the system chose. An
// abstract name starts with "@" in Go and with "\0" in Python.
func (l *Listener) Addr() string { return l.addr }

func (l *Listener) acceptStream() (stream, error) {
	s, err := l.accept()
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return s, err
}

// authenticateConn takes ownership of a new connection and authenticates it in a goroutine, so
// that a slow peer does not delay others. It blocks while maxWaiting, 64, authenticated
// connections wait for [Listener.Accept].
func (l *Listener) authenticateConn(s stream) {
	l.strangers.Enter(s, sourceOf(s))
	l.done.Go(func() {
		soon, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		c, err := handshake(soon, s, l.opts, authServer)
		l.strangers.Leave(s)
		if err == nil {
			l.deliverConn(c)
		}
	})
	if l.acquireSlot() {
		<-l.waiting
	}
}

// sourceOf returns the user ID of the peer of a Unix socket, as an int, or the host of a TCP
// peer, as a string. It returns nil for any other stream.
func sourceOf(s stream) any {
	switch s := s.(type) {
	case *sys.Conn:
		uid, _, _ := sys.PeerUID(s)
		return uid
	case net.Conn:
		host, _, _ := net.SplitHostPort(s.RemoteAddr().String())
		return host
	}
	return nil
}

// acquireSlot acquires one of the maxWaiting places for connections that wait to be accepted,
// and blocks until there is one. It returns false if the listener is closed first. Otherwise the
// caller must receive from l.waiting to release the place.
func (l *Listener) acquireSlot() bool {
	select {
	case l.waiting <- struct{}{}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// deliverConn passes an authenticated connection to [Listener.Accept], and blocks until it is
// accepted. It closes the connection if the listener is closed.
func (l *Listener) deliverConn(c *Conn) {
	if !l.acquireSlot() {
		c.Close()
		return
	}
	defer func() { <-l.waiting }()
	select {
	case l.met <- c:
	case <-l.ctx.Done():
		c.Close()
	}
}

// Accept returns the next authenticated connection. The caller must close it. A peer that does not
// authenticate within ten seconds is disconnected without delaying others. The error wraps
// [os.ErrClosed] after [Listener.Close], and is [context.Cause] if ctx is done first.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select {
	case c := <-l.met:
		return c, nil
	case <-l.ctx.Done():
		return nil, fmt.Errorf("accept: %w", os.ErrClosed)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// patience is the time limit for an exchange with a peer that should take microseconds.
const patience = 10 * time.Second

// Close closes the listener and makes Accept return. Accepted connections stay open; connections
// that were not accepted are closed. Close is idempotent.
func (l *Listener) Close() error {
	l.end()
	err := l.close()
	l.done.Wait()
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// fromPython converts a socket address from its form in Python, a str or bytes object that
// starts with NUL if the address is abstract, to the form of [Dial]. The error wraps
// [ErrProtocol] for a value of another type.
func fromPython(addr any) (string, error) {
	var s string
	switch a := addr.(type) {
	case string:
		s = a
	case []byte:
		s = string(a)
	default:
		return "", protocolError("socket address is %T, want a str, bytes or tuple", addr)
	}
	if name, abstract := strings.CutPrefix(s, "\x00"); abstract {
		return "@" + name, nil
	}
	if strings.HasPrefix(s, "@") {
		return "./" + s, nil
	}
	return s, nil
}
