// Command queue distributes work and collects results: two processes receive numbers from one queue
// and send their squares to another. The loop over the first queue ends after Finish, the loop over
// the second one when its last sender is closed.
//
//	go run ./examples/queue
//
// It prints the squares with the ranks that computed them.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
)

type job struct {
	Work *ipc.Receiver[int]
	Out  *ipc.Sender[string]
}

// A function that runs in another process is a package-level variable.
var square = shoal.Register("square", func(ctx context.Context, rank int, j job) error {
	// ends after Finish, or when nobody can send any more, also if they were killed
	for n, err := range j.Work.All(ctx) {
		if err != nil {
			return err
		}
		if err := j.Out.Put(ctx, fmt.Sprintf("%d squared is %d, says %d", n, n*n, rank)); err != nil {
			return err
		}
	}
	return nil
})

func main() { shoal.Main(run) } // workers never get past this line

func run(ctx context.Context) error {
	work, err := ipc.NewQueue[int](ipc.Unbounded)
	if err != nil {
		return err
	}
	defer work.Close()
	out, err := ipc.NewQueue[string](16)
	if err != nil {
		return err
	}
	defer out.Close()
	for n := range 10 {
		if err := work.Put(ctx, n); err != nil {
			return err
		}
	}
	work.Finish()
	workers, err := square.Start(ctx, 2, job{work.Receiver(), out.Sender()}, shoal.Options{})
	if err != nil {
		return err
	}
	defer workers.Close()
	out.Sender().Close() // from here on only the workers can send
	for s, err := range out.All(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(s)
	}
	return workers.Wait()
}
