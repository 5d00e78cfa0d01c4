// Loader is the program of lesson 2: two processes read one set of digits, each a half of it, and
// each with a loader of its own.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

const ranks = 2

var read = shoal.Register("read", func(ctx context.Context, rank int, digits *data.TensorDataset) error {
	loader := data.NewLoader(digits, data.Options{
		BatchSize: 64, Shuffle: true, Seed: 1,
		Rank: rank, World: ranks,
		Workers:   2,
		Transform: data.ToTensor,
	})
	defer loader.Close()
	batches, seen, sevens := 0, 0, 0
	for batch, err := range loader.Batches(ctx) {
		if err != nil {
			return err
		}
		images, labels := batch[0], batch[1]
		batches, seen = batches+1, seen+images.Dim(0)
		for _, label := range tensor.Data[int64](labels) {
			if label == 7 {
				sevens++
			}
		}
		batch.Close() // its memory is for the next batch
	}
	fmt.Printf("rank %d read %d digits in %d batches, %d of them sevens\n", rank, seen, batches, sevens)
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	return read.Spawn(ctx, ranks, datasets.Digits(1000, 1)) // one copy, in shared memory
}
