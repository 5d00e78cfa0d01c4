package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/top"
)

// topCommand implements shoal top.
type topCommand struct {
	Every time.Duration `long:"every" default:"1s" value-name:"DURATION" description:"Time between two updates."`
	Count int           `long:"count" value-name:"N" description:"Print N updates as text, then exit; 0 means until interrupted."`
	JSON  bool          `long:"json" description:"Print one JSON object per line."`
}

// Run shows the Shoal programs: as an interactive screen on a terminal, otherwise as text or JSON
// on standard output. The error wraps [subcommand.ErrOption] if the interval or the count is
// invalid.
func (c *topCommand) Run(ctx context.Context) error {
	if c.Every <= 0 {
		return fmt.Errorf("%w: --every %v: want a positive duration", subcommand.ErrOption, c.Every)
	}
	if c.Count < 0 {
		return fmt.Errorf("%w: --count %d: want at least 0", subcommand.ErrOption, c.Count)
	}
	return top.Run(ctx, os.Stdout, top.Options{Every: c.Every, Count: c.Count, JSON: c.JSON, Keys: os.Stdin})
}
