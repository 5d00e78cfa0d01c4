package shoal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/shoal-mp/shoal/internal/goexit"
	"github.com/shoal-mp/shoal/internal/registry"
)

// Main runs a program that starts processes. It must be called first in main. It never returns.
//
// Package-level initializers, init functions and the statements of main before Main run in every
// worker as well, like unguarded statements in Python. [IsWorker] distinguishes the processes. In a
// worker, Main runs the worker's function and exits.
//
// In the first process, Main calls run with a context that the first SIGINT or SIGTERM cancels. A
// second signal kills the process. After run has returned, Main ends the processes that are still
// running. Then it prints the error of run, if there is one, and exits with this status:
//
//   - 0 if run returned nil, even after a signal: a run that has drained its work returns nil;
//   - the status of an error with a method ExitCode() int, such as [*ExitError], that run returned
//     or wrapped;
//   - 130 or 143 after SIGINT or SIGTERM, if run returned another error;
//   - 1 if it returned another error without a signal.
//
// A call of [runtime.Goexit] in run, for example by FailNow of package testing, counts as an error
// of run.
//
// Flags are not parsed in workers, although workers have the same os.Args[1:]: values should be
// passed in the argument.
func Main(run func(ctx context.Context) error) {
	if self != nil {
		self.serveJob()
	}
	runRoot(run)
}

// IsWorker reports whether this process was started by this package. It may be called from init
// functions.
func IsWorker() bool { return self != nil }

// runRoot runs the function of the first process, ends its workers, and exits; see [Main]. It
// never returns.
func runRoot(run func(ctx context.Context) error) {
	registry.Seal()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var caught atomic.Pointer[interrupt]
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := &interrupt{<-signals}
		signal.Stop(signals) // restore the default effect of the next signal
		caught.Store(s)
		cancel(s)
	}()
	goexit.Call(func() error { return run(ctx) }, func(err error) {
		shutDownProcess()
		os.Exit(exitStatus(err, caught.Load()))
	})
}

// An ExitError is an error returned by the function passed to [Main] that sets the exit status of
// the program.
type ExitError struct {
	Status int   // 0 to 255
	Err    error // the error that Main prints; nil for none
}

// Error returns the text of Err, or the status if Err is nil.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode returns Status.
func (e *ExitError) ExitCode() int { return e.Status }

// exitStatus prints err, the error of the program, if it is not nil, and returns the program's
// exit status as [Main] documents it. s is the signal that canceled its context, or nil.
func exitStatus(err error, s *interrupt) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(*ExitError); ok && e.Err == nil && e.Status == exitCode(e) {
		return e.Status
	}
	chosen, ok := errors.AsType[interface {
		error
		ExitCode() int
	}](err)
	switch {
	case ok:
		printError(err)
		return exitCode(chosen)
	case s != nil:
		printError(errors.Join(err, s.omitIfReported(err)))
		return s.status()
	}
	printError(err)
	return 1
}

// exitCode returns the exit status of e, or 1 if it is not between 0 and 255. *exec.ExitError
// returns -1 for a process ended by a signal.
func exitCode(e interface{ ExitCode() int }) int {
	if code := e.ExitCode(); code >= 0 && code <= 255 {
		return code
	}
	return 1
}

// shutDownProcess ends the processes that this process has started, and leaves the domain.
func shutDownProcess() {
	groups.close()
	reserve.close()
	leaveDomain()
}

// printError prints err on standard error, after the program's name. It includes the stacks and
// other details of errors that came from other processes.
func printError(err error) {
	name, text := filepath.Base(os.Args[0]), fmt.Sprintf("%+v", err)
	if d := errorDetails(err); d != "" && text == err.Error() {
		text += "\n" + d
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.TrimPrefix(text, name+": "))
}

// errorDetails returns the text of %+v for err, or for the first errors that it wraps, if that
// differs from the text of Error, and "" otherwise. It searches the wrapped errors itself,
// because fmt.Errorf and errors.Join do not forward %+v.
func errorDetails(err error) string {
	if _, ok := err.(fmt.Formatter); ok {
		if text := fmt.Sprintf("%+v", err); text != err.Error() {
			return text
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return errorDetails(e.Unwrap())
	case interface{ Unwrap() []error }:
		var parts []string
		for _, part := range e.Unwrap() {
			if text := errorDetails(part); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "\n")
	}
	return ""
}

// An interrupt is the cause of a context canceled by a signal. It matches [context.Canceled].
type interrupt struct{ sig os.Signal }

func (i *interrupt) Error() string        { return i.sig.String() }
func (i *interrupt) Is(target error) bool { return target == context.Canceled }

// omitIfReported returns nil if err is itself a result of the signal, so that the signal is
// reported once, and i otherwise.
func (i *interrupt) omitIfReported(err error) error {
	// A terminal also sends the signal to workers that do not catch it yet.
	p, ok := errors.AsType[*ProcessError](err)
	if errors.Is(err, context.Canceled) || ok && p.Signal == i.sig {
		return nil
	}
	return i
}

// status returns the exit status that a shell reports for a process killed by the signal. It is
// 128 plus the signal's number.
func (i *interrupt) status() int {
	if s, ok := i.sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}
