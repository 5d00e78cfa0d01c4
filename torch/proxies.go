package torch

import (
	"context"
	"errors"
	"slices"

	"github.com/shoal-mp/shoal/encoding/python"
)

// The objects of a SyncManager, and of whatever else has their methods. The methods without a
// comment are Python's.
type (
	// A DictProxy is a proxy of a dict.
	DictProxy struct{ *Proxy }
	// A ListProxy is a proxy of a list, or of an Array.
	ListProxy struct{ *Proxy }
	// A QueueProxy is a proxy of a queue.Queue.
	QueueProxy struct{ *Proxy }
	// An EventProxy is a proxy of an Event.
	EventProxy struct{ *Proxy }
	// A LockProxy is a proxy of a Lock or Semaphore, or the Thread of an RLock.
	LockProxy struct{ *Proxy }
	// A CondProxy is the Thread of a Condition of the server's.
	CondProxy struct{ LockProxy }
	// A NamespaceProxy is a proxy of a Namespace.
	NamespaceProxy struct{ *Proxy }
	// A ValueProxy is a proxy of a Value.
	ValueProxy struct{ *Proxy }
)

// slice is how long a call waits at the server before it is made again: so that no call is given up
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
	return repeat(ctx, func(ctx context.Context) (bool, error) { return Call[bool](ctx, p, method, args...) })
}

func (p *Proxy) do(ctx context.Context, method string, args ...any) error {
	_, err := p.Call(ctx, method, args...)
	return err
}

// Dict makes a dict.
func (m *Manager) Dict(ctx context.Context) (DictProxy, error) {
	p, err := m.Create(ctx, "dict")
	return DictProxy{p}, err
}

// Get returns the value of a key, if the dict has it.
func (d DictProxy) Get(ctx context.Context, key any) (v any, ok bool, err error) {
	v, err = d.Call(ctx, "__getitem__", key)
	if isRemote(err, "builtins.KeyError") {
		return nil, false, nil
	}
	return v, err == nil, err
}

// Set sets the value of a key.
func (d DictProxy) Set(ctx context.Context, key, value any) error {
	return d.do(ctx, "__setitem__", key, value)
}

// Delete removes a key, and reports whether the dict had it.
func (d DictProxy) Delete(ctx context.Context, key any) (ok bool, err error) {
	err = d.do(ctx, "__delitem__", key)
	if isRemote(err, "builtins.KeyError") {
		return false, nil
	}
	return err == nil, err
}

// Len returns the number of keys.
func (d DictProxy) Len(ctx context.Context) (int, error) { return Call[int](ctx, d.Proxy, "__len__") }

// All returns what is in the dict.
func (d DictProxy) All(ctx context.Context) (*python.Dict, error) {
	return Call[*python.Dict](ctx, d.Proxy, "copy")
}

// List makes a list.
func (m *Manager) List(ctx context.Context, items ...any) (ListProxy, error) {
	if items == nil {
		items = []any{}
	}
	p, err := m.Create(ctx, "list", items)
	return ListProxy{p}, err
}

// Array makes an array.array of the elements' typecode, such as "d" for float64.
func (m *Manager) Array(ctx context.Context, typecode string, items ...any) (ListProxy, error) {
	if items == nil {
		items = []any{}
	}
	p, err := m.Create(ctx, "Array", typecode, items)
	return ListProxy{p}, err
}

// Get returns an item, counted from the end where i is negative.
func (l ListProxy) Get(ctx context.Context, i int) (any, error) {
	return l.Call(ctx, "__getitem__", i)
}

// Set sets an item.
func (l ListProxy) Set(ctx context.Context, i int, v any) error {
	return l.do(ctx, "__setitem__", i, v)
}

// Append appends an item; an Array has no such method.
func (l ListProxy) Append(ctx context.Context, v any) error { return l.do(ctx, "append", v) }

// Len returns the number of items.
func (l ListProxy) Len(ctx context.Context) (int, error) { return Call[int](ctx, l.Proxy, "__len__") }

// Queue makes a queue.Queue with room for size items, or for any number where size is 0.
func (m *Manager) Queue(ctx context.Context, size int) (QueueProxy, error) {
	p, err := m.Create(ctx, "Queue", size)
	return QueueProxy{p}, err
}

