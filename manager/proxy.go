package manager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
)

// A proxy refers to an object in the server. Each kind of object has its own type that embeds a
// proxy. The package documentation describes the lifetime of the object.
type proxy struct{ ref *ref }

// A ref is the state of a proxy, shared by its copies. A cleanup releases its hold when the ref
// becomes unreachable.
type ref struct {
	*hold
	id    uint64
	owner uint64 // distinguishes the proxies of this process
	words words  // of an array on this machine
}

// A hold is the part of a ref that must be released, once: references to two blocks of the
// object, and a use of the client.
type hold struct {
	c          *client
	life, data arena.Handle
	closed     atomic.Bool
}

var owners atomic.Uint64

func newProxy(c *client, f form) proxy {
	r := &ref{hold: &hold{c: c, life: f.life, data: f.data}, id: f.id, owner: owners.Add(1)}
	if f.data != 0 {
		r.words = wordsIn(c.keeper, f.data)
	}
	runtime.AddCleanup(r, func(h *hold) { h.close() }, r.hold)
	return proxy{r}
}

func (h *hold) close() error {
	if h.closed.Swap(true) {
		return nil
	}
	err := h.c.Release(h.life)
	if h.data != 0 {
		err = errors.Join(err, h.c.Release(h.data))
	}
	h.c.dropUse()
	if errors.Is(err, arena.ErrClosed) {
		return nil // the domain was closed before
	}
	return err
}

// Close releases the reference to the object. Later calls return [ErrClosed]. A call in progress
// may fail: with [ErrNoObject] if this was the last proxy of the object in any process, and with
// [ErrClosed] if this was the last use of the server in this process. Close is idempotent.
func (p *proxy) Close() error {
	if p.ref == nil {
		return nil
	}
	return p.ref.close()
}

// openClient returns the proxy's client. The caller must keep p.ref reachable while it uses the
// client. It returns [ErrClosed] if the proxy is zero or closed, and the client with its error
// if the server is gone.
func (p *proxy) openClient() (*client, error) {
	if p.ref == nil || p.ref.closed.Load() {
		return nil, ErrClosed
	}
	return p.ref.c, p.ref.c.failureError()
}

// An answer is the outcome of a call: its results, or its error. The caller must pass it to one
// of oneResult, twoResults, allResults or noResult, which release or hand over the references of
// the results.
type answer struct {
	c     *client
	items []item
	err   error
}

func (p *proxy) call(ctx context.Context, method *method, args ...argument) answer {
	return p.callUndo(ctx, nil, method, args...)
}

// callUndo is like call, which calls a method of the object, waits for the answer, and releases
// args. If ctx is done before the call succeeds, the request that undo returns is sent to undo
// it; undo may be nil.
func (p *proxy) callUndo(ctx context.Context, undo late, method *method, args ...argument) answer {
	defer runtime.KeepAlive(p.ref)
	c, err := p.openClient()
	if err != nil {
		releaseArgs(args)
		return answer{err: err}
	}
	req := request{Object: p.ref.id, Method: method.name, Owner: p.ref.owner, Left: method.remainingTime(ctx)}
	if undo != nil {
		inner, id, owner := undo, req.Object, req.Owner
		undo = func(results []item) request {
			r := inner(results)
			r.Object, r.Owner = id, owner
			return r
		}
	}
	return c.invokeMethod(ctx, req, undo, args)
}

func (c *client) invokeMethod(ctx context.Context, req request, undo late, args []argument) answer {
	req.Args = make([]item, 0, len(args))
	_, abroad := c.keeper.(*far)
	for i, a := range args {
		if abroad {
			a = a.encodeByValue()
			args[i] = a
		}
		if a.err != nil {
			releaseArgs(args)
			return answer{err: fmt.Errorf("%w %d of %s: %w", ErrArgument, i, req.Method, a.err)}
		}
		req.Args = append(req.Args, a.item)
	}
	items, err := c.call(ctx, req, undo)
	for _, a := range args {
		a.releaseArg(err == nil)
	}
	return answer{c, items, err}
}

func releaseArgs(args []argument) {
	for _, a := range args {
		if a.err == nil {
			a.releaseArg(false)
		}
	}
}

// noResult returns the error of a call without results. It releases any results.
func (a answer) noResult() error {
	if a.c != nil {
		releaseAll(a.c, a.items)
	}
	return a.err
}

// oneResult decodes the only result of a call, or returns the error of the call. The caller must
// close the result's shared memory.
func oneResult[R any](a answer) (v R, err error) {
	if a.err != nil {
		return v, a.err
	}
	if len(a.items) != 1 {
		releaseAll(a.c, a.items)
		return v, fmt.Errorf("%w: got %d results, want 1", codec.ErrFormat, len(a.items))
	}
	return unpackItem[R](a.c, a.items[0])
}

