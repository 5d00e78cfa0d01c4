package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
)

// An address is how a server is reached from within its domain. Its holder holds the two rings.
type address struct {
	server [16]byte
	pid    int
	accept arena.Handle // the ring that takes hellos
	alive  arena.Handle // the ring of a beacon that goes out when the server dies
}

// A client is this process, as a server sees it: all proxies and managers of one server share it,
// and it ends with the last.
type client struct {
	address
	keeper
	session [16]byte
	dial    func(ctx context.Context) (lane[request, reply], error)
	shut    func()                          // lets go of what dial needs
	how     func(ctx context.Context) error // says how the server ended, if this process has started it; or nil
	hellos  *arena.Ring                     // a view of accept

	failed atomic.Pointer[error] // why no call is possible any more
	fails  sync.Once

	mu     sync.Mutex
	uses   int
	anchor lane[request, reply]   // never used, so that the session outlives every other lane
	idle   []lane[request, reply] // the latest last
	lanes  map[lane[request, reply]]struct{}
}

// clients are those of this process whose server is in the domain, by server.
var clients struct {
	mu  sync.Mutex
	set map[[16]byte]*client
}

// clientOf returns the client of the server at a, used once more. It takes over the references that
// a holds.
func clientOf(a address) (*client, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	clients.mu.Lock()
	defer clients.mu.Unlock()
	if c := clients.set[a.server]; c != nil {
		c.uses++
		return c, errors.Join(a.release(d))
	}
	if a.accept == 0 {
		return nil, fmt.Errorf("%w: this process has not met it yet", ErrForeign)
	}
	c, err := newClient(d, a)
	if err != nil {
		return nil, errors.Join(err, a.release(d))
	}
	if clients.set == nil {
		clients.set = make(map[[16]byte]*client)
	}
	clients.set[a.server] = c
	return c, nil
}

func (a address) release(k keeper) (err error) {
	if a.accept != 0 {
		err = errors.Join(k.Release(a.accept), k.Release(a.alive))
	}
	return err
}

func newClient(d *arena.Domain, a address) (*client, error) {
	c := &client{address: a, keeper: d, uses: 1}
	if err := sys.Random(c.session[:]); err != nil {
		return nil, err
	}
	accept, err := d.OpenRing(a.accept)
	if err != nil {
		return nil, err
	}
	alive, err := d.OpenRing(a.alive)
	if err != nil {
		accept.Close()
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		if alive.Await(ctx) == nil {
			c.lost()
		}
	})
	c.hellos = accept
	c.dial = func(ctx context.Context) (lane[request, reply], error) { return c.greet(ctx, c.session, os.Getpid()) }
	c.shut = func() {
		end()
		alive.Close()
		accept.Close()
		watching.Wait()
		a.release(d)
	}
	return c, nil
}

// greet makes a lane and tells the server whose it is.
func (c *client) greet(ctx context.Context, session [16]byte, pid int) (lane[request, reply], error) {
	ours, theirs, err := ipc.Pipe[request, reply]()
	if err != nil {
		return nil, err
	}
	a := in(hello{Session: session, PID: pid, Lane: theirs})
	if err = a.err; err == nil {
		err = c.hellos.Put(ctx, a.body, a.blocks, false)
		a.done(err == nil)
	}
	err = errors.Join(err, theirs.Close())
	if err != nil {
		ours.Close()
		if errors.Is(err, arena.ErrFinished) {
			return nil, c.lost()
		}
		return nil, err
	}
	return ours, nil
}

// use counts one more proxy.
func (c *client) use() {
	clients.mu.Lock()
	defer clients.mu.Unlock()
	c.uses++
}

// done counts one less, and ends the client with the last.
func (c *client) done() {
	clients.mu.Lock()
	c.uses--
	last := c.uses == 0
	if last && clients.set[c.server] == c {
		delete(clients.set, c.server)
	}
	clients.mu.Unlock()
	if last {
		c.fail(ErrClosed)
		c.shut()
	}
}

// lost is called when there are signs that the server is gone. It returns what to tell callers.
func (c *client) lost() error { return c.lostBy(nil) }

// lostBy is lost of a stream, whose error says which host it led to.
func (c *client) lostBy(end error) error {
	c.fails.Do(func() {
		c.mu.Lock()
		how := c.how
		c.mu.Unlock()
		var cause error
		if how != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			cause = how(ctx) // the kernel has told already, or is about to
		}
		if how == nil && end != nil && c.hellos == nil {
			cause = fmt.Errorf("its connection: %v; connect again", end) // and no %w: it is not ErrClosed
		}
		c.fail(serverDied(c.pid, cause))
	})
	return c.failure()
}

