// Command named shares a tensor by name: processes look it up with its dtype, shape and strides.
// Two processes add 10 and 20 to it at once with elementwise atomic additions, so no lock is
// needed.
//
//	go run ./examples/named
//
// Each process prints the tensor that it found. Then the parent prints whether the result is arange
// + 30.
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
	if err := errors.Join(err, ipc.Unlink(name)); err != nil { // references stay valid
		return err
	}
	want := tensor.Arange(tensor.Float32, 30, 54, 1).Reshape(2, 3, 4)
	fmt.Println("arange + 30:", tensor.Equal(t, want))
	return nil
}
