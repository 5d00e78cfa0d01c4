package main

import (
	"context"
	"fmt"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
)

// loaderCommand implements shoal loader.
type loaderCommand struct{}

// Run prints the path of shoal-loader and how a script uses it. It does not execute shoal-loader,
// because PyTorch must start that program itself, once for each worker.
func (*loaderCommand) Run(context.Context) error {
	path, err := beside.Find("shoal-loader")
	if err != nil {
		return fmt.Errorf("%w; or build it in a clone with CGO_ENABLED=0 go build -o loader ./cmd/shoal-loader", err)
	}
	fmt.Printf(loaderUse, path)
	return nil
}

const loaderUse = `The loader is %[1]s. Two lines in a script use it:

  torch.multiprocessing.set_executable("%[1]s")
  DataLoader(Go("images", root="train", resize=256, crop=224), num_workers=2, multiprocessing_context="spawn")

docs/torch.md shows the class Go, a few lines of the script; run the program without arguments for the data sets.
`
