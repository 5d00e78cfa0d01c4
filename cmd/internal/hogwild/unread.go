package hogwild

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// An unread is the cause of a context that has ended because nobody reads what the program writes.
// It is a cancellation, as an interrupt is, so that a worker that ends with it has not failed.
type unread struct{}

func (unread) Error() string        { return ErrUnread.Error() }
func (unread) Is(target error) bool { return target == ErrUnread || target == context.Canceled }

// whileRead returns a context that ends when a write finds that the reader of standard output or
// standard error has left. Without it such a write kills the process, and what it has trained with
// it. release gives SIGPIPE its usual effect back.
func whileRead(ctx context.Context) (reading context.Context, release func()) {
	reading, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGPIPE)
	var done sync.WaitGroup
	done.Go(func() {
		select {
		case <-signals:
			cancel(unread{})
		case <-reading.Done():
		}
	})
	return reading, func() {
		signal.Stop(signals)
		cancel(nil)
		done.Wait()
	}
}
