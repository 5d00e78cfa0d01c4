package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/shoal-mp/shoal/cmd/internal/domains"
	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cmd/internal/words"
)

// psCommand implements shoal ps.
type psCommand struct {
	Every time.Duration `long:"every" default:"200ms" value-name:"DURATION" description:"How long to observe the programs."`
	JSON  bool          `long:"json" description:"Print one JSON object per line."`
}

// psLine is a process and the address of its domain.
type psLine struct {
	Domain string `json:"domain"`
	domains.Process
}

// Run observes the current user's Shoal programs once, for the duration c.Every, and prints a line
// for each of their processes. The error wraps [subcommand.ErrOption] if c.Every is not positive.
func (c *psCommand) Run(ctx context.Context) error {
	if c.Every <= 0 {
		return fmt.Errorf("%w: --every %v: want a positive duration", subcommand.ErrOption, c.Every)
	}
	census, err := domains.Look(ctx, c.Every)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "PID\tPPID\tROLE\tRANK\tSTATE\tHOLDS\tCPUS\tNAME")
	}
	out := json.NewEncoder(os.Stdout)
	for _, d := range census.Domains {
		if d.Error != "" {
			words.Fprintf(os.Stderr, "shoal: domain %s: %s\n", d.Address, d.Error)
		}
		for _, p := range d.Processes {
			if c.JSON {
				if err := out.Encode(psLine{d.Address, p}); err != nil {
					return err
				}
				continue
			}
			rank := "-"
			if p.Rank != nil {
				rank = fmt.Sprint(*p.Rank)
			}
			words.Fprintf(w, "%d\t%d\t%s\t%s\t%s\t%s\t%.2f\t%s\n", p.PID, p.Parent, p.Role, rank, p.State,
				words.Bytes(p.Holds), p.CPUs, p.Name)
		}
	}
	return w.Flush()
}
