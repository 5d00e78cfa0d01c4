package torch

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
)

// slice is how long a call waits at the server before it is made again. So no call is given up
// there whose result would be lost.
const slice = 0.1 // seconds

// isRemote reports whether an error is an exception of one of the classes.
func isRemote(err error, classes ...string) bool {
	var remote *RemoteError
	if !errors.As(err, &remote) {
		return false
	}
	return slices.Contains(classes, remote.Class)
}

// repeat makes a call that waits for at most a slice again and again, until it is done or ctx is.
func repeat(ctx context.Context, call func(ctx context.Context) (done bool, err error)) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if done, err := call(context.WithoutCancel(ctx)); done || err != nil {
			return err
		}
	}
}

// wait repeats a method that returns whether it has what it waits for.
func (p *Proxy) wait(ctx context.Context, method string, args ...any) error {
	return repeat(ctx, func(ctx context.Context) (bool, error) { return As[bool](p.Call(ctx, method, args...)) })
}

func (p *Proxy) do(ctx context.Context, method string, args ...any) error {
	_, err := p.Call(ctx, method, args...)
	return err
}

// as returns a proxy with the methods of a type, or nil if no proxy has that type.
func (p *Proxy) as(t reflect.Type) any {
	switch t {
	case reflect.TypeFor[*Proxy]():
		return p
	case reflect.TypeFor[Container]():
		return Container{p}
	case reflect.TypeFor[Queue]():
		return queueProxy{p}
	case reflect.TypeFor[Event]():
		return eventProxy{p}
	case reflect.TypeFor[Semaphore]():
		return semaphoreProxy{p}
	case reflect.TypeFor[Cond]():
		return condProxy{semaphoreProxy{p}}
	}
	return nil
}

// A Container is a proxy of a dict, a list, an Array or a Namespace. The keys of a dict are any
// that Python allows. The keys of a list and an Array are numbers; negative numbers count from the
// end. The keys of a Namespace are names.
type Container struct{ *Proxy }

// Dict makes a dict. The caller closes the Container.
func (m *Manager) Dict(ctx context.Context) (Container, error) {
	return As[Container](m.Create(ctx, "dict"))
}

// List makes a list. The caller closes the Container.
func (m *Manager) List(ctx context.Context, items ...any) (Container, error) {
	return As[Container](m.Create(ctx, "list", sequenceOf(items)))
}

// Array makes an array.array of the elements' typecode, such as "d" for float64. The caller closes
// the Container.
func (m *Manager) Array(ctx context.Context, typecode string, items ...any) (Container, error) {
	return As[Container](m.Create(ctx, "Array", typecode, sequenceOf(items)))
}

// Namespace makes a Namespace. The caller closes the Container.
func (m *Manager) Namespace(ctx context.Context) (Container, error) {
	return As[Container](m.Create(ctx, "Namespace"))
}

// sequenceOf is an empty list of no items, and not None.
func sequenceOf(items []any) []any { return append([]any{}, items...) }

// access calls the method of Python's that gets, sets or deletes.
func (c Container) access(what string) string {
	if c.class == proxyClasses["Namespace"] {
		return map[string]string{"get": "__getattribute__", "set": "__setattr__", "del": "__delattr__"}[what]
	}
	return "__" + what + "item__"
}

// missing reports whether an error says that there is no such key.
func missing(err error) bool {
	return isRemote(err, "builtins.KeyError", "builtins.IndexError", "builtins.AttributeError")
}

// Get returns the value of a key, and whether there is such a key.
func (c Container) Get(ctx context.Context, key any) (v any, ok bool, err error) {
	v, err = c.Call(ctx, c.access("get"), key)
	if missing(err) {
		return nil, false, nil
	}
	return v, err == nil, err
}

// Set sets the value of a key. If a list or an Array has no such item, the error is a *RemoteError.
func (c Container) Set(ctx context.Context, key, value any) error {
	return c.do(ctx, c.access("set"), key, value)
}

// Delete removes a key, and reports whether it was there.
func (c Container) Delete(ctx context.Context, key any) (ok bool, err error) {
	err = c.do(ctx, c.access("del"), key)
	if missing(err) {
		return false, nil
	}
	return err == nil, err
}

// Append appends an item to a list. The error is a *RemoteError for other containers.
func (c Container) Append(ctx context.Context, v any) error { return c.do(ctx, "append", v) }

// Len returns the number of items. The error is a *RemoteError for a Namespace.
func (c Container) Len(ctx context.Context) (int, error) { return As[int](c.Call(ctx, "__len__")) }

