// Practice is the program of lesson 6: two producers fill buffers, and the consumer sends each
// buffer back, so that none is allocated twice.
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

const producers, rounds, size, patience = 2, 50, 1 << 18, time.Minute

type ends struct {
	Full  *ipc.Sender[*tensor.Tensor]
	Empty *ipc.Receiver[*tensor.Tensor]
}

var produce = shoal.Register("produce", func(ctx context.Context, rank int, q ends) error {
	buffer, err := tensor.NewShared(tensor.Float32, size)
	if err != nil {
		return err
	}
	for n := range rounds {
		buffer.Fill(float64(n))
		if err := q.Full.Put(ctx, buffer.Give()); err != nil { // from here on the queue has it
			return err
		}
		if buffer, err = q.Empty.Get(ctx); err != nil {
			return err
		}
	}
	return buffer.Close()
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	full, err1 := ipc.NewQueue[*tensor.Tensor](producers)
	empty, err2 := ipc.NewQueue[*tensor.Tensor](producers)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	defer full.Close()
	defer empty.Close()
	workers, err := produce.Start(ctx, producers, ends{full.Sender(), empty.Receiver()}, shoal.Options{})
	if err != nil {
		return err
	}
	defer workers.Close()
	full.Sender().Close() // only the producers can send now
	empty.Receiver().Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	count, sum := 0, 0.
	for buffer, err := range full.All(ctx) {
		if err != nil {
			return err
		}
		count, sum = count+1, sum+float64(tensor.At[float32](buffer, 0))
		if err := empty.Put(ctx, buffer.Give()); err != nil {
			return err
		}
	}
	fmt.Printf("%d buffers of 1 MiB came by, sum %v, %d bytes copied\n", count, sum, shoal.MemoryStats().Copied)
	return workers.Wait()
}