// Put puts an item, and waits for room until ctx is done.
func (q QueueProxy) Put(ctx context.Context, v any) error {
	return repeat(ctx, func(ctx context.Context) (bool, error) {
		err := q.do(ctx, "put", v, true, slice)
		if isRemote(err, "queue.Full", "_queue.Full") {
			return false, nil
		}
		return true, err
	})
}

// Get takes an item, and waits for one until ctx is done. No item is lost by that.
func (q QueueProxy) Get(ctx context.Context) (v any, err error) {
	err = repeat(ctx, func(ctx context.Context) (bool, error) {
		var err error
		v, err = q.Call(ctx, "get", true, slice)
		if isRemote(err, "queue.Empty", "_queue.Empty") {
			return false, nil
		}
		return true, err
	})
	if err == nil && v == nil {
		// CPython's server answers None to the first request that it has not heard when it ends, so
		// one that still knows the queue has to confirm a None.
		_, err = q.Len(ctx)
	}
	return v, err
}

// Len returns the number of items.
func (q QueueProxy) Len(ctx context.Context) (int, error) { return Call[int](ctx, q.Proxy, "qsize") }

// Event makes an Event that is not set.
func (m *Manager) Event(ctx context.Context) (EventProxy, error) {
	p, err := m.Create(ctx, "Event")
	return EventProxy{p}, err
}

// Set sets the event.
func (e EventProxy) Set(ctx context.Context) error { return e.do(ctx, "set") }

// Clear makes it not set.
func (e EventProxy) Clear(ctx context.Context) error { return e.do(ctx, "clear") }

// IsSet reports whether it is set.
func (e EventProxy) IsSet(ctx context.Context) (bool, error) {
	return Call[bool](ctx, e.Proxy, "is_set")
}

// Wait waits until it is set, or ctx is done.
func (e EventProxy) Wait(ctx context.Context) error { return e.wait(ctx, "wait", slice) }

// Lock makes a Lock.
func (m *Manager) Lock(ctx context.Context) (LockProxy, error) {
	p, err := m.Create(ctx, "Lock")
	return LockProxy{p}, err
}

// Semaphore makes a Semaphore of n.
func (m *Manager) Semaphore(ctx context.Context, n int) (LockProxy, error) {
	p, err := m.Create(ctx, "Semaphore", n)
	return LockProxy{p}, err
}

// Acquire acquires the lock, and waits for it until ctx is done.
func (l LockProxy) Acquire(ctx context.Context) error { return l.wait(ctx, "acquire", true, slice) }

// Release releases it.
func (l LockProxy) Release(ctx context.Context) error { return l.do(ctx, "release") }

// Wait releases the lock, which this Thread has acquired, waits until it is notified, and acquires
// the lock again. It returns after a tenth of a second at the latest, so what is waited for is
// checked in a loop. The error is the cause of ctx's end, if it is done before.
func (c CondProxy) Wait(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return c.do(context.WithoutCancel(ctx), "wait", slice)
}

// Notify wakes up to n of those who wait.
func (c CondProxy) Notify(ctx context.Context, n int) error { return c.do(ctx, "notify", n) }

// Namespace makes a Namespace.
func (m *Manager) Namespace(ctx context.Context) (NamespaceProxy, error) {
	p, err := m.Create(ctx, "Namespace")
	return NamespaceProxy{p}, err
}

// Get returns an attribute.
func (n NamespaceProxy) Get(ctx context.Context, name string) (any, error) {
	return n.Call(ctx, "__getattribute__", name)
}

// Set sets an attribute.
func (n NamespaceProxy) Set(ctx context.Context, name string, v any) error {
	return n.do(ctx, "__setattr__", name, v)
}

// Value makes a Value of a typecode, such as "d" for float64.
func (m *Manager) Value(ctx context.Context, typecode string, v any) (ValueProxy, error) {
	p, err := m.Create(ctx, "Value", typecode, v)
	return ValueProxy{p}, err
}

// Get returns the value.
func (v ValueProxy) Get(ctx context.Context) (any, error) { return v.Call(ctx, "get") }

// Set sets it.
func (v ValueProxy) Set(ctx context.Context, to any) error { return v.do(ctx, "set", to) }
