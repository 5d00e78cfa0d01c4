// Command buffers recycles shared buffers: producers send tensors to one consumer, which returns
// them to be filled again. From the second round on, no byte is copied and no block is allocated.
//
//	go run ./examples/buffers
//
// It prints the domain's counters of copies and allocations.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const producers, rounds, size = 3, 50, 1 << 18

type ends struct {
	Full  *ipc.Sender[*tensor.Tensor]
	Empty *ipc.Receiver[*tensor.Tensor]
}

var produce = shoal.Register("produce", func(ctx context.Context, rank int, q ends) error {
	buffer, err := tensor.NewShared(tensor.Float32, size)
	if err != nil {
		return err
	}
	for range rounds {
		buffer.Fill(float64(rank))
		if err := errors.Join(q.Full.Put(ctx, buffer), buffer.Close()); err != nil { // now only the queue holds it
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
	g := shoal.NewGroup(ctx, shoal.Options{Workers: producers})
	defer g.Close()
	for range producers {
		produce.Go(g, ends{full.Sender(), empty.Receiver()})
	}
	full.Sender().Close() // so that Get returns an error if all producers die
	empty.Receiver().Close()
	return errors.Join(consume(ctx, full.Receiver(), empty.Sender()), g.Wait())
}

func consume(ctx context.Context, full *ipc.Receiver[*tensor.Tensor],
	empty *ipc.Sender[*tensor.Tensor]) error {
	first, held := shoal.MemoryStats(), []*tensor.Tensor(nil)
	for n := range producers * rounds {
		b, err := full.Get(ctx)
		if err != nil {
			return err
		}
		held = append(held, b)
		switch {
		case n < producers-1:
			continue
		case n == producers-1: // each producer has allocated and waits for its buffer
			first = shoal.MemoryStats()
		}
		for ; len(held) > 0; held = held[1:] {
			if err := errors.Join(empty.Put(ctx, held[0]), held[0].Close()); err != nil {
				return err
			}
		}
	}
	last := shoal.MemoryStats()
	fmt.Printf("%d buffers of %d KiB came by\nsince round 2: %d bytes copied, %d blocks allocated\n",
		producers*rounds, 4*size>>10, last.Copied-first.Copied, last.Allocs-first.Allocs)
	return nil
}
