// Command tasks uses two queues: workers take chunks of a shared tensor from one and put sums into
// the other, labelled with the chunk. A worker that gets no task for a while exits.
//
//	go run ./examples/tasks
//
// It prints the sums and the number of remaining tasks.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const workers, chunks, patience = 3, 6, 100 * time.Millisecond

type task struct {
	Chunk int
	Data  *tensor.Tensor
}

type result struct {
	Chunk int
	Sum   float64
}

type desk struct {
	Tasks   *ipc.Receiver[task]
	Results *ipc.Sender[result]
}

var sum = shoal.Register("sum", func(ctx context.Context, rank int, d desk) error {
	for {
		wait, cancel := context.WithTimeout(ctx, patience)
		t, err := d.Tasks.Get(wait)
		cancel()
		switch {
		case errors.Is(err, ipc.ErrEmpty): // timed out
			return nil
		case err != nil:
			return err
		}
		if err := d.Results.Put(ctx, result{t.Chunk, t.Data.Sum()}); err != nil {
			return err
		}
	}
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	tasks, err1 := ipc.NewQueue[task](chunks)
	results, err2 := ipc.NewQueue[result](chunks)
	whole, err3 := tensor.NewShared(tensor.Float32, 1000*chunks, 100)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	defer tasks.Close()
	defer results.Close()
	defer whole.Close()
	for i, part := range whole.Fill(1).Chunk(chunks, 0) {
		if err := tasks.TryPut(task{i, part.MulScalarInPlace(float64(i))}); err != nil {
			return err
		}
	}
	if err := sum.Spawn(ctx, workers, desk{tasks.Receiver(), results.Sender()}); err != nil {
		return err
	}
	var sums [chunks]float64
	for {
		r, err := results.TryGet()
		if errors.Is(err, ipc.ErrEmpty) {
			fmt.Printf("sums of the chunks: %v, %v tasks left\n", sums, tasks.Len())
			return nil
		}
		if err != nil {
			return err
		}
		sums[r.Chunk] = r.Sum
	}
}
