// Command starmap distributes chunks to a pool: four workers sum the columns of a 1000×100 tensor
// in four chunks, and the results arrive in the order of the chunks. Only handles are sent.
//
//	go run ./examples/starmap
//
// It prints the sum for each chunk and the total.
package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

const rows, columns, workers = 1000, 100, 4

// sumColumns returns the column sums in shared memory, so that the receiver maps them.
var sumColumns = pool.Register2("sumColumns",
	func(_ context.Context, i int, chunk *tensor.Tensor) (*tensor.Tensor, error) {
		defer chunk.Close()
		sums := tensor.Sum(chunk, 0)
		return sums, sums.Share()
	})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	whole, err := tensor.NewShared(tensor.Float32, rows, columns)
	if err != nil {
		return err
	}
	defer whole.Close()
	for row := range rows {
		whole.Select(0, row).Fill(float64(row))
	}
	p, err := pool.New(ctx, pool.Options{Workers: workers})
	if err != nil {
		return err
	}
	defer p.Close()

	sums, err := sumColumns.StarMap(ctx, p, slices.All(whole.Chunk(workers, 0)))
	if err != nil {
		return err
	}
	total := 0.0
	for i, s := range sums {
		fmt.Printf("chunk %d: each column sums to %v\n", i, tensor.At[float32](s, 0))
		total += s.Sum()
	}
	fmt.Println("all together:", total)
	return nil
}
