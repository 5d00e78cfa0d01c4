package nn_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal/manager"
)

// served is a load of a proxy, whose object is in a server of its own.
func served[T interface{ Close() error }](create func(ctx context.Context, m *manager.Manager) (T, error),
	look func(context.Context, T) string,
	change func(context.Context, T) error) load[T] {
	return load[T]{func(ctx context.Context) (v T, err error) {
		m, err := manager.New(ctx)
		if err != nil {
			return v, err
		}
		v, err = create(ctx, m)
		return v, errors.Join(err, hold(m))
	}, func(v T) string { return look(context.Background(), v) }, func(v T) { change(context.Background(), v) }, true}
}

// A locker is a lock of a manager in any form.
type locker interface {
	TryLock(context.Context) error
	Unlock(context.Context) error
	Close() error
}

// usedThere is a load of a lock, which is looked at by using it. A client that keeps it when its
// process ends is dead to the server.
func usedThere[T locker](create func(ctx context.Context, m *manager.Manager) (T, error)) load[T] {
	l := served(create,
		func(ctx context.Context, l T) string { return fmt.Sprint(l.TryLock(ctx), l.Unlock(ctx)) },
		func(context.Context, T) error { return nil })
	l.shared = false
	return l
}

// sized makes what has a number: a capacity, a count, a value.
func sized[T any](create func(ctx context.Context, m *manager.Manager, n int) (T, error),
	n int) func(context.Context, *manager.Manager) (T, error) {
	return func(ctx context.Context, m *manager.Manager) (T, error) { return create(ctx, m, n) }
}

// of makes what has values.
func of[T any](create func(ctx context.Context, m *manager.Manager, vs ...int) (T,
	error)) func(context.Context, *manager.Manager) (T, error) {
	return func(ctx context.Context, m *manager.Manager) (T, error) { return create(ctx, m, 1, 2) }
}

// said is what a call returns.
func said[V any](v V, err error) string { return fmt.Sprint(v, err) }

// A tally is an object of an own type.
type tally struct{ N int }

func newTally() *tally { return new(tally) }

func (t *tally) Add(n int) int { t.N += n; return t.N }

var tallies = manager.Register("nn_test.tally", newTally, (*tally).Add)

// proxies is the part of the table that managers have.
var proxies = []cargo{
	carries("dict", "carries.dict", served(manager.NewDict[string, int],
		func(ctx context.Context, d *manager.Dict[string, int]) string { return said(d.All(ctx)) },
		func(ctx context.Context, d *manager.Dict[string, int]) error { return d.Set(ctx, "a", 1) })),
	carries("list", "carries.list", served(of(manager.NewList[int]),
		func(ctx context.Context, l *manager.List[int]) string { return said(l.All(ctx)) },
		func(ctx context.Context, l *manager.List[int]) error { return l.Append(ctx, 3) })),
	carries("set", "carries.set", served(manager.NewSet[int],
		func(ctx context.Context, s *manager.Set[int]) string { return said(s.All(ctx)) },
		func(ctx context.Context, s *manager.Set[int]) error { return s.Add(ctx, 1) })),
	carries("namespace", "carries.namespace", served(manager.NewNamespace,
		func(ctx context.Context, n *manager.Namespace) string { return said(n.Names(ctx)) },
		func(ctx context.Context, n *manager.Namespace) error { return n.Set(ctx, "lr", 0.5) })),
	carries("manager's value", "carries.manager.value", served(sized(manager.NewValue[int], 5),
		func(ctx context.Context, v *manager.Value[int]) string { return said(v.Get(ctx)) },
		func(ctx context.Context, v *manager.Value[int]) error { return v.Set(ctx, 6) })),
	carries("manager's array", "carries.manager.array", served(of(manager.NewArray[int]),
		func(ctx context.Context, a *manager.Array[int]) string { return said(a.All(ctx)) },
		func(ctx context.Context, a *manager.Array[int]) error { return a.Set(ctx, 0, 6) })),
	carries("manager's queue", "carries.manager.queue", served(sized(manager.NewQueue[int], 4),
		func(ctx context.Context, q *manager.Queue[int]) string { return said(q.Len(ctx)) },
		func(ctx context.Context, q *manager.Queue[int]) error { return q.Put(ctx, 1) })),
	carries("manager's joinable queue", "carries.manager.joinable", served(sized(manager.NewJoinableQueue[int], 4),
		func(ctx context.Context, q *manager.JoinableQueue[int]) string { return said(q.Len(ctx)) },
		func(ctx context.Context, q *manager.JoinableQueue[int]) error { return q.Put(ctx, 1) })),
	carries("manager's lock", "carries.manager.lock", usedThere(manager.NewMutex)),
	carries("manager's recursive lock", "carries.manager.rlock", usedThere(manager.NewRecursiveMutex)),
	carries("manager's condition", "carries.manager.condition", usedThere(manager.NewCond)),
	carries("manager's semaphore", "carries.manager.semaphore", served(sized(manager.NewSemaphore, 3),
		func(ctx context.Context, s *manager.Semaphore) string { return said(s.Permits(ctx)) },
		func(ctx context.Context, s *manager.Semaphore) error { return s.Release(ctx) })),
	carries("manager's event", "carries.manager.event", served(manager.NewEvent,
		func(ctx context.Context, e *manager.Event) string { return said(e.IsSet(ctx)) },
		func(ctx context.Context, e *manager.Event) error { return e.Set(ctx) })),
	carries("manager's barrier", "carries.manager.barrier", served(sized(manager.NewBarrier, 3),
		func(ctx context.Context, b *manager.Barrier) string {
			return said(b.Parties(ctx)) + said(b.Broken(ctx))
		},
		func(ctx context.Context, b *manager.Barrier) error { return b.Abort(ctx) })),
	carries("instance", "carries.instance", served(
		func(ctx context.Context, m *manager.Manager) (*manager.Instance, error) { return tallies.New(ctx, m) },
		func(ctx context.Context, o *manager.Instance) string {
			return said(manager.Call[int](ctx, o, "Add", 0))
		},
		func(ctx context.Context, o *manager.Instance) error { _, err := o.Call(ctx, "Add", 2); return err })),
}
