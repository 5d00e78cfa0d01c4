// Command shoal is the command line of Shoal: measuring, and the examples that are worth running. It exits with status 0 if all went well, 2 if
// it was asked for what it does not have, 1 if anything else failed, and 130 or 143 after SIGINT or SIGTERM.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/jessevdk/go-flags"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/bench"
	"github.com/shoal-mp/shoal/cmd/internal/hogwild"
)

// commands is the table of subcommands. Each has a file of its own; its fields are its flags.
var commands = []struct {
	name, help string
	command    interface {
		run(ctx context.Context) error
	}
}{
	{"hogwild", "Train one network on handwritten digits by several processes without locks.", new(hogwildCommand)},
	{"bench", "Measure Shoal against this machine, and against PyTorch.", new(benchCommand)},
	{"inspect", "Print the tensors in a file: names, dtypes, shapes, sizes, statistics.", new(inspectCommand)},
	{"convert", "Write the tensors of one file to another, of another format.", new(convertCommand)},
	{"doctor", "Look at this machine and at the Shoal programs on it, and say what to set.", new(doctorCommand)},
	{"top", "Show the Shoal programs on this machine, who holds how much, and what moves, again and again.", new(topCommand)},
	{"version", "Print which build of Shoal and of Go this is.", new(versionCommand)},
}

func main() { shoal.Main(run) }

// run parses the arguments and runs the subcommand that they name.
func run(ctx context.Context) error {
	parser := flags.NewNamedParser("shoal", flags.HelpFlag|flags.PassDoubleDash)
	parser.ShortDescription = "Many processes, one set of tensors."
	for _, c := range commands {
		if _, err := parser.AddCommand(c.name, c.help, c.help, c.command); err != nil {
			return err
		}
	}
	rest, err := parser.ParseArgs(os.Args[1:])
	if bad, ok := errors.AsType[*flags.Error](err); ok && bad.Type == flags.ErrHelp {
		fmt.Println(bad)
		return nil
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("unexpected argument %q", rest[0])
	}
	if err != nil {
		help := "shoal --help"
		if parser.Active != nil {
			help = "shoal " + parser.Active.Name + " --help"
		}
		misused(fmt.Errorf("%w; %s shows what there is", err, help))
	}
	for _, c := range commands {
		if c.name == parser.Active.Name {
			err = c.command.run(ctx)
		}
	}
	if e, ok := errors.AsType[ended](err); ok && ctx.Err() == nil {
		os.Exit(e.status)
	}
	if errors.Is(err, hogwild.ErrOption) || errors.Is(err, bench.ErrSuite) {
		misused(err)
	}
	return err
}

// misused ends the program as package flag does. Nothing has been started that would have to be ended first.
func misused(err error) {
	fmt.Fprintln(os.Stderr, "shoal:", err)
	os.Exit(2)
}
