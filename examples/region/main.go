// Command region shares raw memory protected by a semaphore: processes open both by name, wrap the
// bytes in a tensor, and change two numbers that must stay equal. The first process that acquires
// the permit is killed while it holds it, and the permit is recovered.
//
//	go run ./examples/region
//
// It prints the signal that killed the process and the two numbers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

// A layout describes the tensor in the raw bytes.
type layout struct {
	DType  tensor.DType
	Shape  []int
	Offset int // bytes
}

var perish = shoal.Register("perish", func(ctx context.Context, rank int, permit *ipc.Semaphore) error {
	self, err := os.FindProcess(os.Getpid())
	return errors.Join(err, permit.Acquire(ctx), self.Kill())
})

var count = shoal.Register("count", func(ctx context.Context, rank int, l layout) error {
	permit, err1 := ipc.Lookup[*ipc.Semaphore]("permit")
	region, err2 := ipc.Lookup[*ipc.Memory]("region")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	pair, err := tensor.FromBuffer(region, l.DType, l.Shape, nil, l.Offset)
	if err != nil {
		return err
	}
	for range 500 {
		if err := permit.Acquire(ctx); err != nil {
			return err
		}
		pair.Select(0, 0).AddScalarInPlace(1) // not atomic, so the permit is required
		pair.Select(0, 1).CopyFrom(pair.Select(0, 0))
		if err := permit.Release(); err != nil {
			return err
		}
	}
	return nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	region, err1 := ipc.NewMemory("region", 4096)
	permit, err2 := ipc.NewSemaphore(1)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := ipc.Bind(ctx, "permit", permit); err != nil {
		return err
	}
	var death *shoal.ProcessError
	if err := perish.Spawn(ctx, 1, permit); !errors.As(err, &death) {
		return fmt.Errorf("it lives: %w", err)
	}
	l := layout{tensor.Int64, []int{2}, 64}
	if err := count.Spawn(ctx, 4, l); err != nil {
		return err
	}
	pair, err := tensor.FromBuffer(region, l.DType, l.Shape, nil, l.Offset)
	if err != nil {
		return err
	}
	fmt.Printf("one died (%v), four counted %v\n", death.Signal, tensor.Data[int64](pair))
	return errors.Join(pair.Close(), region.Close(), permit.Close(), ipc.Unlink("region"), ipc.Unlink("permit"))
}
