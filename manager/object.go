package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/goexit"
)

// An object is a value in the server, to which clients have proxies.
type object struct {
	id   uint64
	kind *kind
	life *beacon      // goes out when no process has a proxy
	data arena.Handle // block that clients read without a call, or 0

	mu      sync.Mutex // held by a running call, but not while it is blocked
	state   any
	changed signal
	gone    bool // disposed of: no process has a proxy
}

// A kind is a type of objects: its constructor and its methods. For each object they run one at
// a time. Kinds are made by package initializers and do not change after that.
type kind struct {
	name    string
	make    func(c *call) (any, error)
	create  *method // timed if the constructor has a context
	methods map[string]*method
}

// kinds contains the kinds that a server can create, by name: the kinds of this package, and the
// types added by Register. Both use newKind and define.
var kinds = map[string]*kind{}

// newKind adds a kind without methods to kinds, under name, and returns it. make is the
// constructor: it returns the state of a new object from the arguments of the call. It panics if
// the name is empty or already taken.
func newKind(name string, make func(c *call) (any, error)) *kind {
	if name == "" || kinds[name] != nil {
		panic(fmt.Sprintf("manager: type name %q is empty or already taken", name))
	}
	k := &kind{name: name, make: make, create: &method{name: "new"}, methods: map[string]*method{}}
	kinds[name] = k
	return k
}

// A method is a named operation of a kind. A client names it in a request, and the server runs it.
type method struct {
	name  string
	run   func(state any, c *call) error
	timed bool // has a context, with the deadline of the caller
}

// remainingTime returns the time until the deadline of ctx, but at least a nanosecond, if m is
// timed and ctx has a deadline. Otherwise it returns 0.
func (m *method) remainingTime(ctx context.Context) time.Duration {
	at, ok := ctx.Deadline()
	if !m.timed || !ok {
		return 0
	}
	return max(1, time.Until(at))
}

// newRequest returns a request for the method on object 0. The caller may set another object.
// The request does not take ownership of args.
func (m *method) newRequest(args []item) request { return request{Method: m.name, Args: args} }

// bareRequest returns a request for the method without arguments. It ignores its parameter, so
// that it can be used as a [late].
func (m *method) bareRequest([]item) request { return m.newRequest(nil) }

// defineMethod adds a method to a kind and returns it. run executes it, with the state of the
// object and the call; it adds results to the call, and its error is the error of the call. S is
// the type of the state of its objects.
func defineMethod[S any](k *kind, name string, run func(S, *call) error) *method {
	m := &method{name: name, run: func(state any, c *call) error { return run(state.(S), c) }}
	k.methods[name] = m
	return m
}

// errWait is returned by a method that must wait for a change of its object. The method must not
// have changed anything. It is called again after the change.
var errWait = errors.New("wait")

// Optional interfaces of the state of an object.
type (
	// A saver can be rolled back. Other objects cannot take part in transactions.
	saver interface{ saveState(k keeper) undo }
	// A leaver tracks locks, permits or tasks of clients.
	leaver interface{ endSession(s *session) }
	// A closer owns items.
	closer interface{ close(k keeper) }
	// A sharer has data that clients read from shared memory.
	sharer interface{ sharedBlock() arena.Handle }
)

// A call is a request that is being served.
type call struct {
	*request
	s    *server
	lane *served
	obj  *object

	results []item
	arrived any    // state of a blocked method between its runs
	abandon func() // undoes the effect of arrived if the call is canceled; called with obj.mu held
	ctx     context.Context
	stop    func()
}

func (c *call) session() *session { return c.lane.session }

// runMethod runs m until it no longer needs to wait, and returns its error. It returns the cause
// if the call is canceled or its client is gone while the method waits, and [ErrTxn] if the
// method would wait in a transaction. The call's results are in c.results.
func (c *call) runMethod(m *method) error {
	for {
		if err := c.s.gate.admitCall(c); err != nil {
			c.undoWait() // the call may have waited before
			return err
		}
		changed, err := c.runAdmitted(m)
		if err != errWait {
			return err
		}
		if c.lane.txn != nil {
			return fmt.Errorf("%w: %s.%s would block", ErrTxn, c.obj.kind.name, c.Method)
		}
		if err := c.awaitChange(changed); err != nil {
			c.undoWait()
			return err
		}
	}
}

// runAdmitted runs m once for a call that the gate has admitted, and ends the admission. With
// errWait, changed is closed at the next change of the object; otherwise it is nil.
func (c *call) runAdmitted(m *method) (changed <-chan struct{}, err error) {
	defer c.s.gate.endCall(c) // even if the method calls runtime.Goexit
	return c.runOnce(m)
}

func (c *call) runOnce(m *method) (changed <-chan struct{}, err error) {
	c.obj.mu.Lock()
	defer c.obj.mu.Unlock()
	if c.obj.gone {
		return nil, fmt.Errorf("%w: object %d was closed", ErrNoObject, c.Object)
	}
	if t := c.lane.txn; t != nil {
		if err := t.saveObject(c.obj); err != nil {
			return nil, err
		}
	}
	if err = c.recoverPanic(func() error { return m.run(c.obj.state, c) }); err == errWait {
		return c.obj.changed.changeChan(), err
	}
	c.obj.changed.broadcast()
	return nil, err
}

