// Command shoal-cluster runs the subcommands of shoal that need an MPI library or a network.
//
//	shoal-cluster bench [--json] [--quick]  measure MPI, the data service and TCP
//
// It prints one row for each measurement. The subcommands datahost, epochs and rank are the
// processes that bench starts; they should not be run by hand. Users should run "shoal bench
// cluster", which executes shoal-cluster if it is installed beside shoal or on the PATH. The
// programs are separate because this one loads the MPI library and is therefore dynamically linked,
// and shoal must stay static.
package main

import (
	"context"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
)

// commands must have the names and flags of the corresponding commands of shoal, because shoal
// passes its arguments on unchanged.
var commands = []subcommand.Command{
	{Name: "bench", Help: "Benchmark all-reduces over MPI, batches from a data host, and tensors over TCP.",
		Runner: new(benchCommand)},
	{Name: "datahost", Help: "Internal: serve as the measured data host.", Runner: new(dataHostCommand)},
	{Name: "epochs", Help: "Internal: run as the measured trainer.", Runner: new(epochsCommand)},
	{Name: "rank", Help: "Internal: run as a measured rank; started by the launcher.", Runner: new(rankCommand)},
}

func main() {
	shoal.Main(func(ctx context.Context) error {
		return subcommand.Run(ctx, "shoal-cluster", "The cluster benchmarks of shoal.", commands)
	})
}
