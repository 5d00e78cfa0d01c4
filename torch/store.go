package torch

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// A Store is a client of torch.distributed.TCPStore, the key-value store through which the ranks of
// a job find each other. It works with PyTorch 1.13 and with PyTorch 2. [DialStore] connects to the
// store of another process; [ServeStore] serves one in this process. A value has the same bytes in
// Go and in Python's set and get.
//
// The methods may be called from several goroutines, and a call that waits does not block the
// others. Each call ends when its context is done, or after [StoreOptions.Timeout]. The error of a
// call is a *[StoreError].
//
// A store has no authentication: any program that can reach its port can read and write all of it.
// Values should be small. Large data should travel over a connection, with its address in the
// store.
type Store struct {
	shared *storeShared
	prefix string // prepended to every key, with its final slash
}

// A StoreError is the error of an operation on a store.
type StoreError struct {
	Op, Key, Addr string
	// Err wraps [ErrClosed], [ErrProtocol], [ErrTooLong] or [ErrUnsupported], or is the cause of
	// the context's end.
	Err error
}

// Error returns one line with the address of the server, the operation, the key, and Err.
func (e *StoreError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("torch: store at %s: %s: %v", e.Addr, e.Op, e.Err)
	}
	return fmt.Sprintf("torch: store at %s: %s %q: %v", e.Addr, e.Op, e.Key, e.Err)
}

// Unwrap returns Err.
func (e *StoreError) Unwrap() error { return e.Err }

// StoreOptions configures the client and the server of a store. The zero value is valid.
type StoreOptions struct {
	// Timeout limits a call if its context has no deadline. 0 means 5 minutes, as in PyTorch; a
	// negative value means no limit.
	Timeout time.Duration
	// MaxValue limits the size of a value in bytes. For values that this process reads, 0 means 64
	// MiB. For values that clients of [ServeStore] write, 0 means 8 MiB, as in PyTorch's server. A
	// key must not exceed 8 KiB.
	MaxValue int64
	// Listen is the address at which [Rendezvous] serves the store, if this rank has to serve it.
	// "" means MASTER_ADDR and MASTER_PORT. ":29500" accepts clients on all network interfaces, as
	// PyTorch does.
	Listen string

	// The fields below limit the clients of a store served by this process. A client that exceeds a
	// limit is disconnected.

	MaxClients int   // concurrent connections; 0 means 16,384. PyTorch 1.13 opens two per rank
	MaxBytes   int64 // memory of keys, values, queues, waits and queries; 0 means 1 GiB
	// Refused, if not nil, is called with the reason when a client is disconnected or not accepted.
	// It may be called from several goroutines at once.
	Refused func(client net.Addr, err error)
}

func (o StoreOptions) maxValue() int64 {
	if o.MaxValue == 0 {
		return 64 << 20
	}
	return o.MaxValue
}

// storeShared is the state that a store shares with the stores returned by [Store.Prefix]. Its
// methods may be called from several goroutines.
type storeShared struct {
	addr   string
	opts   StoreOptions
	server *storeServer // nil if another process serves the store

	mu     sync.Mutex
	first  *bool // whether the server speaks PyTorch 1; nil until the first connection
	idle   []*storeConn
	closed bool
}

// maxIdle is the number of connections that are kept for later calls.
const maxIdle = 4

// DialStore connects to the TCPStore at "host:port". It waits until a server listens there,
// because ranks may start in any order, at most until ctx is done or [StoreOptions.Timeout] has
// passed. The error is a *[StoreError]. The caller must close the store.
func DialStore(ctx context.Context, addr string, o StoreOptions) (*Store, error) {
	s := &Store{shared: &storeShared{addr: addr, opts: o}}
	ctx, cancel := s.shared.withTimeout(ctx)
	defer cancel()
	c, err := s.shared.acquireConn(ctx)
	if err != nil {
		return nil, s.wrapError("connect", "", err)
	}
	s.shared.releaseConn(c)
	return s, nil
}

// Prefix returns a store that prepends name and a slash to every key, as PyTorch's PrefixStore
// does. Both stores share their connections, and closing one closes the other.
func (s *Store) Prefix(name string) *Store { return &Store{s.shared, s.prefix + name + "/"} }

// Addr returns the address of the server.
func (s *Store) Addr() string { return s.shared.addr }

// Close closes the connections of the store and of all stores derived by [Store.Prefix]. Pending
// calls return an error that wraps [ErrClosed], at the latest when their contexts are done. A store
// of [ServeStore] ends, and the calls of its clients fail; the caller should call [Store.Drain]
// before. The server of another process is not affected. Close is idempotent.
func (s *Store) Close() error {
	s.shared.close()
	if s.shared.server == nil {
		return nil
	}
	return s.shared.server.close()
}

