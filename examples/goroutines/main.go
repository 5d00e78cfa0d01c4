// Command goroutines runs the tasks of a pool in goroutines instead of processes, with the same
// functions, calls and errors. A panic fails only its own task in both modes.
//
//	go run ./examples/goroutines [-processes]
//
// It prints the speedup over a single worker and both results.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

const chunks, size, passes = 16, 50_000, 20

// norm is expensive enough to be worth a call per chunk.
var norm = pool.Register2("norm", func(_ context.Context, i int, chunk *tensor.Tensor) (float64, error) {
	defer chunk.Close()
	total := 0.0
	for range passes {
		squares := tensor.Mul(chunk, chunk)
		total += squares.Sum()
	}
	return total / passes, nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	processes := flag.Bool("processes", false, "use processes")
	flag.Parse()
	opts := pool.Options{Process: shoal.Options{Start: shoal.GoroutineStart}}
	if *processes {
		opts.Process.Start = shoal.SpawnStart
	}
	many, total, err := measure(ctx, opts)
	if err != nil {
		return err
	}
	opts.Workers = 1
	one, same, err := measure(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Printf("%v workers by %v: %.2f times as fast as one; results %v and %v\n",
		shoal.Threads(), opts.Process.Start, one.Seconds()/many.Seconds(), total, same)
	return nil
}

// measure returns the duration of the job, without the start of the pool, and its result.
func measure(ctx context.Context, opts pool.Options) (d time.Duration, total float64, err error) {
	whole, err := tensor.NewShared(tensor.Float32, chunks, size)
	if err != nil {
		return 0, 0, err
	}
	defer whole.Close()
	parts := whole.Fill(2).Chunk(chunks, 0)
	p, err := pool.New(ctx, opts)
	if err != nil {
		return 0, 0, err
	}
	defer p.Close()
	if err := p.Ready(ctx); err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	norms, err := norm.StarMap(ctx, p, slices.All(parts))
	for _, n := range norms {
		total += n
	}
	return time.Since(begin), total, err
}
