// Named is the lesson of a tensor that has a name: processes find it with its dtype, shape and
// strides. Two add 10 and 20 to it at once, by an atomic addition for each element, so no lock is
// needed: it always ends as arange + 30.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const name = "block of 2×3×4"

var add = shoal.Register("add", func(ctx context.Context, rank int, amounts []float64) error {
	t, err := ipc.Lookup[*tensor.Tensor](name)
	if err != nil {
		return err
	}
	t.AddScalarAtomic(amounts[rank])
	fmt.Printf("rank %d found a %v tensor of shape %v and added %v\n", rank, t.DType(), t.Shape(), amounts[rank])
	return t.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	t := tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4)
	defer t.Close()
	if err := ipc.Bind(ctx, name, t); err != nil { // moves it to shared memory
		return err
	}
	amounts := []float64{10, 20}
	err := add.Spawn(ctx, len(amounts), amounts)
	if err := errors.Join(err, ipc.Unlink(name)); err != nil { // who has it goes on
		return err
	}
	want := tensor.Arange(tensor.Float32, 30, 54, 1).Reshape(2, 3, 4)
	fmt.Println("arange + 30:", tensor.Equal(t, want))
	return nil
}
