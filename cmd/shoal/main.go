// Command shoal is the command-line tool of Shoal: it inspects and benchmarks programs, runs jobs
// and converts tensor files.
//
//	shoal COMMAND [flags]
//
// "shoal --help" lists the commands, and "shoal COMMAND --help" lists the flags of one. Results go
// to standard output and diagnostics to standard error. Some commands execute a helper program such
// as shoal-broker or shoal-accel, which should be installed beside shoal or on the PATH.
//
// The exit status is 0 on success, 2 for wrong usage, 1 for any other failure, and 130 or 143 after
// SIGINT or SIGTERM. "shoal run" exits with the status of the first rank that fails. If the reader
// of standard output closes the pipe, SIGPIPE ends the program; a shell reports 141.
package main

import (
	"context"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
)

// commands lists the subcommands. Each should be implemented in its own file.
var commands = []subcommand.Command{
	{Name: "hogwild", Help: "Train one network on handwritten digits in several processes without locks.",
		Runner: new(hogwildCommand)},
	{Name: "run", Help: "Run a program as the ranks of a job, on this machine, through ssh or with mpirun.",
		Runner: new(runCommand)},
	{Name: "bench", Help: "Benchmark Shoal against the limits of this machine and against PyTorch.",
		Runner: new(benchCommand)},
	{Name: "broker",
		Help:   "Run a NATS broker with one or three nodes, for queues and values shared by several machines.",
		Runner: new(brokerCommand), OwnArguments: true},
	{Name: "loader",
		Help:   "Print the path of the loader for PyTorch's DataLoader and how a script uses it.",
		Runner: new(loaderCommand)},
	{Name: "serve",
		Help:   "Serve the batches of a data set to trainers on other machines.",
		Runner: new(serveCommand), OwnArguments: true},
	{Name: "inspect", Help: "Print the tensors in a file: names, dtypes, shapes, sizes, statistics.",
		Runner: new(inspectCommand)},
	{Name: "convert", Help: "Convert a file of tensors to another format.",
		Runner: new(convertCommand)},
	{Name: "doctor", Help: "Examine this machine and its Shoal programs, and recommend settings.",
		Runner: new(doctorCommand)},
	{Name: "top",
		Help:   "Show the Shoal programs on this machine, their memory and their traffic, continuously.",
		Runner: new(topCommand)},
	{Name: "watch",
		Help:   "Serve a live page about the Shoal programs on this machine: memory, queues, locks, waits.",
		Runner: new(watchCommand), OwnArguments: true},
	{Name: "ps", Help: "Print a line for each process of the Shoal programs on this machine.", Runner: new(psCommand)},
	{Name: "version", Help: "Print the versions of Shoal and Go.", Runner: new(versionCommand)},
}

func main() {
	shoal.Main(func(ctx context.Context) error {
		return subcommand.Run(ctx, "shoal", "Many processes, one set of tensors.", commands)
	})
}
