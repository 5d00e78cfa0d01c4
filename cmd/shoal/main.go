// Command shoal is the command line of Shoal: measuring, and the examples that are worth running.
// It exits with status 0 if all went well, 2 if it was asked for what it does not have, 1 if
// anything else failed, and 130 or 143 after SIGINT or SIGTERM. Run has the status of the first
// rank that fails. When nobody reads what it writes, it ends as the kernel has it (141 to a shell).
package main

import (
	"context"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
)

// Each command has a file of its own.
var commands = []subcommand.Command{
	{Name: "hogwild", Help: "Train one network on handwritten digits by several processes without locks.",
		Runner: new(hogwildCommand)},
	{Name: "run", Help: "Run a program as the ranks of a job: on this machine, by ssh, or by mpirun.",
		Runner: new(runCommand)},
	{Name: "bench", Help: "Measure Shoal against this machine, and against PyTorch.", Runner: new(benchCommand)},
	{Name: "broker",
		Help:   "Run a NATS broker for queues and values of many machines: one node, or three.",
		Runner: new(brokerCommand), OwnArguments: true},
	{Name: "loader",
		Help:   "Say where the ready-made loader for PyTorch's DataLoader is, and how a script uses it.",
		Runner: new(loaderCommand)},
	{Name: "serve",
		Help:   "Be a data host: make the batches of a data set for trainers on other machines.",
		Runner: new(serveCommand), OwnArguments: true},
	{Name: "inspect", Help: "Print the tensors in a file: names, dtypes, shapes, sizes, statistics.",
		Runner: new(inspectCommand)},
	{Name: "convert", Help: "Write the tensors of one file to another, of another format.",
		Runner: new(convertCommand)},
	{Name: "doctor", Help: "Look at this machine and at the Shoal programs on it, and say what to set.",
		Runner: new(doctorCommand)},
	{Name: "top",
		Help:   "Show the Shoal programs on this machine, who holds how much, and what moves, again and again.",
		Runner: new(topCommand)},
	{Name: "watch",
		Help:   "Show the Shoal programs on this machine as a live page in the browser: memory, queues, locks, waits.",
		Runner: new(watchCommand), OwnArguments: true},
	{Name: "ps", Help: "Print a line for each process of the Shoal programs on this machine.", Runner: new(psCommand)},
	{Name: "version", Help: "Print which build of Shoal and of Go this is.", Runner: new(versionCommand)},
}

func main() {
	shoal.Main(func(ctx context.Context) error {
		return subcommand.Run(ctx, "shoal", "Many processes, one set of tensors.", commands)
	})
}
