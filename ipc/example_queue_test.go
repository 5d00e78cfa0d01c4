package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/ipc"
)

func ExampleQueue() {
	ctx := context.Background()
	q := must(ipc.NewQueue[int](2))
	defer q.Close()
	fmt.Println(q.Put(ctx, 1), q.Put(ctx, 2))
	fmt.Println(errors.Is(q.TryPut(3), ipc.ErrFull))
	fmt.Println(q.Get(ctx))
	fmt.Println(q.Len(), q.Cap())
	// Output:
	// <nil> <nil>
	// true
	// 1 <nil>
	// 1 2
}

// A full queue drops its oldest value, so that a slow reader sees what is new.
func ExampleQueueOptions() {
	ctx := context.Background()
	q := must(ipc.NewQueueWith[int](ipc.QueueOptions{Capacity: 2, Policy: ipc.DropOldest}))
	defer q.Close()
	for i := range 5 {
		q.Put(ctx, i)
	}
	fmt.Println(q.Get(ctx))
	fmt.Println(q.Get(ctx))
	// Output:
	// 3 <nil>
	// 4 <nil>
}

// Puts into an unbounded queue do not wait, however many values there are.
func ExampleNewQueue() {
	ctx := context.Background()
	q := must(ipc.NewQueue[int](ipc.Unbounded))
	defer q.Close()
	for i := range 1000 {
		q.Put(ctx, i)
	}
	fmt.Println(q.Len())
	// Output: 1000
}

// Join returns when the worker has said TaskDone for each task.
func ExampleJoinableQueue() {
	ctx := context.Background()
	q := must(ipc.NewJoinableQueue[int](4))
	defer q.Close()
	sum := 0
	go func() {
		for range 3 {
			n, _ := q.Get(ctx)
			sum += n
			q.TaskDone()
		}
	}()
	for i := range 3 {
		q.Put(ctx, i)
	}
	fmt.Println(q.Join(ctx), sum)
	// Output: <nil> 3
}

// What one side of a pipe sends the other side receives.
func ExamplePipeEnd() {
	ctx := context.Background()
	a, b, err := ipc.Pipe[string, string]()
	if err != nil {
		panic(err)
	}
	defer b.Close()
	a.Send(ctx, "ping")
	a.Close()
	fmt.Println(b.Recv(ctx))
	_, err = b.Recv(ctx)
	fmt.Println(errors.Is(err, ipc.ErrClosed))
	// Output:
	// ping <nil>
	// true
}

// Processes that did not start each other meet at a socket, and prove that they know the key.
func ExampleListener() {
	ctx := context.Background()
	dir := must(os.MkdirTemp("", "shoal"))
	defer os.RemoveAll(dir)
	key := []byte("a secret of both")
	l := must(ipc.Listen[string](filepath.Join(dir, "s"), key))
	defer l.Close()
	go func() {
		c, err := ipc.Dial[string](ctx, l.Addr(), key)
		if err != nil {
			return
		}
		defer c.Close()
		c.Send(ctx, "hello")
	}()
	c := must(l.Accept(ctx))
	defer c.Close()
	fmt.Println(c.Recv(ctx))
	// Output: hello <nil>
}

// A service of one user serves programs of all users, if they prove the key.
func ExampleListenWith() {
	ctx := context.Background()
	key := []byte("a secret of both")
	opts := ipc.MeetingOptions{AnyUser: true}
	name := fmt.Sprintf("@shoal-example-%d", os.Getpid())
	l := must(ipc.ListenWith[string](name, key, opts))
	defer l.Close()
	go func() {
		c, err := ipc.DialWith[string](ctx, l.Addr(), key, opts)
		if err != nil {
			return
		}
		defer c.Close()
		c.Send(ctx, "hello")
	}()
	c := must(l.Accept(ctx))
	defer c.Close()
	fmt.Println(c.Recv(ctx))
	// Output: hello <nil>
}

// Poll says that there is something to read, and Wait says where.
func ExampleWait() {
	ctx := context.Background()
	a, b := must(ipc.NewQueue[int](1)), must(ipc.NewQueue[int](1))
	defer a.Close()
	defer b.Close()
	b.Put(ctx, 1)
	fmt.Println(ipc.Wait(ctx, a, b))
	// Output: [1] <nil>
}

// A wait may end for a reason that is no queue of this package.
func ExamplePollFunc() {
	ctx := context.Background()
	q := must(ipc.NewQueue[int](1))
	defer q.Close()
	at := ipc.PollFunc(func(context.Context) error { return nil }) // at once
	fmt.Println(ipc.Wait(ctx, q, at))
	// Output: [1] <nil>
}
