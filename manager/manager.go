package manager

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
)

// A Manager is this process's connection to a server of objects. It can be sent to other processes,
// which can then create objects as well. All methods may be called from several goroutines. The
// zero Manager is closed.
type Manager struct {
	c       *client
	stop    func() error // ends the server; nil if this process has not started it
	closed  atomic.Bool
	gateway gateway
}

func newManager(c *client) *Manager { return &Manager{c: c} }

// New starts a server on goroutines of this process and returns when it is ready. The server ends
// when ctx is done, at Close, and with this process. The caller must close the manager.
func New(ctx context.Context) (*Manager, error) {
	s, err := newServer(ctx)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.serveLanes() }()
	m, err := s.openManager()
	if err != nil {
		s.end()
		return nil, errors.Join(fmt.Errorf("manager: %w", err), <-ended)
	}
	m.stop = func() error { s.end(); return <-ended }
	return m, nil
}

// serve is the registered entry point of a server process.
var serve = shoal.Register("shoal manager", func(ctx context.Context, _ int, back *ipc.Sender[*Manager]) error {
	s, err := newServer(ctx)
	if err != nil {
		return err
	}
	m, err := s.openManager()
	if err == nil {
		err = errors.Join(back.Put(ctx, m), back.Close(), m.Close())
	}
	if err != nil {
		s.end()
	}
	return errors.Join(err, s.serveLanes())
})

// Start starts a server in a new process and returns when it is ready. The server ends when ctx is
// done, at Close, and with this process. The caller must close the manager.
func Start(ctx context.Context) (*Manager, error) {
	q, err := ipc.NewQueue[*Manager](1)
	if err != nil {
		return nil, fmt.Errorf("manager: %w", err)
	}
	defer q.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: 1})
	p := serve.Go(g, q.Sender())
	if err := q.Sender().Close(); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	m, err := q.Get(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("manager: start the server: %w", err), g.Close())
	}
	m.c.mu.Lock()
	m.c.how = p.Wait
	m.c.mu.Unlock()
	m.stop = g.Close
	return m, nil
}

// Close ends the server if m was returned by [New] or [Start]; then the calls of all its proxies
// in this process return [ErrClosed]. Otherwise it only closes m, and existing proxies remain
// usable. Later methods of m return [ErrClosed]. If Close ends the server, it waits for that and
// returns the server's error. Close is idempotent.
func (m *Manager) Close() error {
	if m.c == nil || m.closed.Swap(true) {
		return nil
	}
	if m.stop != nil {
		m.c.abortCalls(ErrClosed)
	}
	m.c.dropUse()
	if m.stop != nil {
		return m.stop()
	}
	return nil
}

// PID returns the process id of the server, or 0 if it is on another machine.
func (m *Manager) PID() int {
	if m.c == nil {
		return 0
	}
	return m.c.pid
}

func (m *Manager) openClient() (*client, error) {
	if m == nil || m.c == nil || m.closed.Load() {
		return nil, ErrClosed
	}
	return m.c, m.c.failureError()
}

// createObject creates an object of a kind in the server and returns its proxy, which the caller
// must close. It releases args, also after an error.
func (m *Manager) createObject(ctx context.Context, kind *kind, args ...argument) (p proxy, err error) {
	c, err := m.openClient()
	if err != nil {
		releaseArgs(args)
		return p, err
	}
	req := serverCreate.newRequest(nil)
	req.Left = kind.create.remainingTime(ctx)
	a := c.invokeMethod(ctx, req, nil, append([]argument{encodeArg(kind.name)}, args...))
	if a.err != nil {
		return p, fmt.Errorf("new %s: %w", kind.name, a.err)
	}
	if len(a.items) != 1 {
		return p, errors.Join(codec.ErrFormat, a.noResult())
	}
	err = unpackWith(c, a.items[0], p.decodeForm)
	return p, err
}

// managerTags describes the encoding: [server, pid, accept, alive].
var managerTags = &codec.Tags{Type: "manager", Fields: []int{4}}

// marshalWire encodes the manager. Close of the received manager does not end the server.
func (m *Manager) marshalWire(e *codec.Encoder) error {
	c, err := m.openClient()
	if err != nil {
		return fmt.Errorf("send manager: %w", err)
	}
	if c.accept == 0 {
		return fmt.Errorf("send manager of another machine: %w", ErrShared)
	}
	e.Tag(managerTags, 0)
	e.Bytes(c.server[:])
	e.Int(int64(c.pid))
	e.Block(c.accept)
	e.Block(c.alive)
	return e.Err()
}

// unmarshalWire decodes a manager, which has its own use of this process's client for the
// server. It returns [ErrShared] if the manager was sent from another machine.
func (m *Manager) unmarshalWire(d *codec.Decoder) error {
	if err := d.OnlyTag(managerTags); err != nil {
		return err
	}
	var a address
	server, err := d.Bytes()
	if err != nil {
		return err
	}
	if len(server) != len(a.server) {
		return fmt.Errorf("%w: server id has %d bytes, want 16", codec.ErrFormat, len(server))
	}
	copy(a.server[:], server)
	pid, err := d.Int()
	if err != nil {
		return err
	}
	a.pid = int(pid)
	if a.accept, err = d.Block(); err != nil {
		return err
	}
	if a.alive, err = d.Block(); err != nil {
		return errors.Join(err, releaseBlocks([4]arena.Handle{a.accept}))
	}
	if isFar(a.accept) || isFar(a.alive) {
		return fmt.Errorf("receive manager: %w", ErrShared)
	}
	if m.c, err = acquireClient(a); err != nil {
		return err
	}
	d.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			m.Close()
		}
	}))
	return nil
}