// Drain closes the connections of the store and of all stores derived by [Store.Prefix], and then
// waits until no client is connected to the server of [ServeStore]. PyTorch processes stay
// connected until they end. A program should call Drain before [Store.Close], so that the other
// ranks can complete their work. If ctx is done first, the error wraps [context.Cause] and gives
// the number of connected clients. If another process serves the store, Drain returns nil
// immediately.
func (s *Store) Drain(ctx context.Context) error {
	s.shared.close()
	if s.shared.server == nil {
		return nil
	}
	return s.shared.server.awaitNoClients(ctx)
}

// close closes the idle connections of this process. Later calls return [ErrClosed].
func (h *storeShared) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

// withTimeout returns ctx with the default timeout, or ctx itself if it has a deadline or the
// timeout is negative. The caller must call the cancel function.
func (h *storeShared) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := h.opts.Timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	if _, has := ctx.Deadline(); has || timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("%w: StoreOptions.Timeout is %v", context.DeadlineExceeded, timeout))
}

// acquireConn returns a connection for the exclusive use of one call. It reuses an idle one if
// it can. The caller must pass the connection to releaseConn, or close it after an error. The
// error is [ErrClosed] if the store is closed.
func (h *storeShared) acquireConn(ctx context.Context) (*storeConn, error) {
	h.mu.Lock()
	known, closed := h.first, h.closed
	if n := len(h.idle); n > 0 {
		c := h.idle[n-1]
		h.idle = h.idle[:n-1]
		h.mu.Unlock()
		return c, nil
	}
	h.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	c, err := dialStoreConn(ctx, h.addr, known)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = &c.first
	return c, nil
}

// releaseConn takes back a connection after use, and keeps it for later calls or closes it.
func (h *storeShared) releaseConn(c *storeConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) == maxIdle {
		c.Close()
		return
	}
	h.idle = append(h.idle, c)
}

func (s *Store) wrapError(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &StoreError{op, key, s.shared.addr, err}
}

// serverKey returns the server's form of a key: TCPStore prepends a slash to every key.
func (s *Store) serverKey(key string) string { return "/" + s.prefix + key }

func (s *Store) serverKeys(keys []string) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = s.serverKey(key)
	}
	return all
}

// A storeStep is a request and the function that reads its reply. A request that depends on a wait
// must be a separate step after it, because a server answers each request immediately.
type storeStep struct {
	make func(r *storeRequest)
	read func(storeReply) error
}

// runSteps performs the steps in order on one connection, and returns the first error. Its
// errors are not wrapped in a [StoreError] yet.
func (s *Store) runSteps(ctx context.Context, steps ...storeStep) error {
	h := s.shared
	ctx, cancel := h.withTimeout(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c, err := h.acquireConn(ctx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		r := storeRequest{first: c.first}
		if step.make(&r); r.err != nil {
			h.releaseConn(c)
			return r.err
		}
		if err := c.exchangeRequest(ctx, r.b, h.opts.maxValue(), step.read); err != nil {
			h.closeIdle()
			return err
		}
	}
	h.releaseConn(c)
	return nil
}

// closeIdle closes the idle connections after one connection to the same server has failed.
func (h *storeShared) closeIdle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

// changeStep returns the step of a query that has no reply. It appends a query that has one, so
// that the server has processed the first query when the call returns. Otherwise the next call
// could overtake it on another connection, or the process could exit before it is sent.
func changeStep(make func(r *storeRequest)) storeStep {
	return storeStep{func(r *storeRequest) { make(r); r.appendQuery(queryNumKeys) }, func(r storeReply) error {
		_, err := r.readNumber()
		return err
	}}
}

// wait returns the step that blocks until the server has values for all of the keys, which are
// given in the server's form.
func wait(names ...string) storeStep {
	return storeStep{func(r *storeRequest) { r.appendQuery(queryWait).appendKeys(names) }, storeReply.readStopped}
}

// Set stores a value of at most 8 MiB under a key, and wakes all calls that wait for the key.
// The error is a *[StoreError], which wraps [ErrTooLong] for a larger value.
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	return s.wrapError("set", key, s.runSteps(ctx,
		changeStep(func(r *storeRequest) { r.appendQuery(querySet).appendKey(s.serverKey(key)).appendValue(value) })))
}

// Get blocks until the key has a value, and returns the value. The error is a *[StoreError],
// which wraps [context.Cause] if ctx is done first.
func (s *Store) Get(ctx context.Context, key string) (value []byte, err error) {
	name := s.serverKey(key)
	err = s.runSteps(ctx, wait(name), storeStep{func(r *storeRequest) { r.appendQuery(queryGet).appendKey(name) },
		func(r storeReply) error {
			value, err = r.readValue()
			return err
		}})
	return value, s.wrapError("get", key, err)
}

