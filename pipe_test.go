package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// double answers each number, until there is a negative one.
var double = shoal.Register("double", func(ctx context.Context, _ int, c *ipc.PipeEnd[string, int]) error {
	defer c.Close()
	for n, err := range c.All(ctx) {
		if err != nil || n < 0 {
			return err
		}
		if err := c.Send(ctx, string(rune('a'+2*n))); err != nil {
			return err
		}
	}
	return nil
})

func TestRegression_S3_2_AProcessAndItsPipe(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		ctx := testutil.Context(t)
		conn, group, err := shoal.StartPiped(ctx, double, ipc.Pipe[int, string], opts)
		if err != nil {
			t.Fatal(err)
		}
		defer group.Close()
		for n, want := range []string{"a", "c", "e"} {
			if err := conn.Send(ctx, n); err != nil {
				t.Fatal(err)
			}
			if got, err := conn.Recv(ctx); got != want || err != nil {
				t.Errorf("%d: %q, %v", n, got, err)
			}
		}
		if err := conn.Send(ctx, -1); err != nil {
			t.Fatal(err)
		}
		// The process had the other side alone.
		if _, err := conn.Recv(ctx); !errors.Is(err, ipc.ErrClosed) {
			t.Error(err)
		}
		if err := errors.Join(conn.Close(), group.Wait()); err != nil {
			t.Error(err)
		}
		if n := len(group.Processes()); n != 1 {
			t.Errorf("%d processes", n)
		}
	})
}

func TestStartPiped_ProcessThatCannotStart(t *testing.T) {
	refused := errors.New("no pipe")
	none := func() (a *ipc.PipeEnd[int, string], b *ipc.PipeEnd[string, int], err error) { return nil, nil, refused }
	if _, _, err := shoal.StartPiped(testutil.Context(t), double, none, shoal.Options{}); !errors.Is(err, refused) {
		t.Error(err)
	}
	var mine *ipc.PipeEnd[int, string]
	pipe := func() (a *ipc.PipeEnd[int, string], b *ipc.PipeEnd[string, int], err error) {
		a, b, err = ipc.Pipe[int, string]()
		mine = a
		b.Close() // so it cannot go to a process
		return a, b, err
	}
	if _, _, err := shoal.StartPiped(testutil.Context(t), double, pipe, shoal.Options{}); err == nil {
		t.Error("a closed side was sent")
	}
	if err := mine.TrySend(1); !errors.Is(err, ipc.ErrClosed) {
		t.Errorf("the side of the starter is left open: %v", err)
	}
}

func ExampleStartPiped() {
	ctx := context.Background()
	conn, group, err := shoal.StartPiped(ctx, double, ipc.Pipe[int, string], shoal.Options{})
	if err != nil {
		panic(err)
	}
	defer group.Close()
	conn.Send(ctx, 3)
	fmt.Println(conn.Recv(ctx))
	conn.Close() // which ends its loop
	// Output: g <nil>
}
