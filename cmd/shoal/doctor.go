package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/shoal-mp/shoal/cmd/shoal/internal/doctor"
)

// doctorCommand is shoal doctor.
type doctorCommand struct {
	Span time.Duration `long:"span" default:"1s" description:"How long to look at what the processors do."`
	JSON bool          `long:"json" description:"One JSON object, for programs."`
}

// run looks, and writes to standard output.
func (c *doctorCommand) run(ctx context.Context) error {
	report, err := doctor.Examine(ctx, c.Span)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(os.Stdout).Encode(report)
	}
	return report.Print(os.Stdout)
}
