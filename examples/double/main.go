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
	if err != nil {
		return err
	}
	defer t.Close()
	t.MulScalarInPlace(2)
	return nil
})

func main() { shoal.Main(run) } // workers never get past this line

func run(ctx context.Context) error {
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	if err != nil {
		return err
	}
	defer q.Close()
	t := tensor.FromSlice([]float32{1, 2, 3}, 3)
	defer t.Close()
	if err := q.Put(ctx, t); err != nil { // moves t to shared memory; the message is a handle
		return err
	}
	if err := double.Spawn(ctx, 1, q); err != nil { // starts a process, and waits for its end
		return err
	}
	fmt.Println(t)
	return nil
}
