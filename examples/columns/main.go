// Command columns updates a tensor from several processes at once: two processes per column add 10
// to it with elementwise atomic additions, so every element ends at 20. With a plain AddScalar,
// some updates could be lost.
//
//	go run ./examples/columns [-device cuda]
//
// It prints the range of each column. With -device cuda the tensor is in GPU memory, and the GPU
// adds.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/shoal-mp/shoal"
	_ "github.com/shoal-mp/shoal/cuda" // registers the GPU devices
	"github.com/shoal-mp/shoal/tensor"
)

// raise adds 10 to the column of its rank in steps of 1, so that the two processes of a column
// overlap.
var raise = shoal.Register("raise", func(ctx context.Context, rank int, t *tensor.Tensor) error {
	column := t.Select(1, rank%t.Dim(1))
	for range 10 {
		column.AddScalarAtomic(1)
	}
	return column.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	device := flag.String("device", "cpu", "where the tensor is: cpu, cuda, cuda:N or auto")
	flag.Parse()
	const rows, columns = 1000, 3
	dev, err := tensor.ParseDevice(*device)
	if err != nil {
		return err
	}
	t, err := tensor.On(dev).Zeros(tensor.Float32, rows, columns)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := raise.Spawn(ctx, 2*columns, t); err != nil {
		return err
	}
	here, err := t.CPU()
	if err != nil {
		return err
	}
	defer here.Close()
	for c := range columns {
		low, high := rangeOf(here.Select(1, c).Contiguous())
		fmt.Printf("column %d: all %d elements from %v to %v, after element-atomic additions by 2 processes\n", c,
			rows, low, high)
	}
	return nil
}

func rangeOf(t *tensor.Tensor) (low, high float32) {
	low, high = tensor.At[float32](t, 0), tensor.At[float32](t, 0)
	for _, v := range tensor.Data[float32](t) {
		low, high = min(low, v), max(high, v)
	}
	return low, high
}
