package broker_test

import (
	"context"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal/nats"
	"github.com/shoal-mp/shoal/nats/broker"
)

// A broker with a password, on any free port of the loopback interface.
func ExampleOptions() {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	b, err := broker.Start(broker.Options{Dir: dir, User: "u", Password: "p"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Close()
	ctx := context.Background()
	conn, err := nats.Connect(ctx, b.URL(), nats.Options{User: "u", Password: "p"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(b.Ready(), b.Stats().Connections)
	// Output: true 1
}

// A broker that is started again in the same directory has the values that it stored.
func ExampleBroker() {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println(withBroker(dir, func(ctx context.Context, q *nats.Queue[string]) error {
		return q.Put(ctx, "hello")
	}))
	fmt.Println(withBroker(dir, func(ctx context.Context, q *nats.Queue[string]) error {
		v, err := q.Get(ctx)
		fmt.Println(v)
		return err
	}))
	// Output:
	// <nil>
	// hello
	// <nil>
}

// withBroker calls f with a queue of a broker that runs during the call.
func withBroker(dir string, f func(ctx context.Context, q *nats.Queue[string]) error) error {
	ctx := context.Background()
	b, err := broker.Start(broker.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer b.Close()
	conn, err := nats.Connect(ctx, b.URL(), nats.Options{})
	if err != nil {
		return err
	}
	defer conn.Close()
	q, err := nats.OpenQueue[string](ctx, conn, "words", nats.QueueOptions{})
	if err != nil {
		return err
	}
	defer q.Close()
	return f(ctx, q)
}
