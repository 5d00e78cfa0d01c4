package torch

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// A Store is torch.distributed.TCPStore, of PyTorch 1.13 or of 2: keys and values, by which the
// ranks of a job find each other. DialStore makes a client of a store that another process serves;
// ServeStore serves a store. Values that PyTorch writes by set are the same as those that Go writes
// by Set. Several goroutines may call the methods of a Store, and a waiting call does not block the
// others. Each call ends with its context, or after StoreOptions.Timeout. The error of a call is a
// *[StoreError].
//
// A store has no password: any program that reaches its port reads and writes all of it. A store is
// for small values. Large ones travel by a connection whose address is in the store.
type Store struct {
	shared *storeShared
	prefix string // before every key, with the slash after it
}

// A StoreError says which operation on which key of which store has failed.
type StoreError struct {
	Op, Key, Addr string
	// wraps ErrClosed, ErrProtocol, ErrTooLong, ErrUnsupported, or is the cause of the context's
	// end
	Err error
}

// Error returns one line.
func (e *StoreError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("torch: store at %s: %s: %v", e.Addr, e.Op, e.Err)
	}
	return fmt.Sprintf("torch: store at %s: %s %q: %v", e.Addr, e.Op, e.Key, e.Err)
}

// Unwrap returns Err, the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// StoreOptions say how to use a store, and how to serve one. The zero value is usable.
type StoreOptions struct {
	// Timeout ends a call whose context has no deadline; 0 stands for 5 minutes, as in PyTorch, and
	// a negative one for never.
	Timeout time.Duration
	// MaxValue bounds the bytes of a value. For a value that this process reads, 0 stands for 64
	// MiB. For a value that clients send to a store of ServeStore, 0 stands for 8 MiB, as in
	// PyTorch's server. Keys have at most 8 KiB.
	MaxValue int64
	// Listen is where Rendezvous serves the store, if this rank has to; "" stands for MASTER_ADDR
	// and MASTER_PORT. ":29500" takes clients of all networks, as PyTorch does.
	Listen string

	// The other fields bound what clients may ask of a store that is served here. A client that
	// asks for more is disconnected.

	MaxClients int   // connections at once; 0 stands for 16,384. PyTorch 1.13 has two for each rank
	MaxBytes   int64 // of keys, values, queues, waits and queries together; 0 stands for 1 GiB
	// Refused, if not nil, is called with the reason when a client was disconnected, or not
	// accepted. Several goroutines may call it.
	Refused func(client net.Addr, err error)
}

func (o StoreOptions) maxValue() int64 {
	if o.MaxValue == 0 {
		return 64 << 20
	}
	return o.MaxValue
}

// storeShared is the part that a store shares with its stores with a prefix.
type storeShared struct {
	addr   string
	opts   StoreOptions
	server *storeServer // nil if another process serves the store

	mu     sync.Mutex
	first  *bool // the server speaks PyTorch 1; nil until the first connection knows
	idle   []*storeConn
	closed bool
}

// maxIdle is how many connections are kept for later calls.
const maxIdle = 4

// DialStore connects to the TCPStore at "host:port". It waits until a server listens there, because
// ranks start in any order. The caller closes the Store.
func DialStore(ctx context.Context, addr string, o StoreOptions) (*Store, error) {
	s := &Store{shared: &storeShared{addr: addr, opts: o}}
	ctx, cancel := s.shared.bound(ctx)
	defer cancel()
	c, err := s.shared.take(ctx)
	if err != nil {
		return nil, s.fail("connect", "", err)
	}
	s.shared.give(c)
	return s, nil
}

// Prefix returns a store whose keys all begin with a name and a slash, as PyTorch's PrefixStore has
// them. The two stores share their connections, and end together.
func (s *Store) Prefix(name string) *Store { return &Store{s.shared, s.prefix + name + "/"} }

// Addr returns the address of the server.
func (s *Store) Addr() string { return s.shared.addr }

