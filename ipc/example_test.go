package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal/ipc"
)

func Example() {
	ctx := context.Background()
	q, err := ipc.NewQueue[string](2)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	go func() {
		for _, name := range []string{"anchovy", "herring", "sardine"} {
			q.Put(ctx, name) // waits while two are waiting
		}
		q.Finish()
	}()
	for name, err := range q.All(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(name)
	}
	// Output:
	// anchovy
	// herring
	// sardine
}

func ExamplePipe() {
	ctx := context.Background()
	client, server, err := ipc.Pipe[int, string]()
	if err != nil {
		panic(err)
	}
	defer client.Close()
	go func() {
		defer server.Close()
		for n, err := range server.All(ctx) {
			if err != nil || server.Send(ctx, fmt.Sprint("number ", n)) != nil {
				return
			}
		}
	}()
	client.Send(ctx, 7)
	fmt.Println(client.Recv(ctx))
	// Output: number 7 <nil>
}

// A get with a deadline says both that the time is up and what it waited for.
func ExampleReceiver_Get() {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = q.Get(ctx)
	fmt.Println(errors.Is(err, ipc.ErrEmpty), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

// The loop ends because the last Sender is closed. Nobody has to count consumers and put a sentinel
// for each.
func ExampleQueue_Sender() {
	ctx := context.Background()
	q, err := ipc.NewQueue[int](4)
	if err != nil {
		panic(err)
	}
	defer q.Close()
	for i := range 3 {
		s, err := q.Sender().Clone()
		if err != nil {
			panic(err)
		}
		go func() {
			defer s.Close()
			s.Put(ctx, i)
		}()
	}
	q.Sender().Close()
	sum := 0
	for v := range q.All(ctx) {
		sum += v
	}
	fmt.Println(sum)
	// Output: 3
}

// Weights are replaced while others compute with those before.
func ExampleLatest() {
	latest, err := ipc.NewLatest([]float32{1, 2}) // goes to workers in their argument
	if err != nil {
		fmt.Println(err)
		return
	}
	defer latest.Close()
	before, version, _ := latest.Load()
	latest.Store(context.Background(), []float32{3, 4})
	after, _, _ := latest.Wait(context.Background(), version)
	fmt.Println(before, after, latest.Version())
	// Output: [1 2] [3 4] 2
}
