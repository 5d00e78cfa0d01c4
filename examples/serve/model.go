package main

import (
	"context"
	"os"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
)

const size = 256

// Weights are a version of the model, of which all elements are the same, so that an answer shows
// what it was computed by.
type Weights struct {
	Number int
	PID    int // who made them
	W      *tensor.Tensor
}

// element is that of version n. Sums of a few hundred of them are exact.
func element(n int) float32 { return float32(n % 1000) }

// publish makes number n the newest.
func publish(ctx context.Context, weights *ipc.Latest[Weights], n int) error {
	w := tensor.Full(tensor.Float32, float64(element(n)), size, size)
	if err := w.Share(); err != nil {
		return err
	}
	defer w.Close() // here; who computes with it has it
	_, err := weights.Store(ctx, Weights{n, os.Getpid(), w})
	return err
}

// An answer is x times the weights, for a vector of which all elements are x, and the worker that
// has computed it by which weights.
type answer struct {
	Y             []float32
	Number        int
	Rank, PID     int
	ReloadedByPID int
}

// infer computes with the newest weights, which stay as they are until they are closed here.
func infer(weights *ipc.Latest[Weights], rank int, x float32) (answer, error) {
	w, _, err := weights.Load()
	if err != nil {
		return answer{}, err
	}
	defer w.W.Close()
	y := tensor.MatMul(tensor.Full(tensor.Float32, float64(x), 8, size), w.W)
	return answer{tensor.Data[float32](y), w.Number, rank, os.Getpid(), w.PID}, nil
}

// reload replaces the weights until it is told to stop. The worker that takes its place goes on
// where it was.
var reload = shoal.Register("reload", func(ctx context.Context, rank int, weights *ipc.Latest[Weights]) error {
	last, _, err := weights.Load()
	if err != nil {
		return err
	}
	last.W.Close()
	for n := last.Number + 1; ; n++ {
		if err := publish(ctx, weights, n); err != nil {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
})
