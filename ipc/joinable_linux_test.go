package ipc_test

import (
	"context"
	"errors"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

type tasks struct {
	Queue *ipc.JoinableQueue[int]
	Taken *ipc.Sender[int]
	Keep  bool
}

// work does every task, or keeps two.
var keepOrDo = newRole("joinable worker", func(ctx context.Context, w tasks) error {
	for n := 0; ; n++ {
		v, err := w.Queue.Get(ctx)
		if err != nil {
			return err
		}
		if err := w.Taken.Put(ctx, v); err != nil {
			return err
		}
		if w.Keep && n == 1 {
			<-ctx.Done()
		}
		if !w.Keep {
			if err := w.Queue.TaskDone(); err != nil {
				return err
			}
		}
	}
})

// Python's Join hangs here.
func TestJoinableQueue_JoinDoesNotWaitForTheDead(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	j, err := ipc.NewJoinableQueue[int](ipc.Unbounded)
	testutil.NoError(t, err)
	defer j.Close()
	taken := newQueue[int](t, 16)
	for i := range 2 {
		testutil.NoError(t, j.Put(ctx, i))
	}
	dead := keepOrDo.start(t, d, tasks{j, taken.Sender(), true})
	for range 2 {
		_, err := taken.Get(ctx)
		testutil.NoError(t, err)
	}
	joined := make(chan error)
	go func() { joined <- j.Join(ctx) }()
	alive := keepOrDo.start(t, d, tasks{j, taken.Sender(), false})
	testutil.NoError(t, j.Put(ctx, 3))
	_, err = taken.Get(ctx)
	testutil.NoError(t, err)
	select {
	case err := <-joined:
		t.Fatalf("joined before the tasks were lost: %v", err)
	default:
	}
	testutil.NoError(t, dead.Process.Kill())
	err = <-joined
	var p *arena.PeerError
	if testutil.ErrorIs(t, err, ipc.ErrTasksLost); !errors.As(err, &p) || p.PID != dead.Process.Pid {
		t.Errorf("%v does not name process %d", err, dead.Process.Pid)
	}
	testutil.NoError(t, j.Join(ctx)) // it is told once
	testutil.ErrorIs(t, j.TaskDone(), ipc.ErrReleased)
	testutil.NoError(t, alive.Process.Kill())
	dead.Wait()
	alive.Wait()
}
