package torch

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/shoal-mp/shoal/internal/goexit"
)

// A storeServer serves a store from the memory of this process. newStoreServer starts it. Its
// methods may be called from several goroutines.
type storeServer struct {
	listener net.Listener
	opts     StoreOptions
	table    *storeTable
	room     *storeRoom

	mu      sync.Mutex
	clients map[*storeClient]bool
	changed chan struct{} // closed and replaced when a client disconnects
	closed  bool
	stop    func() bool // detaches the server from the context
	serving sync.WaitGroup
}

// serverDefaults returns the options with the server's defaults filled in.
func (o StoreOptions) serverDefaults() StoreOptions {
	if o.MaxClients <= 0 {
		o.MaxClients = 16 << 10
	}
	if o.MaxValue <= 0 {
		o.MaxValue = maxStoreValue
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Refused == nil {
		o.Refused = func(net.Addr, error) {}
	} else {
		refused := o.Refused
		o.Refused = func(client net.Addr, err error) {
			goexit.Isolate("torch: StoreOptions.Refused", func() { refused(client, err) })
		}
	}
	return o
}

// ServeStore serves a store at "host:port" until [Store.Close] is called or ctx is done. Port 0
// lets the system choose one. It corresponds to TCPStore(host, port, is_master=True) in PyTorch.
// Its clients are [DialStore] and TCPStore with is_master=False, of PyTorch 1.13 or 2; the query
// watch_key of PyTorch 1.13 is not supported. Keys and values lie in the memory of this process and
// are lost when it ends. The server listens at the given address only, because a store has no
// authentication. If the port is in use, the error wraps [syscall.EADDRINUSE]. The caller must
// close the store.
func ServeStore(ctx context.Context, addr string, o StoreOptions) (*Store, error) {
	server, err := newStoreServer(ctx, addr, o)
	if err != nil {
		return nil, err
	}
	return &Store{shared: &storeShared{addr: server.address(), opts: o, server: server}}, nil
}

// newStoreServer listens at addr and starts to accept clients. The server runs until close is
// called or ctx is done. The error is a *[StoreError].
func newStoreServer(ctx context.Context, addr string, o StoreOptions) (*storeServer, error) {
	if ctx.Err() != nil {
		return nil, &StoreError{"serve", "", addr, context.Cause(ctx)}
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &StoreError{"serve", "", addr,
			fmt.Errorf("%w: another process serves a store there, or uses the port: connect to it with DialStore, "+
				"or choose another port", err)}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, &StoreError{"serve", "", addr,
			fmt.Errorf("%w: the address belongs to another machine: choose an address of this machine", err)}
	case err != nil:
		return nil, &StoreError{"serve", "", addr, err}
	}
	o = o.serverDefaults()
	room := &storeRoom{left: o.MaxBytes, most: o.MaxBytes}
	s := &storeServer{listener: l, opts: o, table: newStoreTable(room), room: room,
		clients: map[*storeClient]bool{}, changed: make(chan struct{})}
	s.serving.Add(1)
	go s.acceptClients()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = context.AfterFunc(ctx, func() { s.close() })
	return s, nil
}

// address returns the listener's address as "host:port".
func (s *storeServer) address() string { return s.listener.Addr().String() }

// awaitNoClients blocks until no client is connected. If ctx is done first, the error is a
// *[StoreError] that wraps [context.Cause].
func (s *storeServer) awaitNoClients(ctx context.Context) error {
	for {
		s.mu.Lock()
		n, changed := len(s.clients), s.changed
		s.mu.Unlock()
		if n == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return &StoreError{"drain", "", s.address(),
				fmt.Errorf("%d clients are still connected: %w", n, context.Cause(ctx))}
		}
	}
}

// close disconnects all clients and waits for the goroutines of the server. It is idempotent,
// and always returns nil.
func (s *storeServer) close() error {
	s.mu.Lock()
	s.closed = true
	s.listener.Close()
	for c := range s.clients {
		c.conn.Close()
	}
	s.stop()
	s.mu.Unlock()
	s.serving.Wait()
	return nil
}

func (s *storeServer) acceptClients() {
	defer s.serving.Done()
	for pause := time.Millisecond; ; {
		conn, err := s.listener.Accept()
		switch {
		case err == nil:
			pause = time.Millisecond
			s.addClient(conn)
		case errors.Is(err, net.ErrClosed):
			return
		default: // for example EMFILE, which may pass
			s.opts.Refused(nil, err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
		}
	}
}

// addClient takes ownership of conn and starts to serve a client. It disconnects the client, and
// calls Refused, if MaxClients is reached.
func (s *storeServer) addClient(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.clients) >= s.opts.MaxClients {
		conn.Close()
		if !s.closed {
			s.opts.Refused(conn.RemoteAddr(),
				fmt.Errorf("%w: too many clients, want at most StoreOptions.MaxClients, %d", ErrTooLong,
					s.opts.MaxClients))
		}
		return
	}
	c := &storeClient{server: s, conn: conn,
		in: storeReader{r: bufio.NewReader(conn), room: s.room, most: s.opts.MaxValue}}
	s.clients[c] = true
	s.serving.Add(1)
	go c.serve()
}

func (s *storeServer) removeClient(c *storeClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	close(s.changed)
	s.changed = make(chan struct{})
}

