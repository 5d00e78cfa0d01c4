// Command shoal is the command line of Shoal: measuring, and the examples that are worth running.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/shoal-mp/shoal"
)

// commands is the table of subcommands. Each has a file of its own, and a method Run.
type commands struct {
	Hogwild hogwildCommand `cmd:"" help:"Train one network on handwritten digits by several processes without locks."`
	Bench   benchCommand   `cmd:"" help:"Measure Shoal against this machine, and against PyTorch."`
}

func main() { shoal.Main(run) }

// run parses the arguments and runs the subcommand that they name.
func run(ctx context.Context) error {
	parser, err := kong.New(new(commands),
		kong.Name("shoal"),
		kong.Description("Many processes, one set of tensors."),
		kong.UsageOnError(),
		kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		return err
	}
	chosen, err := parser.Parse(os.Args[1:])
	if err != nil {
		return fmt.Errorf("%w; shoal --help shows what there is", err)
	}
	return chosen.Run()
}
