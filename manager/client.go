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

// An address identifies a server within its domain. It owns references to the two rings, unless
// they are 0: then only a process that has a client for the server can use the address.
type address struct {
	server [16]byte
	pid    int
	accept arena.Handle // ring that receives hellos
	alive  arena.Handle // ring of a beacon that goes out when the server dies
}

// A client is this process's connection to one server. It is shared by all proxies and managers for
// that server, and ends with the last of them.
type client struct {
	address
	keeper
	session [16]byte
	dial    func(ctx context.Context) (lane[request, reply], error)
	shut    func()                          // releases the resources of dial
	how     func(ctx context.Context) error // how the server process ended, if this process started it; or nil
	hellos  *arena.Ring                     // view of accept

	failed atomic.Pointer[error] // why no more calls are possible
	fails  sync.Once

	mu     sync.Mutex
	uses   int
	anchor lane[request, reply]   // never used; keeps the session alive without other lanes
	idle   []lane[request, reply] // most recently used last
	lanes  map[lane[request, reply]]struct{}
}

// clients contains this process's clients of servers in the same domain, by server id.
var clients struct {
	mu  sync.Mutex
	set map[[16]byte]*client
}

// acquireClient returns the client for the server at a, and increments its use count; the caller
// must call dropUse. It takes ownership of the references in a, also if it returns an error. It
// returns [ErrForeign] if a has no rings and the server is not known yet.
func acquireClient(a address) (*client, error) {
	d, err := arena.Default()
	if err != nil {
		return nil, err
	}
	clients.mu.Lock()
	defer clients.mu.Unlock()
	if c := clients.set[a.server]; c != nil {
		c.uses++
		return c, errors.Join(a.releaseBlocks(d))
	}
	if a.accept == 0 {
		return nil, fmt.Errorf("%w: this process has no connection to it", ErrForeign)
	}
	c, err := newClient(d, a)
	if err != nil {
		return nil, errors.Join(err, a.releaseBlocks(d))
	}
	if clients.set == nil {
		clients.set = make(map[[16]byte]*client)
	}
	clients.set[a.server] = c
	return c, nil
}

func (a address) releaseBlocks(k keeper) (err error) {
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
			c.handleLoss()
		}
	})
	c.hellos = accept
	c.dial = func(ctx context.Context) (lane[request, reply], error) {
		return c.announceLane(ctx, c.session, os.Getpid())
	}
	c.shut = func() {
		end()
		alive.Close()
		accept.Close()
		watching.Wait()
		a.releaseBlocks(d)
	}
	return c, nil
}

// announceLane creates a lane, announces its other end to the server for the given session and
// process id, and returns this end. The caller must close it. It returns the error of
// [client.handleLoss] if the server is gone.
func (c *client) announceLane(ctx context.Context, session [16]byte, pid int) (lane[request, reply], error) {
	ours, theirs, err := ipc.Pipe[request, reply]()
	if err != nil {
		return nil, err
	}
	a := encodeArg(hello{Session: session, PID: pid, Lane: theirs})
	if err = a.err; err == nil {
		err = c.hellos.Put(ctx, a.body, a.blocks, false)
		a.releaseArg(err == nil)
	}
	err = errors.Join(err, theirs.Close())
	if err != nil {
		ours.Close()
		if errors.Is(err, arena.ErrFinished) {
			return nil, c.handleLoss()
		}
		return nil, err
	}
	return ours, nil
}

// addUse increments the use count. The caller must already have a use, and must call dropUse
// later.
func (c *client) addUse() {
	clients.mu.Lock()
	defer clients.mu.Unlock()
	c.uses++
}

// dropUse decrements the use count. The last dropUse ends the client: its calls return
// [ErrClosed], and its resources are released.
func (c *client) dropUse() {
	clients.mu.Lock()
	c.uses--
	last := c.uses == 0
	if last && clients.set[c.server] == c {
		delete(clients.set, c.server)
	}
	clients.mu.Unlock()
	if last {
		c.abortCalls(ErrClosed)
		c.shut()
	}
}

// handleLoss is called when the server appears to be gone. It aborts all calls and returns the
// error for callers, which wraps [ErrServerDied], or [ErrClosed] if the client was closed
// before. It may wait up to 10 seconds for the reason of the server's exit.
func (c *client) handleLoss() error { return c.handleLossBy(nil) }

// handleLossBy is like [client.handleLoss]. end is the error of a stream to another machine, or
// nil; its text identifies the host.
func (c *client) handleLossBy(end error) error {
	c.fails.Do(func() {
		c.mu.Lock()
		how := c.how
		c.mu.Unlock()
		var cause error
		if how != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			cause = how(ctx) // the kernel has reported the exit, or is about to
		}
		if how == nil && end != nil && c.hellos == nil {
			// without %w, because it must not match ErrClosed
			cause = fmt.Errorf("connection lost: %v: connect again", end)
		}
		c.abortCalls(serverDied(c.pid, cause))
	})
	return c.failureError()
}

// abortCalls closes all lanes, which aborts the calls in progress. Later calls return err, or
// the error of an earlier abortCalls.
func (c *client) abortCalls(err error) {
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

func (c *client) failureError() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// acquireLane returns an idle lane, or dials a new one. The caller must return it with
// releaseLane, or with closeLane after an error. It returns the error of the client's failure,
// if any. A lane carries one call at a time.
func (c *client) acquireLane(ctx context.Context) (lane[request, reply], error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		l := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return l, nil
	}
	anchored := c.anchor != nil
	c.mu.Unlock()
	if err := c.failureError(); err != nil {
		return nil, err
	}
	if !anchored {
		l, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.setAnchor(l)
	}
	l, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.failureError(); err != nil {
		l.Close()
		return nil, err
	}
	if c.lanes == nil {
		c.lanes = make(map[lane[request, reply]]struct{})
	}
	c.lanes[l] = struct{}{}
	return l, nil
}

