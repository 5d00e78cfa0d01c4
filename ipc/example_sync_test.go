package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/shoal-mp/shoal/ipc"
)

// must returns what a constructor has made, since the examples have nothing to do without it.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A process learns at once that the lock is taken.
func ExampleMutex() {
	ctx := context.Background()
	m := must(ipc.NewMutex())
	defer m.Close()
	if err := m.Lock(ctx); errors.Is(err, ipc.ErrOwnerDied) {
		m.MarkConsistent() // after what the dead process left half done is repaired
	}
	fmt.Println(errors.Is(m.TryLock(), ipc.ErrLocked))
	m.Unlock()
	fmt.Println(m.TryLock(), m.Unlock())
	// Output:
	// true
	// <nil> <nil>
}

// An Owner locks again what it has locked; another Owner does not.
func ExampleRecursiveMutex() {
	ctx := context.Background()
	m := must(ipc.NewRecursiveMutex())
	defer m.Close()
	mine, other := ipc.NewOwner(), ipc.NewOwner()
	fmt.Println(m.Lock(ctx, mine), m.Lock(ctx, mine))
	fmt.Println(errors.Is(m.TryLock(other), ipc.ErrLocked))
	fmt.Println(m.Unlock(mine), m.Unlock(mine), m.TryLock(other))
	m.Unlock(other)
	// Output:
	// <nil> <nil>
	// true
	// <nil> <nil> <nil>
}

// Two readers hold the lock together, and keep a writer out.
func ExampleRWMutex() {
	ctx := context.Background()
	m := must(ipc.NewRWMutex())
	defer m.Close()
	fmt.Println(m.RLock(ctx), m.RLock(ctx))
	fmt.Println(errors.Is(m.TryLock(), ipc.ErrLocked))
	m.RUnlock()
	m.RUnlock()
	fmt.Println(m.TryLock(), m.Unlock())
	// Output:
	// <nil> <nil>
	// true
	// <nil> <nil>
}

func ExampleSemaphore() {
	ctx := context.Background()
	s := must(ipc.NewSemaphore(2))
	defer s.Close()
	fmt.Println(s.Acquire(ctx), s.Acquire(ctx))
	fmt.Println(errors.Is(s.TryAcquire(), ipc.ErrLocked))
	s.Release()
	fmt.Println(s.Permits())
	// Output:
	// <nil> <nil>
	// true
	// 1 <nil>
}

// One goroutine waits for what another does under the Mutex of the Cond.
func ExampleCond() {
	ctx := context.Background()
	c := must(ipc.NewCond(nil))
	defer c.Close()
	ready := must(ipc.NewValue(0))
	defer ready.Close()
	go func() {
		c.Mutex().Lock(ctx)
		ready.Store(1)
		c.NotifyAll()
		c.Mutex().Unlock()
	}()
	c.Mutex().Lock(ctx)
	err := c.WaitFor(ctx, func() bool { n, _ := ready.Load(); return n == 1 })
	c.Mutex().Unlock()
	fmt.Println(err)
	// Output: <nil>
}

func ExampleEvent() {
	ctx := context.Background()
	e := must(ipc.NewEvent())
	defer e.Close()
	fmt.Println(e.IsSet())
	go e.Set()
	fmt.Println(e.Wait(ctx), e.IsSet())
	// Output:
	// false
	// <nil> true
}

// The last of the parties to come calls the Action, before any of them goes on.
func ExampleBarrier() {
	ctx := context.Background()
	b := must(ipc.NewBarrier(3))
	defer b.Close()
	b.Action = func() error { fmt.Println("all are there"); return nil }
	var all sync.WaitGroup
	for range b.Parties() {
		all.Go(func() { b.Wait(ctx) })
	}
	all.Wait()
	fmt.Println(b.Waiting())
	// Output:
	// all are there
	// 0
}

func ExampleOnce() {
	ctx := context.Background()
	o := must(ipc.NewOnce())
	defer o.Close()
	for range 2 {
		o.Do(ctx, func() error { fmt.Println("done"); return nil })
	}
	fmt.Println(o.Done())
	// Output:
	// done
	// true <nil>
}

// No addition is lost, although nobody locks anything.
func ExampleValue() {
	v := must(ipc.NewValue(0.5))
	defer v.Close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { v.Add(0.25) })
	}
	all.Wait()
	fmt.Println(v.Load())
	fmt.Println(v.CompareAndSwap(1.5, 2))
	// Output:
	// 1.5 <nil>
	// true <nil>
}

func ExampleArray() {
	a := must(ipc.ArrayOf([]int32{1, 2, 3}))
	defer a.Close()
	a.Add(-1, 10) // the last one
	all := make([]int32, a.Len())
	fmt.Println(a.Read(0, all), all)
	// Output: <nil> [1 2 13]
}

// Another process opens the memory by its name, and has the same bytes.
func ExampleMemory() {
	m := must(ipc.NewMemory("example-memory", 4))
	defer m.Close()
	defer ipc.Unlink("example-memory")
	copy(m.Bytes(), "tuna")
	again := must(ipc.Lookup[*ipc.Memory]("example-memory"))
	defer again.Close()
	fmt.Println(string(again.Bytes()), again.Size())
	// Output: tuna 4
}

func ExampleShareableList() {
	l := must(ipc.NewShareableList("cod", 7, 0.5, true, nil))
	defer l.Close()
	l.Set(0, "eel") // not longer than what was there first
	for i := range l.Len() {
		fmt.Println(l.At(i))
	}
	// Output:
	// eel <nil>
	// 7 <nil>
	// 0.5 <nil>
	// true <nil>
	// <nil> <nil>
}
