package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// A server keeps the objects and executes the calls of its clients. It is made by newServer and
// runs in serveLanes. It shares only rings with its clients: accept, which receives hellos; a
// beacon that goes out when the server dies; a beacon per object that goes out with its last
// proxy; and the lanes.
type server struct {
	d     *arena.Domain
	id    [16]byte
	gate  gate
	alive *beacon
	light arena.Handle // token of alive, held only by the server

	accept             *arena.Ring
	senders, receivers arena.Handle // tokens of accept

	ctx  context.Context
	end  context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	objects  map[uint64]*object
	named    map[arena.Handle]uint64 // object ids by the blocks of their proxies
	last     uint64                  // last object id
	names    map[string]item         // published values
	sessions map[[16]byte]*session
}

// helloRoom is the maximum number of queued hellos.
const helloRoom = 64

func newServer(ctx context.Context) (_ *server, err error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	s := &server{d: d, objects: make(map[uint64]*object), named: make(map[arena.Handle]uint64),
		names: make(map[string]item), sessions: make(map[[16]byte]*session)}
	if err := sys.Random(s.id[:]); err != nil {
		return nil, err
	}
	if s.alive, s.light, err = newBeacon(d); err != nil {
		return nil, err
	}
	if s.accept, s.senders, s.receivers, err = d.NewRing(arena.RingOptions{Capacity: helloRoom}); err != nil {
		return nil, errors.Join(err, d.Release(s.light), s.alive.close())
	}
	s.named[s.accept.Handle()], s.named[s.alive.ring.Handle()] = anyBlock, anyBlock
	s.ctx, s.end = context.WithCancel(ctx)
	return s, nil
}

// openManager returns a Manager for the server, which has references of its own to the server's
// two rings. The caller must close it.
func (s *server) openManager() (*Manager, error) {
	if err := s.d.Retain(s.accept.Handle()); err != nil {
		return nil, err
	}
	if err := s.d.Retain(s.alive.ring.Handle()); err != nil {
		return nil, errors.Join(err, s.d.Release(s.accept.Handle()))
	}
	a := address{server: s.id, pid: os.Getpid(), accept: s.accept.Handle(), alive: s.alive.ring.Handle()}
	c, err := acquireClient(a)
	if err != nil {
		return nil, err
	}
	return newManager(c), nil
}

// serveLanes serves until the server's context is done, and then releases all resources and
// returns the error of releasing them. It must be called once, on a goroutine of its own.
func (s *server) serveLanes() error {
	defer s.end()
	for s.ctx.Err() == nil {
		var m arena.Message
		err := s.accept.Get(s.ctx, &m)
		switch {
		case err == nil:
			s.acceptLane(&m)
		case arena.Lost(err): // only this hello is lost
		default:
			s.end()
		}
	}
	return s.close()
}

// acceptLane starts a goroutine that serves the lane in the hello m, and releases m. A hello
// that cannot be decoded is dropped.
func (s *server) acceptLane(m *arena.Message) {
	it := item{slices.Clone(m.Body), m.Blocks}
	m.Done()
	h, err := unpackItem[hello](s.d, it)
	if err != nil {
		return // the sender finds its lane closed
	}
	l := &served{s: s, lane: h.Lane, session: s.joinSession(h)}
	s.done.Go(l.serveCalls)
}

// close waits until all lanes have ended, and disposes of all objects, published values and
// rings of the server. The server's context must be done. The lane of a client that sends a
// hello too late is closed.
func (s *server) close() error {
	s.done.Wait()
	err := s.d.Release(s.receivers)
	for {
		var m arena.Message
		if e := s.accept.TryGet(&m); e == nil {
			m.Discard()
		} else if !arena.Lost(e) {
			break
		}
	}
	for name := range s.names {
		s.setName(name, nil)
	}
	s.mu.Lock()
	left := s.objects
	s.objects = nil
	s.mu.Unlock()
	for _, o := range left {
		s.disposeObject(o)
	}
	s.accept.Close()
	return errors.Join(err, s.d.Release(s.senders), s.d.Release(s.accept.Handle()), s.d.Release(s.light),
		s.alive.close())
}

// A session is a client process, on this or on another machine.
type session struct {
	id    [16]byte
	pid   int
	lanes int // guarded by server.mu
}

func (s *server) joinSession(h hello) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.sessions[h.Session]
	if p == nil {
		p = &session{id: h.Session, pid: h.PID}
		s.sessions[h.Session] = p
	}
	p.lanes++
	return p
}

// endLane ends a lane of the session p. After the last one of the session, the locks, permits
// and tasks of the client are released.
func (s *server) endLane(p *session) {
	s.mu.Lock()
	p.lanes--
	var all []*object
	if p.lanes == 0 {
		delete(s.sessions, p.id)
		for _, o := range s.objects {
			all = append(all, o)
		}
	}
	s.mu.Unlock()
	for _, o := range all {
		o.mu.Lock()
		if l, ok := o.state.(leaver); ok {
			l.endSession(p)
			o.changed.broadcast()
		}
		o.mu.Unlock()
	}
}

// served is the server's end of a lane.
type served struct {
	s       *server
	session *session
	lane    lane[reply, request]
	txn     *txn
	now     call // current or last call
	req     request
}

