//go:build unix

package top

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// catch takes the signals that concern a screen. Those that the starter of this process has it
// ignore are left alone.
func catch() chan os.Signal {
	c := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// interrupt does what the key does by itself unless the terminal is raw: it reaches the whole job.
func interrupt() { syscall.Kill(0, syscall.SIGINT) }

// stop gives the terminal back, stops the job, and takes the terminal again when the job goes on.
// The kernel stops no job that no shell could continue: then the screen goes on after a moment. The
// signal is never caught, since Go does not give its usual effect back.
func (t *terminal) stop() error {
	t.leave()
	syscall.Kill(0, syscall.SIGTSTP)
	time.Sleep(100 * time.Millisecond) // the stop comes within it
	return t.enter()
}

// obey does what a signal asks of a screen.
func (t *terminal) obey(ctx context.Context, s os.Signal) error {
	switch s {
	case syscall.SIGCONT:
		return t.enter()
	case syscall.SIGHUP, syscall.SIGQUIT:
		t.leave()
		signal.Reset(s)
		syscall.Kill(os.Getpid(), s.(syscall.Signal)) // its usual effect
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return fmt.Errorf("ended by the signal: %v", s)
	}
	return nil
}
