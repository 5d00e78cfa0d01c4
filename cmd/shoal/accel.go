package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
)

// accel is the program for GPUs: it loads the driver's library, which this one, being static,
// cannot.
const accel = "shoal-accel"

// handOver has the program for GPUs do what this one was asked for. If that one fails, so does this
// one, with its status: the reason has been told.
func handOver(ctx context.Context) error {
	c, err := beside.Command(ctx, accel, os.Args[1:]...)
	if err != nil {
		return fmt.Errorf("GPUs need a program of their own: %w", err)
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = c.Run()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil && failed.Exited() {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", accel, err)
	}
	return nil
}
