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

// Weights is a version of the model. A receiver must close W. All elements are equal, so that an
// answer reveals the version that was used.
type Weights struct {
	Number int
	PID    int // process that created them
	W      *tensor.Tensor
}

// versionElement returns the element value of version n. Sums of a few hundred of them are exact in
// float32.
func versionElement(n int) float32 { return float32(n % 1000) }

// storeVersion creates version n of the weights in shared memory and stores it as the newest
// one.
func storeVersion(ctx context.Context, weights *ipc.Latest[Weights], n int) error {
	w := tensor.Full(tensor.Float32, float64(versionElement(n)), size, size)
	if err := w.Share(); err != nil {
		return err
	}
	defer w.Close() // closes this process's reference only
	_, err := weights.Store(ctx, Weights{n, os.Getpid(), w})
	return err
}

// An answer is the product of a vector with all elements x and the weights. It includes the version
// of the weights and the worker's rank and process ID.
type answer struct {
	Y             []float32
	Number        int
	Rank, PID     int
	ReloadedByPID int
}

// infer computes the answer to x with the newest weights, as the worker of a rank. The weights
// cannot change before they are closed.
func infer(weights *ipc.Latest[Weights], rank int, x float32) (answer, error) {
	w, _, err := weights.Load()
	if err != nil {
		return answer{}, err
	}
	defer w.W.Close()
	y := tensor.MatMul(tensor.Full(tensor.Float32, float64(x), 8, size), w.W)
	return answer{tensor.Data[float32](y), w.Number, rank, os.Getpid(), w.PID}, nil
}

// reload replaces the weights until its context is done. A restarted process continues with the
// next version.
var reload = shoal.Register("reload", func(ctx context.Context, rank int, weights *ipc.Latest[Weights]) error {
	last, _, err := weights.Load()
	if err != nil {
		return err
	}
	last.W.Close()
	for n := last.Number + 1; ; n++ {
		if err := storeVersion(ctx, weights, n); err != nil {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
})
