// Double is the lesson of a queue with a tensor: two processes work on the same elements, and none
// of them is copied.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A function that runs in another process is a package-level variable.
var double = shoal.Register("double", func(ctx context.Context, rank int, q *ipc.Queue[*tensor.Tensor]) error {
	t, err := q.Get(ctx) // the tensor of the other process, not a copy
	if err == nil {
		t.MulScalar(2)
	}
	return err
})

func main() { shoal.Main(run) } // workers never get past this line

func run(ctx context.Context) error {
	t := tensor.FromSlice([]float32{1, 2, 3}, 3)
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	if err == nil {
		err = q.Put(ctx, t) // moves t to shared memory; the message is a handle
	}
	if err == nil {
		err = double.Spawn(ctx, 1, q) // starts a process, and waits for its end
	}
	fmt.Println(t)
	return err
}
