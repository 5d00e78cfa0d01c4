package ipc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestJoinableQueue_JoinWaitsUntilAllIsDone(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		j, err := ipc.NewJoinableQueue[int](128)
		testutil.NoError(t, err)
		defer j.Close()
		testutil.NoError(t, j.Join(ctx)) // nothing was put
		testutil.ErrorIs(t, j.TaskDone(), ipc.ErrReleased)
		// Each task of depth n puts two of depth n-1 before it is done: the queue may be empty at
		// any time before the end.
		var done int
		var mu sync.Mutex
		testutil.NoError(t, j.Put(ctx, 6))
		working, stop := context.WithCancel(ctx)
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				for {
					n, err := j.Get(working)
					if err != nil {
						if working.Err() == nil {
							t.Error(err)
						}
						return
					}
					for range 2 {
						if n > 0 {
							if err := j.Put(ctx, n-1); err != nil {
								t.Error(err)
							}
						}
					}
					mu.Lock()
					done++
					mu.Unlock()
					if err := j.TaskDone(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		testutil.NoError(t, j.Join(ctx))
		mu.Lock()
		if done != 127 {
			t.Errorf("joined after %d of 127", done)
		}
		mu.Unlock()
		stop()
		workers.Wait()
	})
}

func TestJoinableQueue_JoinWaitsForTasksInHand(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		j, err := ipc.NewJoinableQueue[int](2)
		testutil.NoError(t, err)
		defer j.Close()
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		testutil.NoError(t, j.TryPut(1))
		testutil.NoError(t, j.TryPut(2))
		testutil.ErrorIs(t, j.TryPut(3), ipc.ErrFull)
		err = j.Join(brief())
		if testutil.ErrorIs(t, err, context.DeadlineExceeded); errors.Is(err, ipc.ErrLocked) {
			t.Errorf("there is no lock to wait for: %v", err)
		}
		if j.Len() != 2 {
			t.Errorf("%d tasks wait", j.Len())
		}
		testutil.NoError(t, j.Poll(ctx))
		for range 2 {
			_, err = j.Get(ctx)
			testutil.NoError(t, err)
		}
		_, err = j.TryGet()
		testutil.ErrorIs(t, err, ipc.ErrEmpty)
		_, err = j.Get(brief())
		testutil.ErrorIs(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
		testutil.NoError(t, j.TaskDone())
		testutil.ErrorIs(t, j.Join(brief()), context.DeadlineExceeded)
		testutil.NoError(t, j.TaskDone())
		testutil.ErrorIs(t, j.TaskDone(), ipc.ErrReleased)
		testutil.NoError(t, j.Join(ctx))
	})
}

func TestWait_ReturnsWhatIsReady(t *testing.T) {
	each(t, func(t *testing.T, d *arena.Domain) {
		ctx := testutil.Context(t)
		a, b := newQueue[int](t, 1), newQueue[string](t, 1)
		here, there, err := ipc.Pipe[int, int]()
		testutil.NoError(t, err)
		defer here.Close()
		ended := make(chan struct{})
		end := ipc.PollFunc(func(ctx context.Context) error {
			select {
			case <-ended:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		things := []ipc.Poller{a, b.Receiver(), here, end}
		expect := func(want ...int) {
			t.Helper()
			ready, err := ipc.Wait(ctx, things...)
			if err != nil || !slices.Equal(ready, want) {
				t.Errorf("%v, %v, want %v", ready, err, want)
			}
		}
		brief, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		_, err = ipc.Wait(brief, things...)
		testutil.ErrorIs(t, err, context.DeadlineExceeded)
		testutil.NoError(t, b.TryPut("x"))
		expect(1)
		_, err = b.TryGet()
		testutil.NoError(t, err)
		testutil.NoError(t, there.Close()) // the end of a pipe is ready as well
		expect(2)
		testutil.NoError(t, here.Close())
		things[2] = b
		close(ended)
		expect(3)
		if ready, err := ipc.Wait(ctx); len(ready) != 0 || err != nil {
			t.Errorf("%v, %v of nothing", ready, err)
		}
		things[3] = a
		cause := errors.New("enough")
		cancelled, stop := context.WithCancelCause(ctx)
		stop(cause)
		_, err = ipc.Wait(cancelled, things...)
		testutil.ErrorIs(t, err, cause)
	})
}
