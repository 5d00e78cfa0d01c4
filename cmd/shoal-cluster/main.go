// Command shoal-cluster is what the command shoal does with an MPI library, and with other machines
// to measure them. It loads the library, so it is dynamic, and shoal is not. Shoal finds it beside
// itself or on the PATH.
package main

import (
	"context"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
)

// commands are named and flagged as those of shoal, which hands its arguments over as they are.
var commands = []subcommand.Command{
	{Name: "bench", Help: "Measure all-reduces by MPI, batches of a data host, and tensors by TCP.",
		Runner: new(benchCommand)},
	{Name: "datahost", Help: "Be the data host that is measured.", Runner: new(dataHostCommand)},
	{Name: "epochs", Help: "Be the trainer that is measured.", Runner: new(epochsCommand)},
	{Name: "rank", Help: "Be one of the ranks that are measured: the launcher starts it.", Runner: new(rankCommand)},
}

func main() {
	shoal.Main(func(ctx context.Context) error {
		return subcommand.Run(ctx, "shoal-cluster", "What shoal does by MPI.", commands)
	})
}
