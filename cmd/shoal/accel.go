package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/shoal-mp/shoal/cmd/internal/beside"
	"github.com/shoal-mp/shoal/internal/sys"
)

// accel is the program for GPUs: it loads the driver's library, which this one, being static,
// cannot.
const accel = "shoal-accel"

// cluster is the program for MPI libraries, which is dynamic for the same reason.
const cluster = "shoal-cluster"

// handOver has the program for GPUs do what this one was asked for.
func handOver(ctx context.Context) error { return handTo(ctx, accel, "GPUs need", os.Args[1:]) }

// handTo has another program do what this one was asked for. If that one fails, so does this one,
// with its status: the reason has been told. It does not outlive this one, even if this one is
// killed.
func handTo(ctx context.Context, program, need string, args []string) error {
	c, err := beside.Command(ctx, program, args...)
	if err != nil {
		return fmt.Errorf("%s a program of their own: %w", need, err)
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	runtime.LockOSThread() // see EndsWithThread
	defer runtime.UnlockOSThread()
	c.SysProcAttr = sys.EndsWithThread(false)
	err = c.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		if failed.Exited() {
			os.Exit(failed.ExitCode())
		}
		if sys.EndedByBrokenPipe(failed.ProcessState) {
			os.Exit(128 + int(syscall.SIGPIPE)) // as a shell has it; no reader is no fault to tell of
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
