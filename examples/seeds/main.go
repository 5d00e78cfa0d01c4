// Seeds is the lesson of workers that begin by themselves: each opens the model file and seeds
// itself by its rank. The weights are equal, and the random numbers differ and come again in every
// run.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/nn"
	"github.com/shoal-mp/shoal/tensor"
)

type job struct {
	Model string // path
	Seed  uint64
}

var sample = shoal.Register("sample", func(ctx context.Context, rank int, j job) error {
	model := nn.NewLinear(4, 2, nil)
	if err := load(model, j.Model); err != nil {
		return err
	}
	g := tensor.NewGenerator(j.Seed + uint64(rank))
	noise := tensor.RandN(tensor.Float32, g, 4)
	fmt.Printf("rank %d: weights %.6f, noise %.6f\n", rank, model.Weight.T.Sum(), noise.Sum())
	return nil
})

// load reads the parameters of m from a file.
func load(m nn.Module, path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	state, err := f.Tensors()
	if err != nil {
		return err
	}
	return nn.Load(m, state)
}

func main() { shoal.Main(run) }

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "seeds")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	model := nn.NewLinear(4, 2, tensor.NewGenerator(1))
	if err := safetensors.Save(path, nn.State(model)); err != nil {
		return err
	}
	return sample.Spawn(ctx, 3, job{path, 100})
}
