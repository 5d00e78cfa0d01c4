package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/shoal-mp/shoal/internal/arena"
)

// An object is a value in the server.
type object struct {
	id   uint64
	kind *kind
	life *beacon      // over when nobody has a proxy any more
	data arena.Handle // what clients read without a call, or 0

	mu      sync.Mutex // held by a call; never while it waits
	state   any
	changed signal
	gone    bool // nobody has a proxy any more
}

// A kind is what objects of one sort can do. make and the methods run one at a time for each
// object.
type kind struct {
	name    string
	make    func(c *call) (any, error)
	methods map[string]*method
}

// kinds are what a server can make, by name: the kinds of this package, and those that Register has
// added by the same two calls, newKind and define.
var kinds = map[string]*kind{}

// newKind makes a kind that has no methods yet, and makes it known.
func newKind(name string, make func(c *call) (any, error)) *kind {
	if name == "" || kinds[name] != nil {
		panic(fmt.Sprintf("manager: the name %q of a type is empty or taken", name))
	}
	k := &kind{name: name, make: make, methods: map[string]*method{}}
	kinds[name] = k
	return k
}

// A method is one of a kind. A client names it in its request, and the server runs it.
type method struct {
	name string
	run  func(state any, c *call) error
}

// with is a request for it, on object 0 unless the caller says another.
func (m *method) with(args []item) request { return request{Method: m.name, Args: args} }

// alone is with for a method without arguments, in the place of what takes results.
func (m *method) alone([]item) request { return m.with(nil) }

// define adds a method to a kind whose objects have a state of type S.
func define[S any](k *kind, name string, run func(S, *call) error) *method {
	m := &method{name, func(state any, c *call) error { return run(state.(S), c) }}
	k.methods[name] = m
	return m
}

// errWait is returned by a method that has changed nothing and has to wait for a change of its
// object. Then it is called again.
var errWait = errors.New("wait")

// What the state of an object may have besides methods.
type (
	// A saver can be undone. Those that are not cannot take part in transactions.
	saver interface{ save(k keeper) undo }
	// A leaver keeps in mind which client holds what.
	leaver interface{ leave(s *session) }
	// A closer holds items.
	closer interface{ close(k keeper) }
	// A sharer keeps its data where clients read it.
	sharer interface{ shared() arena.Handle }
)

// A call is one request that is being served.
type call struct {
	*request
	s    *server
	lane *served
	obj  *object

	results []item
	arrived any    // what a waiting method wants to find again
	abandon func() // undoes its arrival when it stops waiting; runs under the object's lock
	ctx     context.Context
	stop    func()
}

func (c *call) session() *session { return c.lane.session }

// run calls a method until it need not wait any more.
func (c *call) run(m *method) error {
	for {
		if err := c.s.gate.enter(c); err != nil {
			c.leave() // it may have waited before
			return err
		}
		changed, err := c.once(m)
		c.s.gate.leave(c)
		if err != errWait {
			return err
		}
		if c.lane.txn != nil {
			return fmt.Errorf("%w: %s.%s would wait", ErrTxn, c.obj.kind.name, c.Method)
		}
		if err := c.await(changed); err != nil {
			c.leave()
			return err
		}
	}
}

func (c *call) once(m *method) (changed <-chan struct{}, err error) {
	c.obj.mu.Lock()
	defer c.obj.mu.Unlock()
	if c.obj.gone {
		return nil, fmt.Errorf("%w: number %d was closed", ErrNoObject, c.Object)
	}
	if t := c.lane.txn; t != nil {
		if err := t.touch(c.obj); err != nil {
			return nil, err
		}
	}
	if err = c.guard(func() error { return m.run(c.obj.state, c) }); err == errWait {
		return c.obj.changed.wait(), err
	}
	c.obj.changed.fire()
	return nil, err
}

// leave is the end of a call that does not wait any longer.
func (c *call) leave() {
	c.obj.mu.Lock()
	defer c.obj.mu.Unlock()
	if c.abandon != nil {
		c.abandon()
		c.obj.changed.fire()
	}
}

// guard makes a panic of f an error.
func (c *call) guard(f func() error) (err error) {
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

// panicText prints a value whose methods may panic.
func panicText(p any) (s string) {
	defer func() {
		if recover() != nil {
			s = fmt.Sprintf("a %T whose text panics", p)
		}
	}()
	return fmt.Sprint(p)
}

// panicStack leaves out the frames of the recovering itself.
func panicStack(stack []byte) string {
	s := string(stack)
	if _, after, ok := strings.Cut(s, "\npanic("); ok {
		s = "panic(" + after
	}
	return s
}

// await waits for a change, until the client cancels the call or is gone.
func (c *call) await(changed <-chan struct{}) error {
	ctx := c.context()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errGone is why a call ends whose client is not there any more.
var errGone = errors.New("manager: the client is gone")

// context returns one that ends when the client cancels the call or is gone. From here on somebody
// listens to the lane.
func (c *call) context() context.Context {
	if c.ctx != nil {
		return c.ctx
	}
	ctx, end := context.WithCancelCause(c.s.ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if _, err := c.lane.lane.Recv(ctx); err != nil {
			end(errGone)
		}
		end(context.Canceled) // there is nothing else that a client may say now
	}()
	c.ctx, c.stop = ctx, func() { end(nil); <-heard }
	return ctx
}

// end is the end of the call. Nobody listens to the lane after it.
func (c *call) end() {
	if c.stop != nil {
		c.stop()
	}
	releaseAll(c.s.d, c.Args)
}

// arg decodes an argument.
func arg[T any](c *call, i int) (v T, err error) {
	if i >= len(c.Args) {
		return v, fmt.Errorf("%w: %s.%s has %d of them", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	it := c.Args[i]
	c.Args[i].blocks = nil // what it held is the value's, or released
	if v, err = unpack[T](c.s.d, it); err != nil {
		return v, fmt.Errorf("%w %d of %s.%s: %w", ErrArgument, i, c.obj.kind.name, c.Method, err)
	}
	return v, nil
}

// item hands over an argument as it is.
func (c *call) item(i int) (it item, err error) {
	if i >= len(c.Args) {
		return it, fmt.Errorf("%w: %s.%s has %d of them", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	it, c.Args[i] = c.Args[i], item{body: c.Args[i].body}
	return it, nil
}

// key returns the bytes of an argument that is a key, which holds nothing.
func (c *call) key(i int) (string, error) {
	if i >= len(c.Args) {
		return "", fmt.Errorf("%w: %s.%s has %d of them", ErrArgument, c.obj.kind.name, c.Method, len(c.Args))
	}
	if len(c.Args[i].blocks) != 0 {
		return "", fmt.Errorf("%w %d of %s.%s: a key cannot hold shared memory", ErrArgument, i,
			c.obj.kind.name, c.Method)
	}
	return string(c.Args[i].body), nil
}

// give adds a copy of an item to the results.
func (c *call) give(it item) error {
	it, err := it.retain(c.s.d)
	if err == nil {
		c.results = append(c.results, it)
	}
	return err
}

// give adds a value without blocks to the results.
func give[T any](c *call, v T) error {
	a, err := pack(v)
	if err != nil {
		return err
	}
	c.results = append(c.results, a.own())
	return nil
}
