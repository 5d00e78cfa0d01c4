package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
)

// accel is the program for GPUs: it loads the driver's library, which this one, being static, cannot.
const accel = "shoal-accel"

// An ended is that the program for GPUs has ended with a status other than 0. It has said why.
type ended struct{ status int }

func (e ended) Error() string { return fmt.Sprintf("%s has ended with status %d", accel, e.status) }

// handOver has the program for GPUs do what this one was asked for.
func handOver(ctx context.Context) error {
	c, err := beside.Command(ctx, accel, os.Args[1:]...)
	if err != nil {
		return fmt.Errorf("GPUs need a program of their own: %w", err)
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
			return ended{exit.ExitCode()}
		}
		return fmt.Errorf("%s: %w", accel, err)
	}
	return nil
}
