package sys

import (
	"errors"
	"os"
	"time"
)

// Accept gives serve each connection that accept returns, until the error of accept is
// os.ErrClosed. Other errors pass, such as that no descriptor is free. After such an error Accept
// calls accept again, a second later at most.
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
