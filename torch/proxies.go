package torch

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
)

// slice is how long a call waits in the server before it returns and is repeated. Calls are never
// abandoned in the server, where their results would be lost.
const slice = 0.1 // seconds

// isRemote reports whether err is a [RemoteError] of one of the classes, which are names with
// their modules, such as "builtins.KeyError".
func isRemote(err error, classes ...string) bool {
	var remote *RemoteError
	if !errors.As(err, &remote) {
		return false
	}
	return slices.Contains(classes, remote.Class)
}

// repeatCall repeats a call, which must return within about slice, until it reports that it is
// done or returns an error. If ctx is done first, it returns [context.Cause] after the current
// call.
func repeatCall(ctx context.Context, call func(ctx context.Context) (done bool, err error)) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if done, err := call(context.WithoutCancel(ctx)); done || err != nil {
			return err
		}
	}
}

// wait calls a method of the object again and again until it returns true. If ctx is done first,
// it returns [context.Cause].
func (p *Proxy) wait(ctx context.Context, method string, args ...any) error {
	return repeatCall(ctx, func(ctx context.Context) (bool, error) { return As[bool](p.Call(ctx, method, args...)) })
}

func (p *Proxy) callMethod(ctx context.Context, method string, args ...any) error {
	_, err := p.Call(ctx, method, args...)
	return err
}

