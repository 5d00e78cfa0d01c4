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

// What runs in another process is a package-level variable.
var double = shoal.Register("double", func(ctx context.Context, rank int, q *ipc.Queue[*tensor.Tensor]) error {
	t, err := q.Get(ctx) // the tensor of the other process, not a copy
	if err != nil {
		return err
	}
	t.MulScalar(2)
	return t.Close()
})

func main() { shoal.Main(run) } // workers never get past this line

func run(ctx context.Context) error {
	q, err := ipc.NewQueue[*tensor.Tensor](1)
	if err != nil {
		return err
	}
	defer q.Close()
	t, err := tensor.NewShared(tensor.Float32, 3)
	if err != nil {
		return err
	}
	defer t.Close()
	copy(tensor.Data[float32](t), []float32{1, 2, 3})
	if err := q.Put(ctx, t); err != nil { // a handle
		return err
	}
	if err := double.Spawn(ctx, 1, q); err != nil { // starts a process, and waits for its end
		return err
	}
	fmt.Println(tensor.Data[float32](t))
	return nil
}
