// Copies is the program of lesson 3: it counts the bytes that are copied when a tensor goes to
// another process.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/shoal-mp/shoal"
	_ "github.com/shoal-mp/shoal/cuda" // brings the devices
	"github.com/shoal-mp/shoal/tensor"
)

const size = 1 << 20 // elements, of 4 bytes

var increment = shoal.Register("increment", func(ctx context.Context, rank int, t *tensor.Tensor) error {
	t.AddScalarInPlace(1)
	return t.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	device := flag.String("device", "", "also a tensor of this device: cuda, cuda:N")
	flag.Parse()
	heap := tensor.New(tensor.Float32, size)
	defer heap.Close()
	shared, err := tensor.NewShared(tensor.Float32, size)
	if err != nil {
		return err
	}
	defer shared.Close()
	rows := []row{{"made on the heap", heap}, {"sent again", heap}, {"made shared", shared}}
	if *device != "" {
		dev, err := tensor.ParseDevice(*device)
		if err != nil {
			return err
		}
		there, err := tensor.On(dev).Zeros(tensor.Float32, size)
		if err != nil {
			return err
		}
		defer there.Close()
		rows = append(rows, row{"on " + *device, there})
	}
	for _, r := range rows {
		before := shoal.MemoryStats().Copied
		if err := increment.Spawn(ctx, 1, r.t); err != nil {
			return err
		}
		fmt.Printf("%-16s %4d KiB copied\n", r.name, (shoal.MemoryStats().Copied-before)>>10)
	}
	fmt.Println("the elements are", tensor.At[float32](heap, 0), "and", tensor.At[float32](shared, 0))
	return nil
}

type row struct {
	name string
	t    *tensor.Tensor
}