// serveCalls serves the calls of a lane. If a method calls runtime.Goexit, its caller gets an
// error, and another goroutine goes on with the lane.
func (l *served) serveCalls() {
	var r reply
	over, calling := false, false
	defer func() {
		if calling {
			l.s.done.Go(func() {
				l.sendReply(reply{Err: l.now.goexitError()})
				l.serveCalls()
			})
		} else if over {
			l.endCalls()
		}
	}()
	for !over {
		var err error
		l.req, err = l.lane.Recv(l.s.ctx)
		switch {
		case err == nil && l.req.Method == cancel: // for a call that completed before its cancellation
			releaseAll(l.s.d, l.req.Args)
			continue
		case errors.Is(err, ipc.ErrClosed) || l.s.ctx.Err() != nil:
			over = true
			continue
		}
		if r = (reply{}); err != nil { // it could not be decoded, but its sender waits for a reply
			r.Err = fmt.Errorf("%w: %w", ErrArgument, err)
		} else {
			calling = true
			r.Results, r.Err = l.performCall()
			calling = false
		}
		over = l.sendReply(r) != nil
	}
}

// sendReply sends the reply of the call in l.req. It releases the results. If they cannot be
// sent, it sends the error instead. An error means that the lane is closed or the server ends.
func (l *served) sendReply(r reply) error {
	err := l.lane.Send(l.s.ctx, r)
	if err != nil && !errors.Is(err, ipc.ErrClosed) { // a result cannot be sent
		err = l.lane.Send(l.s.ctx, reply{Err: fmt.Errorf("reply of %s: %w", l.req.Method, err)})
	}
	releaseAll(l.s.d, r.Results)
	return err
}

// endCalls rolls an open transaction back and ends the lane.
func (l *served) endCalls() {
	defer l.s.endLane(l.session)
	defer l.lane.Close()
	if l.txn != nil {
		l.txn.endTxn(false)
	}
}

// performCall executes the call in l.req. It returns the results, which own their references,
// and the error of the call. The slice is valid until the next call.
func (l *served) performCall() ([]item, error) {
	c := &l.now
	clear(c.results)
	*c = call{request: &l.req, s: l.s, lane: l, results: c.results[:0]}
	defer c.endCall()
	err := l.dispatchCall(c)
	return c.results, err
}

func (l *served) dispatchCall(c *call) error {
	if c.Object == 0 {
		c.obj = &object{kind: serverKind}
		m, ok := serverKind.methods[c.Method]
		if !ok {
			return fmt.Errorf("%w: server method %q", ErrNoMethod, c.Method)
		}
		return c.recoverPanic(func() error { return m.run(l, c) })
	}
	if c.obj = l.s.findObject(c.Object); c.obj == nil {
		return fmt.Errorf("%w: object %d", ErrNoObject, c.Object)
	}
	m, ok := c.obj.kind.methods[c.Method]
	if !ok {
		return fmt.Errorf("%w: type %s, method %q", ErrNoMethod, c.obj.kind.name, c.Method)
	}
	return c.runMethod(m)
}

func (s *server) findObject(id uint64) *object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[id]
}

// Methods of the server itself.
var (
	serverKind = &kind{name: "server", methods: make(map[string]*method)}

	serverCreate   = defineMethod(serverKind, "new", (*served).createObject)
	serverBegin    = defineMethod(serverKind, "begin", (*served).beginTxn)
	serverCommit   = defineMethod(serverKind, "commit", func(l *served, _ *call) error { return l.endTxn(true) })
	serverRollback = defineMethod(serverKind, "rollback", func(l *served, _ *call) error { return l.endTxn(false) })
	serverIdentify = defineMethod(serverKind, "identify", (*served).identifyBlocks)
	serverPublish  = defineMethod(serverKind, "publish", (*served).publish)
	serverFind     = defineMethod(serverKind, "find", (*served).find)
	serverWithdraw = defineMethod(serverKind, "withdraw", (*served).withdraw)
)

func (l *served) beginTxn(c *call) error {
	if l.txn != nil {
		return fmt.Errorf("%w: a transaction has already begun", ErrTxn)
	}
	t := &txn{s: l.s, touched: make(map[*object]undo)}
	if err := l.s.gate.lockExclusive(c, t); err != nil {
		return err
	}
	l.txn = t
	return nil
}

func (l *served) endTxn(commit bool) error {
	if l.txn == nil {
		return fmt.Errorf("%w: no transaction has begun", ErrTxn)
	}
	l.txn.endTxn(commit)
	l.txn = nil
	return nil
}

// identifyBlocks adds one result to the call: for each block given by argument 0, the id of the
// object that the block keeps alive, [anyBlock] for other blocks of proxies, and 0 for blocks of
// other values.
func (l *served) identifyBlocks(c *call) error {
	handles, err := decodeArg[[]uint64](c, 0)
	if err != nil {
		return err
	}
	l.s.mu.Lock()
	for i, h := range handles {
		handles[i] = l.s.named[arena.Handle(h)]
	}
	l.s.mu.Unlock()
	return addResult(c, handles)
}
