package main

import (
	"context"
	"os"

	"github.com/shoal-mp/shoal/bench"
)

// benchCommand is shoal bench.
type benchCommand struct {
	Suites  []string `arg:"" optional:"" name:"suite" help:"core (default), sizes, floors or idle."`
	All     bool     `help:"Every suite."`
	JSON    bool     `name:"json" help:"One JSON object a line, for programs."`
	Against string   `placeholder:"torch" help:"Do the same work with a real PyTorch, too, in turn."`
	Python  string   `default:"python3" help:"The interpreter that has it."`
	Quick   bool     `help:"Every row once and briefly: shows that all runs here, measures nothing."`
}

// Run measures, and writes to standard output.
func (c *benchCommand) Run(ctx context.Context) error {
	return bench.Run(ctx, bench.Options{
		Suites: c.Suites, All: c.All, Quick: c.Quick,
		Against: c.Against, Python: c.Python,
		Out: os.Stdout, JSON: c.JSON, Log: os.Stderr,
	})
}
