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

// accel is the helper program for GPUs. It loads the driver's library, which a static program like
// this one cannot do.
const accel = "shoal-accel"

// cluster is the helper program for MPI libraries. It is dynamically linked for the same reason.
const cluster = "shoal-cluster"

// execAccel executes the GPU helper with the arguments of this process; see [execHelper].
func execAccel(ctx context.Context) error {
	return execHelper(ctx, accel, "GPU commands need", os.Args[1:])
}

// execHelper executes a helper program with the standard streams of this process. If the helper
// exits with an error status, this process exits with it, because the helper has already printed
// the reason. If a signal other than SIGPIPE kills the helper, execHelper returns an error. On
// Linux the helper receives SIGTERM if this process dies. If the helper is not installed, the error
// begins with need, such as "the broker needs". If ctx is done, the error is its cause.
func execHelper(ctx context.Context, program, need string, args []string) error {
	c, err := beside.Command(ctx, program, args...)
	if err != nil {
		return fmt.Errorf("%s a separate program: %w", need, err)
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	runtime.LockOSThread() // required by EndsWithThread
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
			os.Exit(128 + int(syscall.SIGPIPE)) // the status in a shell; no error
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
