package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
	"github.com/shoal-mp/shoal/tensor"
)

// exampleConn starts a broker, where a program has the URL of one, and connects.
func exampleConn(ctx context.Context) (c *nats.Conn, end func()) {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		panic(err)
	}
	b, err := broker.Start(broker.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	c, err = nats.Connect(ctx, b.URL(), nats.Options{})
	if err != nil {
		panic(err)
	}
	return c, func() {
		c.Close()
		b.Close()
		os.RemoveAll(dir)
	}
}

func ExampleConnect() {
	ctx := context.Background()
	_, err := nats.Connect(ctx, "nats://127.0.0.1:1", nats.Options{User: "u", Password: "p"})
	var host *nats.HostError
	fmt.Println(errors.Is(err, nats.ErrUnreachable), errors.As(err, &host))
	fmt.Println(host.Host + ": " + host.Advice)
	// Output:
	// true true
	// 127.0.0.1:1: check that the broker runs there and that the port is open
}

// One machine puts tensors, and another takes them.
func ExampleQueue() {
	ctx := context.Background()
	conn, end := exampleConn(ctx)
	defer end()
	q, err := nats.OpenQueue[*tensor.Tensor](ctx, conn, "batches", nats.QueueOptions{Capacity: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	for i := range 3 {
		x := tensor.Full(tensor.Float32, float64(i), 2)
		if err := q.Put(ctx, x); err != nil {
			fmt.Println(err)
			return
		}
		x.Close()
	}
	if err := q.Finish(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for x, err := range q.All(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(x)
		x.Close()
	}
	// Output:
	// tensor([0., 0.])
	// tensor([1., 1.])
	// tensor([2., 2.])
}

// A value that is not acknowledged comes back, and is a dead letter at last.
func ExampleDelivery() {
	ctx := context.Background()
	conn, end := exampleConn(ctx)
	defer end()
	q, err := nats.OpenQueue[string](ctx, conn, "jobs", nats.QueueOptions{MaxDeliveries: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer q.Close()
	q.PutN(ctx, []string{"good", "bad"})
	q.Finish(ctx)
	for d, err := range q.Deliveries(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Value, d.Attempt)
		if d.Value == "good" {
			err = d.Ack(ctx)
		} else {
			err = d.Nak(0)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	for dead, err := range q.DeadLetters(ctx) {
		fmt.Println(dead.Value, dead.Reason, err)
	}
	// Output:
	// good 1
	// bad 1
	// bad 2
	// bad delivered 2 times and not acknowledged <nil>
}

// Several processes change one value, and no change is lost.
func ExampleStore() {
	ctx := context.Background()
	conn, end := exampleConn(ctx)
	defer end()
	s, err := nats.OpenStore[int](ctx, conn, "counters", nats.StoreOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		s.Update(ctx, "steps", func(n int, _ uint64) (int, error) { return n + 10, nil })
	}
	n, version, err := s.Get(ctx, "steps")
	fmt.Println(n, version, err)
	_, err = s.CompareAndSwap(ctx, "steps", version-1, 0)
	fmt.Println(errors.Is(err, nats.ErrVersion))
	for e, err := range s.Watch(ctx, "*") {
		fmt.Println(e.Key, e.Value, e.Version, err)
		break
	}
	// Output:
	// 30 3 <nil>
	// true
	// steps 30 3 <nil>
}
