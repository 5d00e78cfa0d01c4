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

// An unread is the cancellation cause if the reader of the output has closed the pipe. It matches
// [context.Canceled], so that a worker that stops because of it has not failed.
type unread struct{}

func (unread) Error() string        { return ErrUnread.Error() }
func (unread) Is(target error) bool { return target == ErrUnread || target == context.Canceled }

// contextWhileRead returns a context that is canceled when a write of the run fails with EPIPE.
// It replaces o.Stdout and o.Stderr by writers that notice this. Without it, SIGPIPE would kill
// the process, and the trained network would be lost. The caller must call release, which
// restores the default action of SIGPIPE.
//
// The signal alone must not end the run, because waking a worker that has exited may raise it
// too.
func (o *Options) contextWhileRead(ctx context.Context) (reading context.Context, release func()) {
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

// A watched writer cancels a context when a write fails with EPIPE.
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

// drawsBars reports whether standard error is a terminal. A terminal cannot have a closed reader.
func (o *Options) drawsBars() bool {
	f, ok := o.Stderr.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