// Close closes the store's connections, also those of stores that Prefix has returned. Calls that
// wait end with an error that wraps ErrClosed, at the latest with their contexts. Close ends a
// store of ServeStore: calls of its clients fail from then on, so call Drain before. The server of
// another process goes on. Close is idempotent.
func (s *Store) Close() error {
	s.shared.close()
	if s.shared.server == nil {
		return nil
	}
	return s.shared.server.close()
}

// Drain closes the store's own connections, also those of stores that Prefix has returned. Then it
// waits until no client is connected to a store of ServeStore; processes of PyTorch are connected
// until they end. A program whose part of a job is done calls Drain before Close, so that the
// others can end their parts. The error wraps the cause of ctx's end and says how many clients are
// left. If another process serves the store, Drain returns at once.
func (s *Store) Drain(ctx context.Context) error {
	s.shared.close()
	if s.shared.server == nil {
		return nil
	}
	return s.shared.server.drain(ctx)
}

// close closes the connections of this process.
func (h *storeShared) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

// bound gives a deadline to a context that has none.
func (h *storeShared) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := h.opts.Timeout
	if timeout == 0 {
		timeout = 5 * time.Minute
	}
	if _, has := ctx.Deadline(); has || timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("%w after StoreOptions.Timeout, %v", context.DeadlineExceeded, timeout))
}

// take returns a connection that no other call uses.
func (h *storeShared) take(ctx context.Context) (*storeConn, error) {
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

// give puts a connection back.
func (h *storeShared) give(c *storeConn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(h.idle) == maxIdle {
		c.Close()
		return
	}
	h.idle = append(h.idle, c)
}

func (s *Store) fail(op, key string, err error) error {
	if err == nil {
		return nil
	}
	return &StoreError{op, key, s.shared.addr, err}
}

// key is the server's form of a key: TCPStore puts a slash before all keys.
func (s *Store) key(key string) string { return "/" + s.prefix + key }

func (s *Store) keys(keys []string) []string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = s.key(key)
	}
	return all
}

// A storeStep is one request, and the function that reads its reply. A request behind a wait must
// not be sent before the wait has ended: a server answers at once.
type storeStep struct {
	make func(r *storeRequest)
	read func(storeReply) error
}

// do takes steps on one connection.
func (s *Store) do(ctx context.Context, steps ...storeStep) error {
	h := s.shared
	ctx, cancel := h.bound(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c, err := h.take(ctx)
	if err != nil {
		return err
	}
	for _, step := range steps {
		r := storeRequest{first: c.first}
		if step.make(&r); r.err != nil {
			h.give(c)
			return r.err
		}
		if err := c.exchange(ctx, r.b, h.opts.maxValue(), step.read); err != nil {
			h.forget()
			return err
		}
	}
	h.give(c)
	return nil
}

// forget closes idle connections, because one to the same server has failed.
func (h *storeShared) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.idle {
		c.Close()
	}
	h.idle = nil
}

// change is the step of a query without an answer. It sends a second query that has one, so the
// first was done when the call returns. Without that, the next call might overtake it by another
// connection, or the process might end before.
func change(make func(r *storeRequest)) storeStep {
	return storeStep{func(r *storeRequest) { make(r); r.query(queryNumKeys) }, func(r storeReply) error {
		_, err := r.number()
		return err
	}}
}

// wait is the step that waits for keys of the server.
func wait(names ...string) storeStep {
	return storeStep{func(r *storeRequest) { r.query(queryWait).keys(names) }, storeReply.stopped}
}

// Set gives a key a value of at most 8 MiB, and wakes all calls that wait for the key.
func (s *Store) Set(ctx context.Context, key string, value []byte) error {
	return s.fail("set", key, s.do(ctx,
		change(func(r *storeRequest) { r.query(querySet).key(s.key(key)).value(value) })))
}

// Get waits until a key has a value, and returns the value.
func (s *Store) Get(ctx context.Context, key string) (value []byte, err error) {
	name := s.key(key)
	err = s.do(ctx, wait(name), storeStep{func(r *storeRequest) { r.query(queryGet).key(name) },
		func(r storeReply) error {
			value, err = r.value()
			return err
		}})
	return value, s.fail("get", key, err)
}

