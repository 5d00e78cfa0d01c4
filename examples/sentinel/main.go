// Command sentinel ends consumers of a queue in two ways: by one nil for each consumer, as Python
// programs do, or with -finish by finishing the queue, after which the loops end by themselves.
//
//	go run ./examples/sentinel [-finish]
//
// It prints the sum that the consumers computed.
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
	for n, err := range j.Numbers.All(ctx) { // ends when the queue is finished and empty
		if err != nil {
			return err
		}
		if n == nil {
			break // the other nils are for the other consumers
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
	queue.Receiver().Close() // so that Put returns an error if all consumers die
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
