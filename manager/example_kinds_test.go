package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
)

// must returns what a constructor has made, since the examples have nothing to do without it.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Several values change together, or none of them does.
func ExampleManager_Txn() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	from, to := must(manager.NewValue(ctx, m, 10)), must(manager.NewValue(ctx, m, 0))
	defer from.Close()
	defer to.Close()
	err := m.Txn(ctx, func(tx context.Context) error {
		from.Add(tx, -4)
		to.Add(tx, 4)
		return nil
	})
	a, _ := from.Get(ctx)
	b, _ := to.Get(ctx)
	fmt.Println(a, b, err)
	// Output: 6 4 <nil>
}

func ExampleDict() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	d := must(manager.NewDict[string, int](ctx, m))
	defer d.Close()
	d.Set(ctx, "cod", 1)
	fmt.Println(d.Get(ctx, "cod"))
	_, err := d.Get(ctx, "eel")
	fmt.Println(errors.Is(err, manager.ErrNoKey))
	// Output:
	// 1 <nil>
	// true
}

func ExampleList() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	l := must(manager.NewList(ctx, m, 3, 1, 2))
	defer l.Close()
	l.Append(ctx, 0)
	fmt.Println(l.All(ctx))
	// Output: [3 1 2 0] <nil>
}

func ExampleSet() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	s := must(manager.NewSet[string](ctx, m))
	defer s.Close()
	s.Add(ctx, "cod", "eel", "cod")
	all, err := s.All(ctx)
	slices.Sort(all)
	fmt.Println(all, err)
	// Output: [cod eel] <nil>
}

// A Namespace has values of any registered types under names.
func ExampleNamespace() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	n := must(manager.NewNamespace(ctx, m))
	defer n.Close()
	n.Set(ctx, "epochs", 12)
	fmt.Println(n.Get(ctx, "epochs"))
	// Output: 12 <nil>
}

func ExampleValue() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	v := must(manager.NewValue(ctx, m, 1))
	defer v.Close()
	fmt.Println(v.Add(ctx, 2))
	fmt.Println(v.Swap(ctx, 7))
	// Output:
	// 3 <nil>
	// 3 <nil>
}

func ExampleArray() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	a := must(manager.NewArray(ctx, m, 1.5, 2.5))
	defer a.Close()
	a.Add(ctx, -1, 1) // the last one
	fmt.Println(a.All(ctx))
	// Output: [1.5 3.5] <nil>
}

func ExampleQueue() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	q := must(manager.NewQueue[string](ctx, m, 1))
	defer q.Close()
	q.Put(ctx, "cod")
	fmt.Println(errors.Is(q.TryPut(ctx, "eel"), manager.ErrFull))
	fmt.Println(q.Get(ctx))
	// Output:
	// true
	// cod <nil>
}

func ExampleJoinableQueue() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	q := must(manager.NewJoinableQueue[int](ctx, m, ipc.Unbounded))
	defer q.Close()
	for i := range 3 {
		q.Put(ctx, i)
	}
	go func() {
		for range 3 {
			q.Get(ctx)
			q.TaskDone(ctx)
		}
	}()
	fmt.Println(q.Join(ctx))
	// Output: <nil>
}

func ExampleMutex() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	l := must(manager.NewMutex(ctx, m))
	defer l.Close()
	if err := l.Lock(ctx); errors.Is(err, manager.ErrOwnerDied) {
		l.MarkConsistent(ctx) // after what the dead process left half done is repaired
	}
	fmt.Println(errors.Is(l.TryLock(ctx), manager.ErrLocked))
	fmt.Println(l.Unlock(ctx))
	// Output:
	// true
	// <nil>
}

// The proxy that has the lock takes it again, and gives it back as often.
func ExampleRecursiveMutex() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	l := must(manager.NewRecursiveMutex(ctx, m))
	defer l.Close()
	fmt.Println(l.Lock(ctx), l.Lock(ctx))
	fmt.Println(l.Unlock(ctx), l.Unlock(ctx))
	fmt.Println(errors.Is(l.Unlock(ctx), manager.ErrNotOwner))
	// Output:
	// <nil> <nil>
	// <nil> <nil>
	// true
}

func ExampleSemaphore() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	s := must(manager.NewSemaphore(ctx, m, 2))
	defer s.Close()
	s.Acquire(ctx)
	fmt.Println(s.Permits(ctx))
	s.Release(ctx)
	fmt.Println(s.Permits(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
}

// A waiter holds the lock of the Cond before and after it waits.
func ExampleCond() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	c, mine := must(manager.NewCond(ctx, m)), must(manager.NewQueue[*manager.Cond](ctx, m, 1))
	defer c.Close()
	defer mine.Close()
	mine.Put(ctx, c)
	other := must(mine.Get(ctx)) // a proxy of its own, as another process has
	defer other.Close()
	ready := false
	c.Lock(ctx)
	go func() {
		other.Lock(ctx) // once the waiter waits
		ready = true
		other.NotifyAll(ctx)
		other.Unlock(ctx)
	}()
	fmt.Println(c.WaitFor(ctx, func() bool { return ready }))
	c.Unlock(ctx)
	// Output: <nil>
}

func ExampleEvent() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	e := must(manager.NewEvent(ctx, m))
	defer e.Close()
	go e.Set(ctx)
	fmt.Println(e.Wait(ctx))
	fmt.Println(e.IsSet(ctx))
	// Output:
	// <nil>
	// true <nil>
}

func ExampleBarrier() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	b := must(manager.NewBarrier(ctx, m, 3))
	defer b.Close()
	b.Action = func() error { fmt.Println("all are there"); return nil }
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { b.Wait(ctx) })
	}
	all.Wait()
	// Output: all are there
}

// A tally is a type of this program whose values stand in the server.
type tally struct{ n int }

func newTally(from int) *tally { return &tally{from} }

// Count adds one and returns how many there are.
func (t *tally) Count() int { t.n++; return t.n }

// Fail panics.
func (t *tally) Fail() { panic("no more") }

var tallies = manager.Register("tally", newTally, (*tally).Count, (*tally).Fail)

// The server keeps a tally for as long as there is an Instance of it.
func ExampleType() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	var t *manager.Instance = must(tallies.New(ctx, m, 40))
	defer t.Close()
	t.Call(ctx, "Count")
	fmt.Println(manager.Call[int](ctx, t, "Count"))
	// Output: 42 <nil>
}

// A panic of a method is an error of its caller. The server goes on.
func ExamplePanicError() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	t := must(tallies.New(ctx, m, 0))
	defer t.Close()
	_, err := t.Call(ctx, "Fail")
	var p *manager.PanicError
	fmt.Println(errors.As(err, &p), p.Method, p.Text)
	// Output: true Fail no more
}

// A client reaches the manager by a stream: a TLS connection as a rule, which package remote makes.
func ExampleConnect() {
	ctx := context.Background()
	m := must(manager.New(ctx))
	defer m.Close()
	far := must(manager.Connect(ctx, func(context.Context) (manager.Stream, error) {
		here, there := net.Pipe()
		go m.Serve(ctx, there)
		return here, nil
	}))
	defer far.Close()
	v := must(manager.NewValue(ctx, far, 1))
	defer v.Close()
	fmt.Println(v.Add(ctx, 1))
	// Output: 2 <nil>
}
