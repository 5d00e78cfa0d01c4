package shoal

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// StartPiped starts one process with one end of a pipe as its argument, and returns the other end:
//
//	var echo = shoal.Register("echo", func(ctx context.Context, rank int, c *ipc.PipeEnd[string, string]) error { … })
//
//	conn, group, err := shoal.StartPiped(ctx, echo, ipc.Pipe[string, string], shoal.Options{})
//
// pipe must return both ends, such as [ipc.Pipe]; the caller keeps the first one. Only the process
// has the other end, so Recv in this process returns when the process ends. Other data for the
// process should be sent as the first value.
//
// The caller must close the returned end, and must call [Group.Wait], [Group.Join] or
// [Group.Close]. If there is an error, StartPiped returns neither an end nor a group.
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