// Add adds n to the whole number that a key has as text, and returns the sum. A key without a value
// counts as 0.
func (s *Store) Add(ctx context.Context, key string, n int64) (sum int64, err error) {
	err = s.do(ctx, storeStep{func(r *storeRequest) { r.query(queryAdd).key(s.key(key)).number(n) },
		func(r storeReply) error {
			sum, err = r.number()
			return err
		}})
	return sum, s.fail("add to", key, err)
}

// Check reports whether all keys have values.
func (s *Store) Check(ctx context.Context, keys ...string) (all bool, err error) {
	err = s.do(ctx, storeStep{func(r *storeRequest) { r.query(queryCheck).keys(s.keys(keys)) },
		func(r storeReply) error {
			all, err = r.ready()
			return err
		}})
	return all, s.fail("check", firstOf(keys), err)
}

// Wait waits until all keys have values.
func (s *Store) Wait(ctx context.Context, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	return s.fail("wait for", firstOf(keys), s.do(ctx, wait(s.keys(keys)...)))
}

func firstOf(keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	return keys[0]
}

// CompareSet gives a key the desired value if it has the expected one, or if it has no value and
// the expected one is empty. It returns the key's value then, or expected if the key has no value.
func (s *Store) CompareSet(ctx context.Context, key string, expected, desired []byte) (now []byte, err error) {
	err = s.do(ctx,
		storeStep{func(r *storeRequest) {
			r.query(queryCompareSet).key(s.key(key)).value(expected).value(desired)
		}, func(r storeReply) error {
			now, err = r.value()
			return err
		}})
	return now, s.fail("compare and set", key, err)
}

// Append adds bytes to the end of a key's value, or sets the value if the key has none. If the
// server is PyTorch 1.13's, the error wraps ErrUnsupported.
func (s *Store) Append(ctx context.Context, key string, value []byte) error {
	return s.fail("append to", key, s.do(ctx,
		change(func(r *storeRequest) { r.query(queryAppend).key(s.key(key)).value(value) })))
}

// Delete removes a key, and reports whether it had a value.
func (s *Store) Delete(ctx context.Context, key string) (was bool, err error) {
	err = s.do(ctx, storeStep{func(r *storeRequest) { r.query(queryDelete).key(s.key(key)) }, func(r storeReply) error {
		n, err := r.number()
		was = n == 1
		return err
	}})
	return was, s.fail("delete", key, err)
}

// NumKeys returns how many keys the server has, of all programs and prefixes.
func (s *Store) NumKeys(ctx context.Context) (n int64, err error) {
	err = s.do(ctx, storeStep{func(r *storeRequest) { r.query(queryNumKeys) }, func(r storeReply) error {
		n, err = r.number()
		return err
	}})
	return n, s.fail("count keys", "", err)
}

// MultiGet waits until all keys have values, and returns the values in the order of the keys.
func (s *Store) MultiGet(ctx context.Context, keys ...string) (values [][]byte, err error) {
	if len(keys) == 0 {
		return nil, nil
	}
	values = make([][]byte, len(keys))
	names := s.keys(keys)
	err = s.do(ctx, wait(names...), storeStep{func(r *storeRequest) {
		if !r.first {
			r.query(queryMultiGet).keys(names)
			return
		}
		for _, name := range names {
			r.query(queryGet).key(name)
		}
	}, func(r storeReply) error {
		for i := 0; i < len(values) && err == nil; i++ {
			values[i], err = r.value()
		}
		return err
	}})
	return values, s.fail("get several of", firstOf(keys), err)
}

// MultiSet gives keys[i] the value values[i]. If the lengths differ, it returns an error.
func (s *Store) MultiSet(ctx context.Context, keys []string, values [][]byte) error {
	if len(keys) != len(values) {
		return s.fail("set several of", firstOf(keys), fmt.Errorf("%d keys and %d values", len(keys), len(values)))
	}
	return s.fail("set several of", firstOf(keys), s.do(ctx, change(func(r *storeRequest) {
		if !r.first {
			r.query(queryMultiSet).count(len(keys))
		}
		for i, key := range keys {
			if r.first {
				r.query(querySet)
			}
			r.key(s.key(key)).value(values[i])
		}
	})))
}
