package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/hogwild"
)

// hogwildCommand is shoal hogwild. Its defaults are those of the example of torch.multiprocessing.
type hogwildCommand struct {
	Data     string `placeholder:"DIR" help:"Folder with the four MNIST files, gzipped or not. Without it, digits are rendered."`
	Download bool   `help:"Fetch the files that the folder lacks."`

	Workers int  `default:"2" aliases:"num-processes" help:"Processes that train the one network (${default})."`
	Threads int  `placeholder:"N" help:"Threads of each worker; its share of the machine unless given."`
	Shard   bool `help:"Split the training set among the workers, instead of each passing over all of it."`

	Epochs        *int    `placeholder:"N" help:"Passes over the training set: 10, or 1 over rendered digits."`
	BatchSize     int     `default:"64" help:"Samples of a step (${default})."`
	TestBatchSize int     `default:"1000" help:"Samples tested at a time (${default})."`
	LR            float64 `name:"lr" default:"0.01" help:"Learning rate (${default})."`
	Momentum      float64 `default:"0.5" help:"Momentum of SGD (${default})."`
	Seed          uint64  `default:"1" help:"Worker r takes this plus r (${default})."`
	DryRun        bool    `help:"One batch per worker and epoch, to see that all runs."`

	Out string `placeholder:"FILE.safetensors" help:"Where to write the trained network."`

	LogInterval int  `default:"10" help:"Batches between two reports of a worker (${default})."`
	JSON        bool `name:"json" help:"The result as one JSON object on standard output; all else goes to standard error."`
	Verbose     bool `help:"Say more."`
}

// Passes over the training set where --epochs does not say: the original's, and enough for digits that are rendered.
const (
	epochsOfMNIST  = 10
	epochsOfDigits = 1
)

// Run trains and tests.
func (c *hogwildCommand) Run(ctx context.Context) error {
	return hogwild.Run(ctx, hogwild.Options{
		Data: c.Data, Download: c.Download,
		Workers: c.Workers, Threads: c.Threads, Shard: c.Shard,
		Epochs: c.epochs(), BatchSize: c.BatchSize, TestBatchSize: c.TestBatchSize,
		LR: c.LR, Momentum: c.Momentum, Seed: c.Seed, DryRun: c.DryRun,
		Out: c.Out, LogInterval: c.LogInterval, JSON: c.JSON, Verbose: c.Verbose,
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
}

func (c *hogwildCommand) epochs() int {
	switch {
	case c.Epochs != nil:
		return *c.Epochs
	case c.Data != "":
		return epochsOfMNIST
	}
	return epochsOfDigits
}
