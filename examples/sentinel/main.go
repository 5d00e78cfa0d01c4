// Sentinel is the lesson of the end of a queue: consumers learn it as in Python programs, by one
// nil for each. With -finish it is said once that nobody puts any more, and their loops end by
// themselves.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const consumers, numbers = 3, 1000

type job struct {
	Numbers *ipc.Receiver[*int]
	Sum     *tensor.Tensor // shared; one int64
}

var consume = shoal.Register("consume", func(ctx context.Context, rank int, j job) error {
	sum := 0
	for n, err := range j.Numbers.All(ctx) { // ends by itself when the queue is finished and empty
		if err != nil {
			return err
		}
		if n == nil {
			break // the other nils are the others'
		}
		sum += *n
	}
	j.Sum.AddScalarAtomic(float64(sum))
	return j.Sum.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	finish := flag.Bool("finish", false, "finish the queue instead of sending nils")
	flag.Parse()
	queue, err1 := ipc.NewQueue[*int](16)
	sum, err2 := tensor.NewShared(tensor.Int64, 1)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	defer queue.Close()
	defer sum.Close()
	g := shoal.NewGroup(ctx, shoal.Options{Workers: consumers})
	defer g.Close()
	for range consumers {
		consume.Go(g, job{queue.Receiver(), sum})
	}
	queue.Receiver().Close() // the consumers' ends stay: if they die, Put says it
	if err := errors.Join(produce(ctx, queue.Sender(), *finish), g.Wait()); err != nil {
		return err
	}
	fmt.Printf("%d consumers added %d numbers to %d\n", consumers, numbers, tensor.At[int64](sum, 0))
	return nil
}

func produce(ctx context.Context, q *ipc.Sender[*int], finish bool) error {
	for n := range numbers {
		if err := q.Put(ctx, &n); err != nil {
			return err
		}
	}
	if finish {
		return q.Finish()
	}
	for range consumers {
		if err := q.Put(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}