// fail ends every call that is going on, and each later one.
func (c *client) fail(err error) {
	c.failed.CompareAndSwap(nil, &err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.lanes {
		l.Close()
	}
	if c.anchor != nil {
		c.anchor.Close()
	}
	c.lanes, c.idle, c.anchor = nil, nil, nil
}

func (c *client) failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// take returns a lane for one call at a time.
func (c *client) take(ctx context.Context) (lane[request, reply], error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return l, nil
	}
	anchored := c.anchor != nil
	c.mu.Unlock()
	if err := c.failure(); err != nil {
		return nil, err
	}
	if !anchored {
		l, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.moor(l)
	}
	l, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failure(); err != nil {
		l.Close()
		return nil, err
	}
	if c.lanes == nil {
		c.lanes = make(map[lane[request, reply]]struct{})
	}
	c.lanes[l] = struct{}{}
	return l, nil
}

// moor makes l the anchor, unless somebody was quicker.
func (c *client) moor(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.anchor != nil || c.failure() != nil {
		l.Close()
		return
	}
	c.anchor = l
}

func (c *client) put(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.lanes[l]; ok {
		c.idle = append(c.idle, l)
	}
}

func (c *client) drop(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lanes, l)
	l.Close()
}

// late makes a call undone whose caller has not waited for it: it returns the request that does it.
type late func(results []item) request

// call sends a request and waits for its reply.
//
// If the deadline of ctx is over already, the call is done if it need not wait.
//
// If ctx ends first, the server is told, a stopped one for giveUpTime, and what it did all the same
// is made undone by after, if there is such a thing. Whatever else a call does may or may not have
// been done then.
func (c *client) call(ctx context.Context, req request, after late) ([]item, error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	if t := c.transaction(ctx); t != nil {
		r, err := t.call(ctx, req)
		return c.judge(ctx, req.Method, r, err)
	}
	switch ctx.Err() {
	case nil:
		return c.exchange(ctx, req, after, false)
	case context.DeadlineExceeded:
		return c.callNow(ctx, req, after)
	}
	return nil, unsent{cause(ctx, req.Method)}
}

// nowTime limits a call whose deadline is over, which waits for nothing but the server.
const nowTime = time.Second

// callNow makes a call that must not wait: it is cancelled as soon as it is sent, and the server
// looks for a cancellation only when a call has to wait.
func (c *client) callNow(ctx context.Context, req request, after late) ([]item, error) {
	limit, end := context.WithTimeout(context.WithoutCancel(ctx), nowTime)
	defer end()
	results, err := c.exchange(limit, req, after, true)
	if errors.Is(err, context.Canceled) || limit.Err() != nil {
		err = cause(ctx, req.Method)
	}
	return results, err
}

// exchange sends a request, with now followed by its cancellation, and waits for the reply.
func (c *client) exchange(ctx context.Context, req request, after late, now bool) ([]item, error) {
	l, err := c.take(ctx)
	if err != nil {
		return nil, unsent{err}
	}
	err = l.Send(ctx, req)
	if err != nil && !errors.Is(err, ipc.ErrClosed) {
		if ctx.Err() != nil {
			c.drop(l) // a stream has ended if it was in the middle of the request
		} else {
			c.put(l)
		}
		return nil, unsent{fmt.Errorf("%s: %w", req.Method, err)}
	}
	if err == nil && now {
		err = l.Send(ctx, request{Method: cancel})
	}
	var r reply
	if err == nil {
		r, err = l.Recv(ctx)
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ipc.ErrClosed) {
		c.giveUp(l, after)
		return nil, cause(ctx, req.Method)
	}
	if err == nil {
		c.put(l)
	} else {
		c.drop(l)
	}
	return c.judge(ctx, req.Method, r, err)
}

// An unsent is why the server has not heard of a call.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

func cause(ctx context.Context, method string) error {
	return fmt.Errorf("manager: %s: %w", method, context.Cause(ctx))
}

// judge returns the results of a call, or why there are none.
func (c *client) judge(ctx context.Context, method string, r reply, err error) ([]item, error) {
	switch {
	case err == nil && r.Err == nil:
		return r.Results, nil
	case err == nil:
		releaseAll(c, r.Results)
		return nil, r.Err
	case errors.Is(err, ipc.ErrClosed):
		return nil, c.lostBy(err)
	case ctx.Err() != nil:
		return nil, cause(ctx, method)
	}
	return nil, fmt.Errorf("reply of %s: %w", method, err)
}

// giveUpTime is how long a caller whose context has ended waits for the server to know it, so that
// as a rule nothing of the call is left when it returns.
const giveUpTime = 100 * time.Millisecond

func (c *client) giveUp(l lane[request, reply], after late) {
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		c.settle(l, after)
	}()
	t := time.NewTimer(giveUpTime)
	defer t.Stop()
	select {
	case <-settled:
	case <-t.C:
	}
}

// settle waits for the reply of a call that nobody waits for any more. Then its lane can be used
// again.
func (c *client) settle(l lane[request, reply], after late) {
	ctx := context.Background()
	err := l.Send(ctx, request{Method: cancel})
	var r reply
	if err == nil {
		r, err = l.Recv(ctx)
	}
	if err != nil {
		c.drop(l)
		return
	}
	c.put(l)
	if after != nil && (r.Err == nil || errors.Is(r.Err, ErrOwnerDied)) {
		if results, err := c.call(ctx, after(r.Results), nil); err == nil {
			releaseAll(c, results)
		}
	}
	releaseAll(c, r.Results)
}
