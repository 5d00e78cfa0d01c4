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

// notifySignals returns a channel that receives the signals that a screen must handle, until the
// process ends. Signals that this process inherited as ignored stay ignored.
func notifySignals() chan os.Signal {
	c := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c
}

// interruptGroup sends SIGINT to the process group, as the terminal driver does for Ctrl-C when it
// is not in raw mode.
func interruptGroup() { syscall.Kill(0, syscall.SIGINT) }

// stop restores the terminal, stops the process group, and sets up the terminal again when it is
// continued. The kernel does not stop an orphaned process group; then the screen resumes after a
// short delay. SIGTSTP must not be caught, because Go cannot restore its default action.
func (t *terminal) stop() error {
	t.restoreMode()
	syscall.Kill(0, syscall.SIGTSTP)
	time.Sleep(100 * time.Millisecond) // the signal takes effect during the sleep
	return t.enterRawMode()
}

// handleSignal handles a signal. After SIGCONT it sets up the terminal again. After SIGHUP and
// SIGQUIT it restores the terminal and lets the default action end the process; it returns an
// error if that does not happen. It ignores other signals, after which the caller draws a frame
// anyway.
func (t *terminal) handleSignal(ctx context.Context, s os.Signal) error {
	switch s {
	case syscall.SIGCONT:
		return t.enterRawMode()
	case syscall.SIGHUP, syscall.SIGQUIT:
		t.restoreMode()
		signal.Reset(s)
		syscall.Kill(os.Getpid(), s.(syscall.Signal)) // default action
		select {
		case <-ctx.Done():
		case <-time.After(time.Minute):
		}
		return fmt.Errorf("terminated by signal: %v", s)
	}
	return nil
}