// undoWait undoes the effect of a blocked call that stops waiting, by its abandon function, if
// any. The caller must not hold the object's mutex.
func (c *call) undoWait() {
	c.obj.mu.Lock()
	defer c.obj.mu.Unlock()
	if c.abandon != nil {
		c.abandon()
		c.obj.changed.broadcast()
	}
}

// recoverPanic runs f and returns its error, or a *[PanicError] if f panics.
func (c *call) recoverPanic(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			name := "manager"
			if c.obj != nil {
				name = c.obj.kind.name
			}
			err = &PanicError{Object: name, Method: c.Method, Text: panicText(p), Stack: panicStack(debug.Stack())}
		}
	}()
	return f()
}

// goexitError returns the error of a call that ended with runtime.Goexit.
func (c *call) goexitError() error {
	return &PanicError{Object: c.obj.kind.name, Method: c.Method, Text: goexit.Err.Error()}
}

// panicText returns the printed value p of a panic. If the value's Error or String method panics
// as well, it returns a text that says so.
func panicText(p any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("%T: its Error or String method panicked", p)
		}
	}()
	return fmt.Sprint(p)
}

// panicStack returns the stack without the frames of the recovery, which precede the call of
// panic.
func panicStack(stack []byte) string {
	s := string(stack)
	if _, after, ok := strings.Cut(s, "\npanic("); ok {
		s = "panic(" + after
	}
	return s
}

// awaitChange blocks until changed is closed, and then returns nil. If the client cancels the
// call, its deadline passes or the client is gone first, it returns the cause.
func (c *call) awaitChange(changed <-chan struct{}) error {
	ctx := c.callContext()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errGone is the cancellation cause of a call after its client has died.
var errGone = errors.New("manager: the client disconnected")

// callContext returns a context that is canceled when the client cancels the call or is gone.
// Its deadline is the one that the client has sent, if any. From the first callContext of a call
// until endCall, a goroutine receives from the lane.
func (c *call) callContext() context.Context {
	if c.ctx != nil {
		return c.ctx
	}
	ctx, end := context.WithCancelCause(c.s.ctx)
	heard, stop := make(chan struct{}), context.CancelFunc(func() {})
	lane := ctx
	if c.Left > 0 {
		ctx, stop = context.WithTimeout(ctx, c.Left)
	}
	go func() {
		defer close(heard)
		if _, err := c.lane.lane.Recv(lane); err != nil {
			end(errGone)
		}
		end(context.Canceled) // the only valid message during a call is a cancellation
	}()
	c.ctx, c.stop = ctx, func() { end(nil); <-heard; stop() }
	return ctx
}

// endCall ends the call and releases its arguments. Afterwards no goroutine receives from the
// lane.
func (c *call) endCall() {
	if c.stop != nil {
		c.stop()
	}
	releaseAll(c.s.d, c.Args)
}

// decodeArg decodes argument i as a T, and takes ownership of its references, so each argument
// with blocks may be decoded once. It returns [ErrArgument] if the argument is missing or of
// another type.
func decodeArg[T any](c *call, i int) (v T, err error) {
	if i >= len(c.Args) {
		return v, fmt.Errorf("%w: %s.%s got only %d arguments", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	it := c.Args[i]
	c.Args[i].blocks = nil // owned by the value, or released
	if v, err = unpackItem[T](c.s.d, it); err != nil {
		return v, fmt.Errorf("%w %d of %s.%s: %w", ErrArgument, i, c.obj.kind.name, c.Method, err)
	}
	return v, nil
}

// takeArg transfers argument i to the caller, which then owns its references. It returns
// [ErrArgument] if the call has fewer arguments.
func (c *call) takeArg(i int) (it item, err error) {
	if i >= len(c.Args) {
		return it, fmt.Errorf("%w: %s.%s got only %d arguments", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	it, c.Args[i] = c.Args[i], item{body: c.Args[i].body}
	return it, nil
}

// keyArg returns the encoding of argument i as a key. It returns [ErrArgument] if the key refers to
// shared memory.
func (c *call) keyArg(i int) (string, error) {
	if i >= len(c.Args) {
		return "", fmt.Errorf("%w: %s.%s got only %d arguments", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	if len(c.Args[i].blocks) != 0 {
		return "", fmt.Errorf("%w %d of %s.%s: key refers to shared memory, want a plain value", ErrArgument, i,
			c.obj.kind.name, c.Method)
	}
	return string(c.Args[i].body), nil
}

// addItemResult adds an item to the results, with references of its own. The caller keeps its
// item.
func (c *call) addItemResult(it item) error {
	it, err := it.retain(c.s.d)
	if err == nil {
		c.results = append(c.results, it)
	}
	return err
}

// addResult adds a value without blocks to the results.
func addResult[T any](c *call, v T) error {
	a, err := packArg(v)
	if err != nil {
		return err
	}
	c.results = append(c.results, a.takeItem())
	return nil
}
