package sys

import (
	"errors"
	"os"
	"time"
)

// Accept calls accept in a loop and passes each connection to serve, until accept returns
// [os.ErrClosed]. It calls serve on its own goroutine, so serve must return soon, and owns the
// connection. Other errors, such as a full descriptor table, may be temporary: after such an
// error Accept calls accept again, after at most one second.
func Accept[C any](accept func() (C, error), serve func(C)) {
	for pause := time.Duration(0); ; {
		c, err := accept()
		switch {
		case err == nil:
			pause = 0
			serve(c)
		case errors.Is(err, os.ErrClosed):
			return
		default:
			pause = min(max(2*pause, time.Millisecond), time.Second)
			time.Sleep(pause)
		}
	}
}