// A storeClient is the server's side of one connection. The goroutine that runs serve owns it,
// except for sendWaitEnd.
type storeClient struct {
	server *storeServer
	conn   net.Conn
	in     storeReader
	out    []byte     // the pending reply
	wait   *storeWait // the wait in progress, or nil
	woken  []string   // the keys of the last wait; the client may have been told of its end
}

func (c *storeClient) serve() {
	defer c.server.serving.Done()
	defer c.server.removeClient(c)
	defer c.conn.Close()
	err := c.serveQueries()
	c.in.releaseMemory()
	c.server.table.cancelWait(c.wait)
	c.server.table.notifyOthers(c.woken)
	if err != io.EOF && !errors.Is(err, net.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) &&
		!errors.Is(err, syscall.EPIPE) {
		c.server.opts.Refused(c.conn.RemoteAddr(), err)
	}
}

// serveQueries serves queries until one fails, and returns that error: [io.EOF] if the client
// has disconnected.
func (c *storeClient) serveQueries() error {
	for {
		q, err := c.in.nextQuery()
		if err != nil {
			return err
		}
		c.server.table.cancelWait(c.wait) // PyTorch 1 has no CANCEL_WAIT: its next query ends the wait
		c.wait = nil
		err = c.executeQuery(q)
		c.in.releaseMemory()
		if err != nil {
			return err
		}
		if len(c.out) > 0 {
			if _, err := c.conn.Write(c.out); err != nil {
				return err
			}
		}
		if c.out = c.out[:0]; cap(c.out) > storePiece {
			c.out = nil
		}
	}
}

// These are the replies to WAIT and to CANCEL_WAIT.
const (
	stopWaiting byte = iota
	waitCanceled
)

// executeQuery executes a query and appends its reply to c.out. After an error the client must
// be disconnected.
func (c *storeClient) executeQuery(q storeQuery) (err error) {
	t := c.server.table
	switch q.code {
	case querySet, queryMultiSet:
		return t.set(q.keys, q.values)
	case queryCompareSet:
		v, err := t.compareSet(q.keys[0], q.values[0], q.values[1])
		c.appendValue(v)
		return err
	case queryGet, queryMultiGet:
		return c.sendValues(t.get(q.keys))
	case queryAdd:
		n, err := t.add(q.keys[0], q.number)
		c.appendNumber(n)
		return err
	case queryAppend:
		return t.append(q.keys[0], q.values[0])
	case queryQueuePush:
		return t.push(q.keys[0], q.values[0])
	case queryWait:
		c.wait, err = t.wait(q.keys, c.sendWaitEnd)
		return c.replyWait(q.keys, err)
	case queryBarrier:
		c.wait, err = t.arriveBarrier(q.keys[0], q.number, c.sendWaitEnd)
		return c.replyWait(nil, err)
	}
	return c.executeRead(q)
}

// executeRead executes a query that stores no value, and appends its reply to c.out.
func (c *storeClient) executeRead(q storeQuery) error {
	t := c.server.table
	switch q.code {
	case queryCheck:
		there := byte(1)
		if t.hasAll(q.keys) {
			there = 0
		}
		c.out = append(c.out, there)
	case queryNumKeys:
		c.appendNumber(int64(t.len()))
	case queryDelete:
		was := int64(0)
		if t.remove(q.keys[0]) {
			was = 1
		}
		c.appendNumber(was)
	case queryCancelWait:
		c.out = append(c.out, waitCanceled)
	case queryPing:
		c.out = binary.LittleEndian.AppendUint32(c.out, uint32(q.number))
	case queryQueuePop:
		n, v := t.pop(q.keys[0])
		c.woken = nil
		if c.appendNumber(int64(n)); n > 0 {
			c.appendValue(v)
		}
	case queryQueueLen:
		c.appendNumber(int64(t.queueLength(q.keys[0])))
	case queryListKeys:
		keys := t.sortedKeys()
		c.appendNumber(int64(len(keys)))
		return c.sendValues(keys)
	}
	return nil
}

// replyWait appends the reply to a wait that was over immediately, which means that c.wait is
// nil, and records the keys of the wait. It returns err.
func (c *storeClient) replyWait(keys []string, err error) error {
	if err == nil && c.wait == nil {
		c.out = append(c.out, stopWaiting)
	}
	c.woken = keys
	return err
}

// tellTime is the time limit for writing one byte to a client.
const tellTime = 5 * time.Second

// sendWaitEnd sends the end of a wait. The goroutine of another client may call it. The client
// is expected to be reading, so the write should not block; a client that does not read within
// tellTime, 5 seconds, is disconnected.
func (c *storeClient) sendWaitEnd() {
	c.conn.SetWriteDeadline(time.Now().Add(tellTime))
	if _, err := c.conn.Write([]byte{stopWaiting}); err != nil {
		c.conn.Close()
	}
	c.conn.SetWriteDeadline(time.Time{})
}

func (c *storeClient) appendNumber(n int64) {
	c.out = binary.LittleEndian.AppendUint64(c.out, uint64(n))
}

func (c *storeClient) appendValue(v []byte) {
	c.appendNumber(int64(len(v)))
	c.out = append(c.out, v...)
}

// sendValues appends a list of values to c.out. It flushes the reply in pieces, because the
// values together may be large.
func (c *storeClient) sendValues(all [][]byte) error {
	for _, v := range all {
		if c.appendValue(v); len(c.out) > storePiece {
			if _, err := c.conn.Write(c.out); err != nil {
				return err
			}
			c.out = c.out[:0]
		}
	}
	return nil
}
