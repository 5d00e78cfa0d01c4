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

// How two processes fail to meet. Test for them with errors.Is.
var (
	// ErrKey is returned when the two sides do not have the same key.
	ErrKey = link.ErrKey
	// ErrPeer is returned by Dial when what answers is no Listener, or of another version.
	ErrPeer = link.ErrPeer
	// ErrShared is returned by the Send of a value on a Conn between two domains if a copy of it
	// would be something else, as with a queue, a lock, or a file.
	ErrShared = errors.New("ipc: shared memory and descriptors do not reach the other side")
)

func init() { codec.RegisterError("ipc.ErrShared", ErrShared) }

// meetingTime is how long a caller has to prove the key and to join.
const meetingTime = 10 * time.Second

// A Listener is where processes that were not started by each other meet. Its methods may be called
// by several goroutines.
type Listener[T any] struct {
	key    []byte
	who    []meetingOption
	sock   link.Listener
	scheme string          // of sock's addresses; empty on this machine
	joins  *arena.Listener // nil if the domain cannot be joined

	ctx       context.Context
	end       context.CancelFunc
	done      sync.WaitGroup
	strangers *sys.Strangers
	met       chan *Conn[T]

	mu   sync.Mutex
	next *Conn[T] // that Poll has found
}

// Listen lets other processes connect by Dial if they know the key. The caller closes the listener.
//
// For processes of this machine, addr is "@" and a name, which is gone with the process, or the
// path of a socket, which Close removes; what a killed process has left there is removed by Listen.
// They are processes of this user, or of any with AnyUser. The proof of the key is of no use to a
// process that only passes it on, unless the two that meet are in different PID namespaces.
//
// For other machines addr is "tcp://" and the address, such as "tcp://:7000", or "tcp://:0" for a
// free port, in programs that import package ipc/tcp. There the key decides, and certificates if
// tcp.Options ask for them: no machine knows the users of another, and AnyUser changes nothing.
func Listen[T any](addr string, key []byte, who ...meetingOption) (*Listener[T], error) {
	if len(key) == 0 {
		return nil, fmt.Errorf("listen: %w: it is empty", ErrKey)
	}
	if err := codec.Check[T](); err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l := &Listener[T]{key: key, who: who, strangers: sys.NewStrangers(sys.MostStrangers),
		met: make(chan *Conn[T])}
	t, host, err := transport(addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if t != nil {
		return l, l.listenFar(t, host)
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
	l.done.Go(func() { sys.Accept(sock.Accept, l.meet) })
	return l, nil
}

// Addr returns the address for Dial. Of one on other machines, "tcp://[::]:7000" stands for each
// address that this machine has.
func (l *Listener[T]) Addr() string { return l.scheme + l.sock.Addr() }

// Accept waits for a process that proves the key, and returns the connection with it, which the
// caller closes.
func (l *Listener[T]) Accept(ctx context.Context) (*Conn[T], error) {
	l.mu.Lock()
	c := l.next
	l.next = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	select {
	case c := <-l.met: // who is there is there, also if ctx has ended
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

// Poll waits until an Accept would not wait. The error is ErrClosed, or that of ctx.
func (l *Listener[T]) Poll(ctx context.Context) error {
	c, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	return l.keep(c)
}

// keep has the next Accept return c.
func (l *Listener[T]) keep(c *Conn[T]) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.ctx.Err() != nil: // Close may have been here already
		return errors.Join(ErrClosed, c.Close())
	case l.next != nil: // somebody else polls as well
		l.done.Go(func() { l.deliver(c) })
	default:
		l.next = c
	}
	return nil
}

// Close ends the listener, not the connections that were accepted. It is idempotent.
func (l *Listener[T]) Close() error {
	l.mu.Lock()
	l.end() // nothing is kept from here on
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

func (l *Listener[T]) meet(c *sys.Conn) {
	uid, _, err := sys.PeerUID(c)
	if err == nil {
		err = welcome(c, l.who)
	}
	if err != nil {
		c.Close()
		return
	}
	l.strangers.Enter(c, uid)
	l.done.Go(func() {
		stop := context.AfterFunc(l.ctx, func() { c.Close() })
		conn, err := l.greet(c)
		if !stop() && err == nil {
			conn.Close()
			return
		}
		if err != nil {
			c.Close() // it is the caller's matter, which sees the stream end
			return
		}
		l.deliver(conn)
	})
}

func (l *Listener[T]) deliver(c *Conn[T]) {
	select {
	case l.met <- c:
	case <-l.ctx.Done():
		c.Close()
	}
}
