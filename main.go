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

// Main runs a program that starts processes. Call it first in main; it never returns.
//
// Package-level initialisers, init functions and the statements of main before Main run in every
// worker as well, as unguarded statements do in Python. IsWorker tells the processes apart. In a
// worker Main runs the function of the worker and exits.
//
// In the first process Main calls run, with a context that the first SIGINT or SIGTERM cancels. A
// second signal kills. When run has returned, Main ends the processes that still run. Then it
// prints the error of run, if there is one, and exits with this status:
//
//   - 0 if run returned nil, also after a signal: a run that has drained its work returns nil;
//   - the status of an error with a method ExitCode() int, such as [*ExitError], which run returned
//     or wrapped;
//   - 130 or 143 after SIGINT or SIGTERM, if run returned another error;
//   - 1 if it returned another error without a signal.
//
// A call of [runtime.Goexit] in run, such as that of a FailNow of package testing, is an error of
// run.
//
// Flags are not parsed in workers, although they have the same os.Args[1:]: pass values in the
// argument.
func Main(run func(ctx context.Context) error) {
	if self != nil {
		self.serve()
	}
	runRoot(run)
}

// IsWorker reports whether this process was started by Spawn or Go. It may be called from init on.
func IsWorker() bool { return self != nil }

// runRoot runs the function of the first process and exits.
func runRoot(run func(ctx context.Context) error) {
	registry.Seal()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var caught atomic.Pointer[interrupt]
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := &interrupt{<-signals}
		signal.Stop(signals) // the next one has its usual effect
		caught.Store(s)
		cancel(s)
	}()
	goexit.Call(func() error { return run(ctx) }, func(err error) {
		leave()
		os.Exit(exitStatus(err, caught.Load()))
	})
}

// An ExitError is an error of the function of [Main] that chooses the exit status of the program.
type ExitError struct {
	Status int   // 0 to 255
	Err    error // what Main prints; nil for nothing
}

// Error returns the text of Err.
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

// exitStatus reports the error of the program and returns its exit status. s is the signal that
// cancelled its context, or nil.
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
		report(err)
		return exitCode(chosen)
	case s != nil:
		report(errors.Join(err, s.unlessIn(err)))
		return s.status()
	}
	report(err)
	return 1
}

// exitCode returns the status that an error chooses, or 1 if there is no such status.
// *exec.ExitError has -1 for a process that a signal has ended.
func exitCode(e interface{ ExitCode() int }) int {
	if code := e.ExitCode(); code >= 0 && code <= 255 {
		return code
	}
	return 1
}

// leave ends the processes that this one has started, and gives up its seat in the domain.
func leave() {
	groups.close()
	reserve.close()
	leaveDomain()
}

// report prints the error of the program, with the stacks of other processes.
func report(err error) {
	name, text := filepath.Base(os.Args[0]), fmt.Sprintf("%+v", err)
	if d := details(err); d != "" && text == err.Error() {
		text += "\n" + d
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", name, strings.TrimPrefix(text, name+": "))
}

// details returns what %+v adds to err, or to an error that err wraps: fmt.Errorf and errors.Join
// do not hand %+v on.
func details(err error) string {
	if _, ok := err.(fmt.Formatter); ok {
		if text := fmt.Sprintf("%+v", err); text != err.Error() {
			return text
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return details(e.Unwrap())
	case interface{ Unwrap() []error }:
		var parts []string
		for _, part := range e.Unwrap() {
			if text := details(part); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, "\n")
	}
	return ""
}

// An interrupt is the cause of a context that a signal has cancelled.
type interrupt struct{ sig os.Signal }

func (i *interrupt) Error() string        { return i.sig.String() }
func (i *interrupt) Is(target error) bool { return target == context.Canceled }

// unlessIn returns i if err does not have it already, so that one interrupt is reported once.
func (i *interrupt) unlessIn(err error) error {
	p, ok := errors.AsType[*ProcessError](err) // a terminal's signal reaches a worker that does not catch it yet
	if errors.Is(err, context.Canceled) || ok && p.Signal == i.sig {
		return nil
	}
	return i
}

// status returns the exit status that a shell reports for a process that the signal has killed.
func (i *interrupt) status() int {
	if s, ok := i.sig.(syscall.Signal); ok {
		return 128 + int(s)
	}
	return 1
}
