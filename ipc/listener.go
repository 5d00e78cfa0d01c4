package ipc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/internal/link"
	"github.com/shoal-mp/shoal/internal/sys"
)

// Errors of Listen and Dial. Test for them with [errors.Is].
var (
	// ErrKey is returned if the two sides have different keys.
	ErrKey = link.ErrKey
	// ErrPeer is returned by Dial if the peer is not a Listener, or has another protocol version.
	ErrPeer = link.ErrPeer
	// ErrShared is returned by [Conn.Send] between two domains for a value that cannot be copied,
	// such as a queue, a lock or a file.
	ErrShared = errors.New("ipc: the peer does not share memory or descriptors with this process")
)

func init() { codec.RegisterError("ipc.ErrShared", ErrShared) }

// meetingTime limits the handshake and the setup of a connection.
const meetingTime = 10 * time.Second

// A Listener accepts connections from processes that are not related by their start. It is made
// by [Listen] or [ListenWith], and its connections carry values of type T. All methods may be
// called from several goroutines.
type Listener[T any] struct {
	key    []byte
	opts   MeetingOptions
	sock   link.Listener
	scheme string          // scheme of the socket's addresses; empty on this machine
	joins  *arena.Listener // nil if the domain cannot be joined

	ctx       context.Context
	end       context.CancelFunc
	done      sync.WaitGroup
	strangers *sys.Strangers
	met       chan *Conn[T]

	mu   sync.Mutex
	next *Conn[T] // found by Poll, returned by the next Accept
}

// Listen listens for processes that call [Dial] with the same key. The caller must close the
// listener. It returns [ErrKey] if key is empty, and wire.ErrType if values of type T cannot be
// sent to other processes.
//
// For processes of this machine, addr is "@" and a name, or the path of a socket file. An abstract
// name disappears with the process. Close removes the socket file, and Listen replaces the file of
// a process that was killed. Only processes of the same user are accepted; [ListenWith] can accept
// others. The proof of the key covers the process ids of both sides, so that a process in the
// middle cannot relay it; between different PID namespaces this protection is not available.
//
// For other machines, addr is "tcp://" and a host and port, such as "tcp://:7000", or "tcp://:0"
// for a free port. The program must import package ipc/tcp. Access depends on the key. With
// [ListenWith] and tcp.Options, it may depend on certificates as well.
func Listen[T any](addr string, key []byte) (*Listener[T], error) {
	return ListenWith[T](addr, key, MeetingOptions{})
}

// ListenWith is like [Listen] with the given options.
func ListenWith[T any](addr string, key []byte, opts MeetingOptions) (*Listener[T], error) {
	if len(key) == 0 {
		return nil, fmt.Errorf("listen: %w: key is empty", ErrKey)
	}
	if err := codec.Check[T](); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l := &Listener[T]{key: key, opts: opts, strangers: sys.NewStrangers(sys.MostStrangers),
		met: make(chan *Conn[T])}
	t, host, err := transportFor(addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if t != nil {
		return l, l.listenRemote(t, host)
	}
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	sock, err := sys.ListenAnew(addr)
	if err != nil {
		return nil, err
	}
	l.sock = sock
	if l.joins, err = d.Listen(arena.ListenOptions{}); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(err, sock.Close())
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.done.Go(func() { sys.Accept(sock.Accept, l.startHandshake) })
	return l, nil
}

// Addr returns the address for [Dial]. An unspecified address such as "tcp://[::]:7000" stands for
// all addresses of this machine.
func (l *Listener[T]) Addr() string { return l.scheme + l.sock.Addr() }

// Accept waits for a process that proves the key and returns the connection. The caller must close
// the connection. Accept returns [ErrClosed] after Close, and [ErrEmpty] with
// [context.DeadlineExceeded] if the deadline of ctx expires.
func (l *Listener[T]) Accept(ctx context.Context) (*Conn[T], error) {
	l.mu.Lock()
	c := l.next
	l.next = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	select {
	case c := <-l.met: // an available connection wins over a done ctx
		return c, nil
	default:
	}
	select {
	case c := <-l.met:
		return c, nil
	case <-l.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, contextError(ctx, "accept", ErrEmpty)
	}
}

// Poll blocks until Accept would not block, and then returns nil; another Accept may take the
// connection first. It returns [ErrClosed] or the error of ctx.
func (l *Listener[T]) Poll(ctx context.Context) error {
	c, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	return l.storeConn(c)
}

// storeConn keeps c for the next Accept. If the listener is closed, it closes c and returns
// [ErrClosed]. The caller must not use c afterwards.
func (l *Listener[T]) storeConn(c *Conn[T]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil: // Close may have run already
		return errors.Join(ErrClosed, c.Close())
	case l.next != nil: // another Poll was faster
		l.done.Go(func() { l.deliverConn(c) })
	default:
		l.next = c
	}
	return nil
}

// Close stops the listener and waits until the handshakes in progress have ended. Blocked calls
// of Accept get [ErrClosed]. Accepted connections remain open; connections that no Accept has
// returned are closed. It is idempotent.
func (l *Listener[T]) Close() error {
	l.mu.Lock()
	l.end() // storeConn stores nothing from here on
	l.mu.Unlock()
	err := l.sock.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if l.joins != nil {
		err = errors.Join(err, l.joins.Close())
	}
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next != nil {
		err = errors.Join(err, l.next.Close())
		l.next = nil
	}
	return err
}

func (l *Listener[T]) startHandshake(c *sys.Conn) {
	uid, _, err := sys.PeerUID(c)
	if err == nil {
		err = l.opts.checkUser(c)
	}
	if err != nil {
		c.Close()
		return
	}
	l.strangers.Enter(c, uid)
	l.done.Go(func() {
		stop := context.AfterFunc(l.ctx, func() { c.Close() })
		conn, err := l.handshakeLocal(c)
		if !stop() && err == nil {
			conn.Close()
			return
		}
		if err != nil {
			c.Close() // the peer sees the end of the stream
			return
		}
		l.deliverConn(conn)
	})
}

func (l *Listener[T]) deliverConn(c *Conn[T]) {
	select {
	case l.met <- c:
	case <-l.ctx.Done():
		c.Close()
	}
}
