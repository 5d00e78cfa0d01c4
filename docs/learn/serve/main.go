// Serve is the program of lesson 7: four processes compute with one copy of the weights, which is
// replaced while they run.
package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
)

type model struct {
	Version int
	Weights *tensor.Tensor
}

var latest *ipc.Latest[model] // of a worker

var prepare = pool.RegisterInit("prepare", func(_ context.Context, l *ipc.Latest[model]) error {
	latest = l
	return nil
})

var predict = pool.Register("predict", func(_ context.Context, x float64) (string, error) {
	m, _, err := latest.Load() // the newest version, which stays until it is closed here
	if err != nil {
		return "", err
	}
	defer m.Weights.Close()
	return fmt.Sprintf("v%d: %v", m.Version, x*m.Weights.Sum()), nil
})

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	first := model{1, tensor.Full(tensor.Float32, 1, 1000)}
	l, err := ipc.NewLatest(first)
	first.Weights.Close() // l has its own reference
	if err != nil {
		return err
	}
	defer l.Close()
	p, err := pool.New(ctx, pool.Options{Workers: 4, Initializer: prepare(l)})
	if err != nil {
		return err
	}
	defer p.Close()
	for version := 2; version <= 4; version++ {
		answers, err := predict.Map(ctx, p, []float64{1, 2, 3, 4})
		if err != nil {
			return err
		}
		fmt.Println(answers)
		next := model{version, tensor.Full(tensor.Float32, float64(version), 1000)}
		_, err = l.Store(ctx, next)
		next.Weights.Close()
		if err != nil {
			return err
		}
	}
	return nil
}
