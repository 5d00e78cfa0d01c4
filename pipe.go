package shoal

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// StartPiped starts one process with a side of a pipe as its argument, and returns the other side:
//
//	var echo = shoal.Register("echo", func(ctx context.Context, rank int, c *ipc.PipeEnd[string, string]) error { … })
//
//	conn, group, err := shoal.StartPiped(ctx, echo, ipc.Pipe[string, string], shoal.Options{})
//
// pipe makes both sides, of which the first stays here: [ipc.Pipe]. The process alone has the other
// side, so a Recv here ends when the process does. Send all else that the process needs as the
// first value.
//
// The caller closes the side, and Joins, Waits for or Closes the group. After an error there is
// neither a side nor a group.
//
// [ipc.Pipe]: https://pkg.go.dev/github.com/shoal-mp/shoal/ipc#Pipe
func StartPiped[Here, There io.Closer](ctx context.Context, f *Func[There], pipe func() (Here, There, error),
	opts Options) (Here, *Group, error) {
	var none Here
	here, there, err := pipe()
	if err != nil {
		return none, nil, fmt.Errorf("shoal: %s.StartPiped: %w", f.name, err)
	}
	g, err := f.Start(ctx, 1, there, opts)
	if err = errors.Join(err, there.Close()); err != nil {
		if g != nil {
			g.Close()
		}
		return none, nil, errors.Join(err, here.Close())
	}
	return here, g, nil
}
