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
// In the first process Main calls run, with a context that the first SIGINT or SIGTERM cancels. It
// exits with status 0. If run fails, it prints the error and exits with status 1. After those
// signals it exits with status 130 or 143. A second signal kills. When run has returned, Main ends
// the processes that still run. A call of [runtime.Goexit] in run, such as that of a FailNow of
// package testing, is an error of run.
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

// exitStatus reports the error of the program and returns its exit status.
func exitStatus(err error, s *interrupt) int {
	if s != nil {
		report(errors.Join(err, s.unlessIn(err)))
		return s.status()
	}
	if err != nil {
		report(err)
		return 1
	}
	return 0
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