// Add adds n to the integer that is stored as decimal text under the key, and returns the sum. A
// missing key counts as 0. The error is a *[StoreError].
func (s *Store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	err = s.runSteps(ctx, storeStep{
		func(r *storeRequest) { r.appendQuery(queryAdd).appendKey(s.serverKey(key)).appendNumber(n) },
		func(r storeReply) error {
			sum, err = r.readNumber()
			return err
		}})
	return sum, s.wrapError("add to", key, err)
}

// Check reports whether all keys have values. It does not wait. The error is a *[StoreError].
func (s *Store) Check(ctx context.Context, keys ...string) (all bool, err error) {
	err = s.runSteps(ctx, storeStep{func(r *storeRequest) { r.appendQuery(queryCheck).appendKeys(s.serverKeys(keys)) },
		func(r storeReply) error {
			all, err = r.readReady()
			return err
		}})
	return all, s.wrapError("check", firstOf(keys), err)
}

// Wait blocks until all keys have values. The error is a *[StoreError], which wraps
// [context.Cause] if ctx is done first.
func (s *Store) Wait(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	return s.wrapError("wait for", firstOf(keys), s.runSteps(ctx, wait(s.serverKeys(keys)...)))
}

func firstOf(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

// CompareSet stores desired under the key if its value equals expected, or if the key has no
// value and expected is empty. It returns the value that the key has afterwards, or expected if
// the key has none. The error is a *[StoreError].
func (s *Store) CompareSet(ctx context.Context, key string, expected, desired []byte) (now []byte, err error) {
	err = s.runSteps(ctx,
		storeStep{func(r *storeRequest) {
			r.appendQuery(queryCompareSet).appendKey(s.serverKey(key)).appendValue(expected).appendValue(desired)
		}, func(r storeReply) error {
			now, err = r.readValue()
			return err
		}})
	return now, s.wrapError("compare and set", key, err)
}

// Append appends bytes to the value of a key, or sets the value if the key has none. The error
// is a *[StoreError], which wraps [ErrUnsupported] if the server is PyTorch 1.13's.
func (s *Store) Append(ctx context.Context, key string, value []byte) error {
	return s.wrapError("append to", key, s.runSteps(ctx,
		changeStep(func(r *storeRequest) {
			r.appendQuery(queryAppend).appendKey(s.serverKey(key)).appendValue(value)
		})))
}

// Delete removes a key, and reports whether it had a value. The error is a *[StoreError].
func (s *Store) Delete(ctx context.Context, key string) (was bool, err error) {
	err = s.runSteps(ctx, storeStep{func(r *storeRequest) { r.appendQuery(queryDelete).appendKey(s.serverKey(key)) },
		func(r storeReply) error {
			n, err := r.readNumber()
			was = n == 1
			return err
		}})
	return was, s.wrapError("delete", key, err)
}

// NumKeys returns the number of keys in the server, over all programs and prefixes. The error is
// a *[StoreError].
func (s *Store) NumKeys(ctx context.Context) (n int64, err error) {
	err = s.runSteps(ctx, storeStep{func(r *storeRequest) { r.appendQuery(queryNumKeys) }, func(r storeReply) error {
		n, err = r.readNumber()
		return err
	}})
	return n, s.wrapError("count keys", "", err)
}

// MultiGet blocks until all keys have values, and returns the values in the order of the keys.
// The error is a *[StoreError], which wraps [context.Cause] if ctx is done first.
func (s *Store) MultiGet(ctx context.Context, keys ...string) (values [][]byte, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values = make([][]byte, len(keys))
	names := s.serverKeys(keys)
	err = s.runSteps(ctx, wait(names...), storeStep{func(r *storeRequest) {
		if !r.first {
			r.appendQuery(queryMultiGet).appendKeys(names)
			return
		}
		for _, name := range names {
			r.appendQuery(queryGet).appendKey(name)
		}
	}, func(r storeReply) error {
		for i := 0; i < len(values) && err == nil; i++ {
			values[i], err = r.readValue()
		}
		return err
	}})
	return values, s.wrapError("multi get", firstOf(keys), err)
}

// MultiSet stores values[i] under keys[i]. The slices must have the same length, otherwise
// MultiSet stores nothing. The error is a *[StoreError].
func (s *Store) MultiSet(ctx context.Context, keys []string, values [][]byte) error {
	if len(keys) != len(values) {
		return s.wrapError("multi set", firstOf(keys),
			fmt.Errorf("%d keys and %d values, want equal numbers", len(keys), len(values)))
	}
	return s.wrapError("multi set", firstOf(keys), s.runSteps(ctx, changeStep(func(r *storeRequest) {
		if !r.first {
			r.appendQuery(queryMultiSet).appendCount(len(keys))
		}
		for i, key := range keys {
			if r.first {
				r.appendQuery(querySet)
			}
			r.appendKey(s.serverKey(key)).appendValue(values[i])
		}
	})))
}
