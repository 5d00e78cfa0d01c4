package ipc_test

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/ipc"
)

// A worker acknowledges each value when it is done. The values of workers that die before go back
// to the queue, and so does a value whose work has failed.
func ExampleReceiver_Leases() {
	ctx := context.Background()
	tasks, err := ipc.NewQueue[string](10)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()
	for _, t := range []string{"read", "write"} {
		if err := tasks.Put(ctx, t); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := tasks.Finish(); err != nil {
		fmt.Println(err)
		return
	}
	tries := 0
	for task, err := range tasks.Receiver().Leases(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if tries++; tries == 1 {
			fmt.Println(task.Value, "fails", task.Nack())
			continue
		}
		fmt.Println(task.Value, "is done", task.Ack())
	}
	// Output:
	// read fails <nil>
	// read is done <nil>
	// write is done <nil>
}

// A worker that cannot do a task gives it back, for another one.
func ExampleLease() {
	ctx := context.Background()
	tasks, err := ipc.NewQueue[string](10)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tasks.Close()
	if err := tasks.Put(ctx, "read"); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		task, err := tasks.Receiver().Lease(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(task.Value, task.Nack())
	}
	// Output:
	// read <nil>
	// read <nil>
}