// asType returns p as a value of type t, or nil if no kind of proxy has that type.
func (p *Proxy) asType(t reflect.Type) any {
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

// A Container is a proxy of a dict, a list, an Array or a Namespace. The key of a dict may be any
// value that Python allows. The key of a list or an Array must be an integer, which counts from the
// end if it is negative. The key of a Namespace must be a name.
type Container struct{ *Proxy }

// Dict creates a dict in the server. The caller must close the Container.
func (m *Manager) Dict(ctx context.Context) (Container, error) {
	return As[Container](m.Create(ctx, "dict"))
}

// List creates a list of the given items in the server. The caller must close the Container.
func (m *Manager) List(ctx context.Context, items ...any) (Container, error) {
	return As[Container](m.Create(ctx, "list", sequenceOf(items)))
}

// Array creates an array.array of the given items in the server. The typecode must be one of
// Python's array module, such as "d" for float64. The caller must close the Container.
func (m *Manager) Array(ctx context.Context, typecode string, items ...any) (Container, error) {
	return As[Container](m.Create(ctx, "Array", typecode, sequenceOf(items)))
}

// Namespace creates a Namespace in the server. The caller must close the Container.
func (m *Manager) Namespace(ctx context.Context) (Container, error) {
	return As[Container](m.Create(ctx, "Namespace"))
}

// sequenceOf returns a copy of items that is never nil, because nil would be encoded as None.
func sequenceOf(items []any) []any { return append([]any{}, items...) }

// accessMethod returns the name of the Python method for an item of the container. The argument
// must be "get", "set" or "del".
func (c Container) accessMethod(what string) string {
	if c.class == proxyClasses["Namespace"] {
		return map[string]string{"get": "__getattribute__", "set": "__setattr__", "del": "__delattr__"}[what]
	}
	return "__" + what + "item__"
}

// isMissingKey reports whether err is a [RemoteError] for a key, an index or an attribute that
// does not exist.
func isMissingKey(err error) bool {
	return isRemote(err, "builtins.KeyError", "builtins.IndexError", "builtins.AttributeError")
}

// Get returns the value of a key. ok is false if the key does not exist. Any other exception in
// the server is a *[RemoteError].
func (c Container) Get(ctx context.Context, key any) (v any, ok bool, err error) {
	v, err = c.Call(ctx, c.accessMethod("get"), key)
	if isMissingKey(err) {
		return nil, false, nil
	}
	return v, err == nil, err
}

// Set stores the value of a key. If a list or an Array has no such index, or the server raises
// another exception, the error is a *[RemoteError].
func (c Container) Set(ctx context.Context, key, value any) error {
	return c.callMethod(ctx, c.accessMethod("set"), key, value)
}

// Delete removes a key. ok is false if the key does not exist. Any other exception in the server
// is a *[RemoteError].
func (c Container) Delete(ctx context.Context, key any) (ok bool, err error) {
	err = c.callMethod(ctx, c.accessMethod("del"), key)
	if isMissingKey(err) {
		return false, nil
	}
	return err == nil, err
}

// Append appends an item to a list. For other containers the error is a *[RemoteError].
func (c Container) Append(ctx context.Context, v any) error { return c.callMethod(ctx, "append", v) }

// Len returns the number of items. For a Namespace the error is a *[RemoteError].
func (c Container) Len(ctx context.Context) (int, error) { return As[int](c.Call(ctx, "__len__")) }

// All returns a copy of a dict. For a list the error wraps [ErrUnsupported], and for other
// containers it is a *[RemoteError].
func (c Container) All(ctx context.Context) (*python.Dict, error) {
	return As[*python.Dict](c.Call(ctx, "copy"))
}

// Value creates a Value that holds v in the server. The typecode must be one of Python's array
// module, such as "d" for float64. The methods of a Value are "get" and "set":
//
//	x, err := torch.As[float64](v.Call(ctx, "get"))
//	_, err = v.Call(ctx, "set", 2.5)
//
// The caller must close the Proxy.
func (m *Manager) Value(ctx context.Context, typecode string, v any) (*Proxy, error) {
	return m.Create(ctx, "Value", typecode, v)
}

// A queueProxy is a proxy of a queue.Queue as a [Queue].
type queueProxy struct{ *Proxy }

// Queue creates a queue.Queue in the server. It holds at most size items; 0 means no limit. The
// caller must close the Queue.
func (m *Manager) Queue(ctx context.Context, size int) (Queue, error) {
	return As[Queue](m.Create(ctx, "Queue", size))
}

func (q queueProxy) Put(ctx context.Context, v any) error {
	return repeatCall(ctx, func(ctx context.Context) (bool, error) {
		err := q.callMethod(ctx, "put", v, true, slice)
		if isRemote(err, "queue.Full", "_queue.Full") {
			return false, nil
		}
		return true, err
	})
}

func (q queueProxy) Get(ctx context.Context) (v any, err error) {
	err = repeatCall(ctx, func(ctx context.Context) (bool, error) {
		var err error
		v, err = q.Call(ctx, "get", true, slice)
		if isRemote(err, "queue.Empty", "_queue.Empty") {
			return false, nil
		}
		return true, err
	})
	if err == nil && v == nil {
		// A CPython server that is shutting down answers None to a request that it has not
		// executed. A None is therefore valid only if the server still knows the queue.
		_, err = q.Len(ctx)
	}
	return v, err
}

func (q queueProxy) Len(ctx context.Context) (int, error) { return As[int](q.Call(ctx, "qsize")) }

// An eventProxy is a proxy of an Event as an [Event].
type eventProxy struct{ *Proxy }

// Event creates an Event in the server, which is not set. The caller must close it.
func (m *Manager) Event(ctx context.Context) (Event, error) { return As[Event](m.Create(ctx, "Event")) }

func (e eventProxy) Set(ctx context.Context) error   { return e.callMethod(ctx, "set") }
func (e eventProxy) Clear(ctx context.Context) error { return e.callMethod(ctx, "clear") }

func (e eventProxy) IsSet(ctx context.Context) (bool, error) {
	return As[bool](e.Call(ctx, "is_set"))
}

func (e eventProxy) Wait(ctx context.Context) error { return e.wait(ctx, "wait", slice) }

// A semaphoreProxy is a proxy of a Lock or a Semaphore, or the [Proxy.Thread] of an RLock, as a
// [Semaphore].
type semaphoreProxy struct{ *Proxy }

// Lock creates a Lock in the server. The caller must close the Semaphore.
func (m *Manager) Lock(ctx context.Context) (Semaphore, error) {
	return As[Semaphore](m.Create(ctx, "Lock"))
}

// Semaphore creates a Semaphore with n permits in the server. The caller must close it.
func (m *Manager) Semaphore(ctx context.Context, n int) (Semaphore, error) {
	return As[Semaphore](m.Create(ctx, "Semaphore", n))
}

func (s semaphoreProxy) Acquire(ctx context.Context) error {
	return s.wait(ctx, "acquire", true, slice)
}

func (s semaphoreProxy) TryAcquire() error {
	got, err := callNonBlocking(func(ctx context.Context) (any, error) { return s.Call(ctx, "acquire", false) })
	if err == nil && got != true {
		return ErrLocked
	}
	return err
}

func (s semaphoreProxy) Release() error {
	_, err := callNonBlocking(func(ctx context.Context) (any, error) { return s.Call(ctx, "release") })
	return err
}

func (s semaphoreProxy) Permits() (int, error) {
	return As[int](callNonBlocking(func(ctx context.Context) (any, error) { return s.Call(ctx, "get_value") }))
}

// callNonBlocking makes a call that does not block in the server, with a time limit of 10
// seconds.
func callNonBlocking(call func(ctx context.Context) (any, error)) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return call(ctx)
}

// A condProxy is the [Proxy.Thread] of a Condition as a [Cond].
type condProxy struct{ semaphoreProxy }

func (c condProxy) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.callMethod(context.WithoutCancel(ctx), "wait", slice)
}

func (c condProxy) Notify(ctx context.Context, n int) error { return c.callMethod(ctx, "notify", n) }

func (c condProxy) NotifyAll(ctx context.Context) error { return c.callMethod(ctx, "notify_all") }
