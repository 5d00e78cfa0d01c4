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

// A stream is a socket or a pipe, under a connection.
type stream interface {
	io.ReadWriteCloser
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

// Dial connects to a multiprocessing.connection.Listener. With network "unix" addr is the path of a
// socket, or "@" and an abstract name; with "tcp" it is host and port. The caller closes the
// connection. The error wraps ErrAuth if the keys differ.
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
		return nil, fmt.Errorf("dial %s %s: the networks are unix and tcp", network, addr)
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// handshake authenticates a stream, if there is a key, and makes it a connection. On an error it
// closes the stream.
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

// A Listener is multiprocessing.connection's Listener. Several goroutines may call its methods.
type Listener struct {
	opts      Options
	addr      string
	accept    func() (stream, error)
	close     func() error
	strangers *sys.Strangers // those that have not authenticated themselves
	waiting   chan struct{}  // has room for connections that are not accepted yet
	met       chan *Conn
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	done      sync.WaitGroup
}

// maxWaiting is how many connections wait to be accepted, beside some that have just authenticated
// themselves. Further ones wait in the kernel.
const maxWaiting = 64

// Listen begins to listen at an address, which has the form of Dial's. With "unix" and "" it
// chooses an abstract name, which ends with the process. It takes over the path of a dead process's
// socket. If a living process listens there, the error wraps EADDRINUSE. The caller closes the
// listener, which removes the path.
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
		return nil, fmt.Errorf("listen at %s %s: the networks are unix and tcp", network, addr)
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.done.Go(func() { sys.Accept(l.next, l.meet) })
	return l, nil
}

// abstractName returns a name that no other process can guess.
func abstractName() string { return fmt.Sprintf("@shoal-torch/%d/%s", os.Getpid(), rand.Text()) }

// Addr returns the address, for "tcp" with the port that was chosen. An abstract name begins with
// "@" here and with "\0" in Python.
func (l *Listener) Addr() string { return l.addr }

func (l *Listener) next() (stream, error) {
	s, err := l.accept()
	if errors.Is(err, net.ErrClosed) {
		err = os.ErrClosed
	}
	return s, err
}

// meet authenticates the other side of a connection, in parallel with other connections. It waits
// while too many have not been accepted.
func (l *Listener) meet(s stream) {
	l.strangers.Enter(s, sourceOf(s))
	l.done.Go(func() {
		soon, cancel := context.WithTimeout(l.ctx, patience)
		defer cancel()
		c, err := handshake(soon, s, l.opts, authServer)
		l.strangers.Leave(s)
		if err == nil {
			l.deliver(c)
		}
	})
	if l.enter() {
		<-l.waiting
	}
}

// sourceOf returns the user or the host that has connected.
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

// enter waits for a place among those that wait to be accepted. It reports whether there is one
// before the listener is closed.
func (l *Listener) enter() bool {
	select {
	case l.waiting <- struct{}{}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// deliver gives a connection to Accept.
func (l *Listener) deliver(c *Conn) {
	if !l.enter() {
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

// Accept waits for the next connection that has authenticated itself. The caller closes the
// connection. The Listener closes a connection that does not authenticate itself within ten
// seconds. No other connection waits for it. After Close the error wraps os.ErrClosed. When ctx is
// done the error is the cause of ctx's end.
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

// patience is how long the other side may take for an answer that takes microseconds.
const patience = 10 * time.Second

// Close ends the listener, and Accept. Accepted connections stay open. Close closes connections
// that wait to be accepted. Close is idempotent.
func (l *Listener) Close() error {
	l.end()
	err := l.close()
	l.done.Wait()
	if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// fromPython returns the address of a socket from its form in Python: a str or bytes, which begins
// with NUL if the address is abstract.
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
