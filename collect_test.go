package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An errand has ends of two queues of which nobody else has anything, and a pipe by which it is
// told when to look.
type errand struct {
	In   *ipc.Receiver[int]
	Out  *ipc.Sender[int]
	Both *ipc.Queue[int]
	Go   *ipc.PipeEnd[string, string]
}

// look says whether the other ends are still there.
var look = shoal.Register("look", func(ctx context.Context, rank int, e errand) error {
	defer e.Go.Close()
	if _, err := e.Go.Recv(ctx); err != nil {
		return err
	}
	if _, err := e.In.TryGet(); !errors.Is(err, ipc.ErrEmpty) {
		return fmt.Errorf("get: %w", err)
	}
	if err := e.Out.TryPut(1); err != nil {
		return fmt.Errorf("put: %w", err)
	}
	return nil
})

// sendOff starts an errand and forgets its queues, without closing them.
//
//go:noinline
func sendOff(t *testing.T, opts shoal.Options, tell *ipc.PipeEnd[string, string]) *shoal.Group {
	queue := func() *ipc.Queue[int] {
		q, err := ipc.NewQueue[int](1)
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	g, err := look.Start(testutil.Context(t), 1, errand{queue().Receiver(), queue().Sender(), queue(), tell}, opts)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// collect returns when what was garbage before it was called has been cleaned up.
func collect(t *testing.T) {
	t.Helper()
	for range 3 { // cleanups run in no order, and on several goroutines
		gone := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, gone)
		runtime.GC()
		select {
		case <-gone:
		case <-testutil.Context(t).Done():
			t.Fatal("nothing is collected")
		}
	}
}

func TestRegression_S2_3_AQueueIsOpenWhileAWorkerHasAnEndOfIt(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		here, there, err := ipc.Pipe[string, string]()
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		defer there.Close()
		g := sendOff(t, opts, there)
		collect(t)
		if err := here.Send(testutil.Context(t), "look"); err != nil {
			t.Fatal(err)
		}
		if err := g.Wait(); err != nil {
			t.Errorf("the garbage collector has closed the queue: %v", err)
		}
	})
}
