package pool_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
)

type looking struct {
	In *ipc.Receiver[int]
	Go *ipc.PipeEnd[string, string]
}

// looks says, when it is told to look, whether anybody can put into its queue.
var looks = pool.Register("looks", func(ctx context.Context, l looking) (string, error) {
	if _, err := l.Go.Recv(ctx); err != nil {
		return "", err
	}
	_, err := l.In.TryGet()
	return fmt.Sprint(err), nil
})

// handIn hands a task in, and forgets its queue without closing it.
//
//go:noinline
func handIn(t *testing.T, p *pool.Pool, tell *ipc.PipeEnd[string, string]) *pool.Result[string] {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	return looks.ApplyAsync(p, looking{q.Receiver(), tell})
}

// collect returns when what was garbage before it was called has been cleaned up.
func collect(t *testing.T) {
	t.Helper()
	for range 3 { // cleanups run in no order
		gone := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, gone)
		runtime.GC()
		select {
		case <-gone:
		case <-time.After(watchdog):
			t.Fatal("nothing is collected")
		}
	}
}

func TestRegression_S2_3_AQueueIsOpenWhileATaskHasAnEndOfIt(t *testing.T) {
	t.Cleanup(func() { // when the task is over nobody has the queue, and the collector closes it
		collect(t)
		nothingIsLeft(t)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := pool.New(ctx, pool.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	here, there, err := ipc.Pipe[string, string]()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	defer there.Close()
	r := handIn(t, p, there)
	collect(t)
	if err := here.Send(ctx, "look"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(ctx); got != ipc.ErrEmpty.Error() || err != nil {
		t.Errorf("the worker finds %q, %v", got, err)
	}
}
