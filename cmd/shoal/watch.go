package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/shoal-mp/shoal/cmd/internal/subcommand"
	"github.com/shoal-mp/shoal/cmd/shoal/internal/diagnose"
)

// watchCommand implements shoal watch.
type watchCommand struct{}

// Run executes shoal-watch. This program does not link package net. With --pid it shows a PyTorch
// job on the terminal instead.
func (*watchCommand) Run(ctx context.Context) error {
	for _, a := range os.Args[2:] {
		if name, _, _ := strings.Cut(strings.TrimLeft(a, "-"), "="); name == "pid" && strings.HasPrefix(a, "-") {
			return watchJob(ctx, os.Args[2:])
		}
	}
	return execHelper(ctx, "shoal-watch", "the page needs", os.Args[2:])
}

// watchJob shows the processes of a PyTorch job until it ends. args are the flags. The error
// wraps [subcommand.ErrOption] if one is invalid or there is no such process.
func watchJob(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("shoal watch --pid", flag.ContinueOnError)
	set.SetOutput(os.Stderr)
	pid := set.Int("pid", 0, "process of the PyTorch job to watch")
	o := diagnose.LiveOptions{Clear: term.IsTerminal(int(os.Stdout.Fd()))}
	set.DurationVar(&o.Every, "every", time.Second, "time between two updates")
	set.IntVar(&o.Count, "count", 0, "number of updates; 0 means until the job ends")
	set.BoolVar(&o.JSON, "json", false, "print one JSON object per line")
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("%w: %w", subcommand.ErrOption, err)
	}
	switch {
	case set.NArg() > 0:
		return fmt.Errorf("%w: unexpected argument %q", subcommand.ErrOption, set.Arg(0))
	case *pid <= 0:
		return fmt.Errorf("%w: --pid %d: want a positive number", subcommand.ErrOption, *pid)
	case o.Every <= 0:
		return fmt.Errorf("%w: --every %v: want a positive duration", subcommand.ErrOption, o.Every)
	case o.Count < 0:
		return fmt.Errorf("%w: --count %d: want at least 0", subcommand.ErrOption, o.Count)
	}
	err := diagnose.Live(ctx, os.Stdout, o, *pid)
	if errors.Is(err, diagnose.ErrProcess) {
		err = fmt.Errorf("%w: --pid: %w", subcommand.ErrOption, err)
	}
	return err
}