// All returns the items of a dict. The error is a *RemoteError for other containers.
func (c Container) All(ctx context.Context) (*python.Dict, error) {
	return As[*python.Dict](c.Call(ctx, "copy"))
}

// Value makes a Value of a typecode, such as "d" for float64. Its methods are "get" and "set":
//
//	x, err := torch.As[float64](v.Call(ctx, "get"))
//	_, err = v.Call(ctx, "set", 2.5)
//
// The caller closes the Proxy.
func (m *Manager) Value(ctx context.Context, typecode string, v any) (*Proxy, error) {
	return m.Create(ctx, "Value", typecode, v)
}

// A queueProxy is a proxy of a queue.Queue.
type queueProxy struct{ *Proxy }

// Queue makes a queue.Queue with room for size items, or for any number if size is 0. The caller
// closes the Queue.
func (m *Manager) Queue(ctx context.Context, size int) (Queue, error) {
	return As[Queue](m.Create(ctx, "Queue", size))
}

func (q queueProxy) Put(ctx context.Context, v any) error {
	return repeat(ctx, func(ctx context.Context) (bool, error) {
		err := q.do(ctx, "put", v, true, slice)
		if isRemote(err, "queue.Full", "_queue.Full") {
			return false, nil
		}
		return true, err
	})
}

func (q queueProxy) Get(ctx context.Context) (v any, err error) {
	err = repeat(ctx, func(ctx context.Context) (bool, error) {
		var err error
		v, err = q.Call(ctx, "get", true, slice)
		if isRemote(err, "queue.Empty", "_queue.Empty") {
			return false, nil
		}
		return true, err
	})
	if err == nil && v == nil {
		// CPython's server answers None to the first request that it has not heard when it ends. So
		// a server that still knows the queue has to confirm a None.
		_, err = q.Len(ctx)
	}
	return v, err
}

func (q queueProxy) Len(ctx context.Context) (int, error) { return As[int](q.Call(ctx, "qsize")) }

// An eventProxy is a proxy of an Event.
type eventProxy struct{ *Proxy }

// Event makes an Event that is not set. The caller closes it.
func (m *Manager) Event(ctx context.Context) (Event, error) { return As[Event](m.Create(ctx, "Event")) }

func (e eventProxy) Set(ctx context.Context) error   { return e.do(ctx, "set") }
func (e eventProxy) Clear(ctx context.Context) error { return e.do(ctx, "clear") }

func (e eventProxy) IsSet(ctx context.Context) (bool, error) {
	return As[bool](e.Call(ctx, "is_set"))
}

func (e eventProxy) Wait(ctx context.Context) error { return e.wait(ctx, "wait", slice) }

// A semaphoreProxy is a proxy of a Lock or Semaphore, or the Thread of an RLock.
type semaphoreProxy struct{ *Proxy }

// Lock makes a Lock. The caller closes the Semaphore.
func (m *Manager) Lock(ctx context.Context) (Semaphore, error) {
	return As[Semaphore](m.Create(ctx, "Lock"))
}

// Semaphore makes a Semaphore of n permits. The caller closes it.
func (m *Manager) Semaphore(ctx context.Context, n int) (Semaphore, error) {
	return As[Semaphore](m.Create(ctx, "Semaphore", n))
}

func (s semaphoreProxy) Acquire(ctx context.Context) error {
	return s.wait(ctx, "acquire", true, slice)
}

func (s semaphoreProxy) TryAcquire() error {
	got, err := atOnce(func(ctx context.Context) (any, error) { return s.Call(ctx, "acquire", false) })
	if err == nil && got != true {
		return ErrLocked
	}
	return err
}

func (s semaphoreProxy) Release() error {
	_, err := atOnce(func(ctx context.Context) (any, error) { return s.Call(ctx, "release") })
	return err
}

func (s semaphoreProxy) Permits() (int, error) {
	return As[int](atOnce(func(ctx context.Context) (any, error) { return s.Call(ctx, "get_value") }))
}

// atOnce makes a call that does not wait at the server.
func atOnce(call func(ctx context.Context) (any, error)) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return call(ctx)
}

// A condProxy is the Thread of a Condition of the server's.
type condProxy struct{ semaphoreProxy }

func (c condProxy) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.do(context.WithoutCancel(ctx), "wait", slice)
}

func (c condProxy) Notify(ctx context.Context, n int) error { return c.do(ctx, "notify", n) }

func (c condProxy) NotifyAll(ctx context.Context) error { return c.do(ctx, "notify_all") }