// setAnchor makes l the anchor, which keeps the session alive while no other lane is open. It
// closes l if there is an anchor already or the client has failed.
func (c *client) setAnchor(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.anchor != nil || c.failureError() != nil {
		l.Close()
		return
	}
	c.anchor = l
}

func (c *client) releaseLane(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.lanes[l]; ok {
		c.idle = append(c.idle, l)
	}
}

func (c *client) closeLane(l lane[request, reply]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.lanes, l)
	l.Close()
}

// A late function returns the request that undoes a call, from the results of that call, which
// it must not retain. It is used if the caller stopped waiting before the call succeeded.
type late func(results []item) request

// call sends a request and waits for its reply. If ctx belongs to a transaction of c, the call
// is part of it. The caller owns the references of the results.
//
// If the deadline of ctx has already passed, the call is still executed if it does not need to
// block.
//
// If ctx is done first, call notifies the server, waits for it at most [giveUpTime], and returns
// an error that wraps the cause of ctx. If the server executed the call nevertheless, the
// request returned by after, if not nil, undoes it. Other calls may or may not have been
// executed.
func (c *client) call(ctx context.Context, req request, after late) ([]item, error) {
	if err := c.failureError(); err != nil {
		return nil, err
	}
	if t := c.transaction(ctx); t != nil {
		r, err := t.call(ctx, req)
		return c.callResult(ctx, req.Method, r, err)
	}
	switch ctx.Err() {
	case nil:
		return c.roundTrip(ctx, req, after, false)
	case context.DeadlineExceeded:
		return c.callNow(ctx, req, after)
	}
	return nil, unsent{contextError(ctx, req.Method)}
}

// nowTime limits a call after its deadline, which waits only for the server itself.
const nowTime = time.Second

// callNow makes a call after the deadline of ctx, so it must not block in the server: if it
// would, callNow returns the error of ctx. It cancels the call right after sending it: the
// server checks for a cancellation only when a call has to block.
func (c *client) callNow(ctx context.Context, req request, after late) ([]item, error) {
	limit, end := context.WithTimeout(context.WithoutCancel(ctx), nowTime)
	defer end()
	results, err := c.roundTrip(limit, req, after, true)
	if errors.Is(err, context.Canceled) || limit.Err() != nil {
		err = contextError(ctx, req.Method)
	}
	return results, err
}

// roundTrip sends a request and waits for the reply. If now is true, it sends a cancellation
// right after the request. The error is an [unsent] if it is certain that the server did not
// receive the request. For after, see [client.call].
func (c *client) roundTrip(ctx context.Context, req request, after late, now bool) ([]item, error) {
	l, err := c.acquireLane(ctx)
	if err != nil {
		return nil, unsent{err}
	}
	err = l.Send(ctx, req)
	if err != nil && !errors.Is(err, ipc.ErrClosed) {
		if ctx.Err() != nil {
			c.closeLane(l) // a stream is closed if ctx ended within the request
		} else {
			c.releaseLane(l)
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
		c.abandonCall(l, after)
		return nil, contextError(ctx, req.Method)
	}
	if err == nil {
		c.releaseLane(l)
	} else {
		c.closeLane(l)
	}
	return c.callResult(ctx, req.Method, r, err)
}

// An unsent error means that the server did not receive the request, so the call has no effect.
// It wraps the reason.
type unsent struct{ error }

func (u unsent) Unwrap() error { return u.error }

func contextError(ctx context.Context, method string) error {
	return fmt.Errorf("manager: %s: %w", method, context.Cause(ctx))
}

// callResult returns the results of the call of method, with reply r, or its error. err is the
// error of receiving the reply. If the lane was closed, the server is gone, and callResult
// returns the error of handleLoss.
func (c *client) callResult(ctx context.Context, method string, r reply, err error) ([]item, error) {
	switch {
	case err == nil && r.Err == nil:
		return r.Results, nil
	case err == nil:
		releaseAll(c, r.Results)
		return nil, r.Err
	case errors.Is(err, ipc.ErrClosed):
		return nil, c.handleLossBy(err)
	case ctx.Err() != nil:
		return nil, contextError(ctx, method)
	}
	return nil, fmt.Errorf("reply of %s: %w", method, err)
}

// giveUpTime is how long a caller waits after its context is done until the server has handled the
// cancellation, so that normally no effect of the call remains when it returns.
const giveUpTime = 100 * time.Millisecond

func (c *client) abandonCall(l lane[request, reply], after late) {
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		c.cancelAndUndo(l, after)
	}()
	t := time.NewTimer(giveUpTime)
	defer t.Stop()
	select {
	case <-settled:
	case <-t.C:
	}
}

// cancelAndUndo cancels the call in progress on lane l, because its caller has stopped waiting,
// and receives its reply. If the call succeeded nevertheless and after is not nil, it makes the
// call that undoes it. It returns l to the idle lanes, or closes it after an error.
func (c *client) cancelAndUndo(l lane[request, reply], after late) {
	ctx := context.Background()
	err := l.Send(ctx, request{Method: cancel})
	var r reply
	if err == nil {
		r, err = l.Recv(ctx)
	}
	if err != nil {
		c.closeLane(l)
		return
	}
	c.releaseLane(l)
	if after != nil && (r.Err == nil || errors.Is(r.Err, ErrOwnerDied)) {
		if results, err := c.call(ctx, after(r.Results), nil); err == nil {
			releaseAll(c, results)
		}
	}
	releaseAll(c, r.Results)
}