// twoResults decodes the two results of a call, or returns the error of the call. The caller
// must close their shared memory.
func twoResults[A, B any](a answer) (x A, y B, err error) {
	if a.err != nil {
		return x, y, a.err
	}
	if len(a.items) != 2 {
		releaseAll(a.c, a.items)
		return x, y, fmt.Errorf("%w: got %d results, want 2", codec.ErrFormat, len(a.items))
	}
	if x, err = unpackItem[A](a.c, a.items[0]); err != nil {
		releaseAll(a.c, a.items[1:])
		return x, y, err
	}
	y, err = unpackItem[B](a.c, a.items[1])
	return x, y, err
}

// allResults decodes all results of a call as values of type R, or returns the error of the
// call. The caller must close their shared memory. If one of them cannot be decoded, it returns
// nil and the error.
func allResults[R any](a answer) (vs []R, err error) {
	for i, it := range a.items {
		v, e := unpackItem[R](a.c, it)
		if e != nil {
			releaseAll(a.c, a.items[i+1:])
			return nil, e
		}
		vs = append(vs, v)
	}
	return vs, a.err
}

// typed is a proxy that is sent to other processes under the name of the type T, the type that
// embeds it, so that it is not received as another type.
type typed[T any] struct{ proxy }

// A counted is the proxy of an object with a number of elements, sent as a T like [typed].
type counted[T any] struct{ typed[T] }

// countedLen is the method that returns the number of elements.
var countedLen = &method{name: "len"}

// Len returns the number of elements.
func (p *counted[T]) Len(ctx context.Context) (int, error) {
	return oneResult[int](p.call(ctx, countedLen))
}

// createTyped creates an object of kind k in the server of m and returns its proxy, which the
// caller must close. It releases args.
func createTyped[T any](ctx context.Context, m *Manager, k *kind, args ...argument) (typed[T], error) {
	p, err := m.createObject(ctx, k, args...)
	return typed[T]{p}, err
}

// A traveler is a type of this package that encodes and decodes itself.
type traveler interface {
	marshalWire(e *codec.Encoder) error
	unmarshalWire(d *codec.Decoder) error
}

func init() { codec.CustomMethods(traveler.marshalWire, traveler.unmarshalWire) }

// marshalWire encodes the proxy. The receiver gets its own proxy.
func (p *typed[T]) marshalWire(e *codec.Encoder) error { return p.marshal(e, typeName[T]()) }

// unmarshalWire decodes a proxy. It returns [ErrType] if it is a proxy of another type.
func (p *typed[T]) unmarshalWire(d *codec.Decoder) error { return p.unmarshal(d, typeName[T]()) }

// typeName returns a name that distinguishes the types of proxies. For generic types it includes
// the full paths of the type arguments.
func typeName[T any]() string { return reflect.TypeFor[T]().Name() }

// proxyTags describes the encoding: [type name, form].
var proxyTags = &codec.Tags{Type: "proxy", Fields: []int{2}}

// marshal encodes the proxy with the name of its type. It returns [ErrClosed] if the proxy is
// closed.
func (p *proxy) marshal(e *codec.Encoder, name string) error {
	c, err := p.openClient()
	if err != nil && p.ref == nil || errors.Is(err, ErrClosed) {
		return fmt.Errorf("send proxy: %w", ErrClosed)
	}
	r := p.ref
	e.OnDone(codec.WatcherFunc(func(bool) { runtime.KeepAlive(r) }))
	e.Tag(proxyTags, 0)
	e.String(name)
	f := form{id: r.id, life: r.life, data: r.data, address: c.address}
	return f.encodeForm(e)
}

func (p *proxy) unmarshal(d *codec.Decoder, name string) error {
	if err := d.OnlyTag(proxyTags); err != nil {
		return err
	}
	found, err := d.String()
	if err != nil {
		return err
	}
	if found != name {
		return fmt.Errorf("%w: got %s, want %s", ErrType, found, name)
	}
	return p.decodeForm(d)
}

// decodeForm decodes a form and sets p to a new proxy for it. If the decoded message is not
// kept, the proxy is closed.
func (p *proxy) decodeForm(d *codec.Decoder) error {
	f, c, err := readForm(d)
	if err != nil {
		return err
	}
	*p = newProxy(c, f)
	h := p.ref.hold
	d.OnDone(codec.WatcherFunc(func(kept bool) {
		if !kept {
			h.close()
		}
	}))
	return nil
}
