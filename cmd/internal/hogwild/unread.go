package hogwild

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// An unread is the cause of a context that has ended because nobody reads what the program writes.
// It is a cancellation, as an interrupt is, so that a worker that ends with it has not failed.
type unread struct{}

func (unread) Error() string        { return ErrUnread.Error() }
func (unread) Is(target error) bool { return target == ErrUnread || target == context.Canceled }

// whileRead returns a context that ends when a write of the run finds that its reader has left.
// Without it such a write kills the process, and what it has trained with it. release gives SIGPIPE
// its usual effect back.
//
// The signal alone says nothing, since a wake of a worker that has ended may bring one.
func (o *Options) whileRead(ctx context.Context) (reading context.Context, release func()) {
	reading, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	o.Stdout = &watched{o.Stdout, cancel}
	if !o.drawsBars() {
		o.Stderr = &watched{o.Stderr, cancel}
	}
	return reading, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// A watched writer ends a context when its reader has left.
type watched struct {
	io.Writer
	cancel context.CancelCauseFunc
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		w.cancel(unread{})
	}
	return n, err
}

// drawsBars says whether standard error is a terminal, which has a reader as long as it is there.
func (o *Options) drawsBars() bool {
	f, ok := o.Stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
