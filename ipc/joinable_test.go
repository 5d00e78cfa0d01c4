package ipc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/shm"
	"github.com/shoal-mp/shoal/ipc"
)

func TestJoinableQueue_JoinWaitsUntilAllIsDone(t *testing.T) {
	each(t, func(t *testing.T, d *shm.Domain) {
		ctx := watched(t)
		j, err := ipc.NewJoinableQueue[int](128)
		check(t, err)
		defer j.Close()
		check(t, j.Join(ctx)) // nothing was put
		wantErr(t, j.TaskDone(), ipc.ErrReleased)
		// Each task of depth n puts two of depth n-1 before it is done: the queue may be empty at
		// any time before the end.
		var done int
		var mu sync.Mutex
		check(t, j.Put(ctx, 6))
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
		check(t, j.Join(ctx))
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
	each(t, func(t *testing.T, d *shm.Domain) {
		ctx := watched(t)
		j, err := ipc.NewJoinableQueue[int](2)
		check(t, err)
		defer j.Close()
		brief := func() context.Context {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}
		check(t, j.TryPut(1))
		check(t, j.TryPut(2))
		wantErr(t, j.TryPut(3), ipc.ErrFull)
		err = j.Join(brief())
		if wantErr(t, err, context.DeadlineExceeded); errors.Is(err, ipc.ErrLocked) {
			t.Errorf("there is no lock to wait for: %v", err)
		}
		if j.Len() != 2 {
			t.Errorf("%d tasks wait", j.Len())
		}
		check(t, j.Poll(ctx))
		for range 2 {
			_, err = j.Get(ctx)
			check(t, err)
		}
		_, err = j.TryGet()
		wantErr(t, err, ipc.ErrEmpty)
		_, err = j.Get(brief())
		wantErr(t, err, ipc.ErrEmpty, context.DeadlineExceeded)
		check(t, j.TaskDone())
		wantErr(t, j.Join(brief()), context.DeadlineExceeded)
		check(t, j.TaskDone())
		wantErr(t, j.TaskDone(), ipc.ErrReleased)
		check(t, j.Join(ctx))
	})
}

func TestWait_ReturnsWhatIsReady(t *testing.T) {
	each(t, func(t *testing.T, d *shm.Domain) {
		ctx := watched(t)
		a, b := newQueue[int](t, 1), newQueue[string](t, 1)
		here, there, err := ipc.Pipe[int, int]()
		check(t, err)
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
		wantErr(t, err, context.DeadlineExceeded)
		check(t, b.TryPut("x"))
		expect(1)
		_, err = b.TryGet()
		check(t, err)
		check(t, there.Close()) // the end of a pipe is ready as well
		expect(2)
		check(t, here.Close())
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
		wantErr(t, err, cause)
	})
}
