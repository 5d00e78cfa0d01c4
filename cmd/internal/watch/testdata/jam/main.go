// Jam is a program for tests of the page: producers that are faster than their consumer, a worker
// that closes nothing, and two workers that take two locks in different orders. It prints a line
// when the two have their first locks, and runs until it is interrupted.
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

type locks struct {
	Left, Right *ipc.Mutex
	Both        *ipc.Barrier
	Tell        *ipc.Sender[int]
}

var fork = shoal.Register("fork", func(ctx context.Context, rank int, l locks) error {
	first, second := l.Left, l.Right
	if rank == 1 {
		first, second = second, first
	}
	if err := first.Lock(ctx); err != nil {
		return err
	}
	if _, err := l.Both.Wait(ctx); err != nil {
		return err
	}
	if err := l.Tell.Put(ctx, rank); err != nil {
		return err
	}
	return second.Lock(ctx)
})

var produce = shoal.Register("produce", func(ctx context.Context, rank int, to *ipc.Sender[*tensor.Tensor]) error {
	for {
		t, err := tensor.NewShared(tensor.Float32, 64, 1024)
		if err != nil {
			return err
		}
		if err := to.Put(ctx, t.Give()); err != nil {
			return err
		}
	}
})

var train = shoal.Register("train", func(ctx context.Context, rank int, from *ipc.Receiver[*tensor.Tensor]) error {
	for t, err := range from.All(ctx) {
		if err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // the work of a step
		t.Close()
	}
	return nil
})

var forget = shoal.Register("forget", func(ctx context.Context, rank int, every time.Duration) error {
	var all []*tensor.Tensor
	for len(all) < 200 {
		t, err := tensor.NewShared(tensor.Uint8, 1<<20)
		if err != nil {
			return err
		}
		all = append(all, t)
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return nil
		}
	}
	<-ctx.Done()
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	left, err1 := ipc.NewMutex()
	right, err2 := ipc.NewMutex()
	both, err3 := ipc.NewBarrier(2)
	tell, err4 := ipc.NewQueue[int](2)
	batches, err5 := ipc.NewQueue[*tensor.Tensor](16)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	if err := errors.Join(ipc.Bind(ctx, "left", left), ipc.Bind(ctx, "right", right),
		ipc.Bind(ctx, "batches", batches)); err != nil {
		return err
	}
	g := shoal.NewGroup(ctx, shoal.Options{})
	defer g.Close()
	for range 2 {
		fork.Go(g, locks{left, right, both, tell.Sender()})
	}
	for range 2 {
		produce.Go(g, batches.Sender())
	}
	train.Go(g, batches.Receiver())
	forget.Go(g, 200*time.Millisecond)
	for range 2 {
		if _, err := tell.Get(ctx); err != nil {
			return err
		}
	}
	fmt.Println("jammed")
	err := g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}
