package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var setMemory = shoal.Register("set memory", func(_ context.Context, _ int, q *ipc.Queue[int]) error {
	if shoal.MemoryStats().Blocks == 0 {
		return errors.New("the worker sees no block of a queue that it was given")
	}
	return errors.Join(shoal.SetMemory(shm.Options{Budget: 1 << 20}), q.Close())
})

// A main function calls SetMemory in every process, so a worker passes it over.
func TestSetMemory_OnceAndNotInWorkers(t *testing.T) {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if err := shoal.SetMemory(shm.Options{}); !errors.Is(err, shoal.ErrMemoryInUse) {
		t.Errorf("got %v, want ErrMemoryInUse", err)
	}
	if err := setMemory.Spawn(t.Context(), 1, q); err != nil {
		t.Error(err)
	}
}

// A program answers from its first worker on, this one too.
func TestInspect_ReportsThisProgram(t *testing.T) {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	g, err := obey.Start(testutil.Context(t), 1, false, shoal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	reports, err := shoal.Inspect(testutil.Context(t))
	if err != nil {
		t.Log(err) // of another program that ends just now
	}
	for _, r := range reports {
		if r.PID == os.Getpid() && r.Stats.Blocks > 0 {
			return
		}
	}
	t.Errorf("no report of process %d among %+v", os.Getpid(), reports)
}

var fleeting = shoal.Register("fleeting", func(_ context.Context, _, bytes int) error {
	t, err := tensor.EmptyShared(tensor.Uint8, bytes)
	if err != nil {
		return err
	}
	return t.Close()
})

// A worker that ends does not live to give the pages of its tensors back; its starter does.
func TestMemory_OfAWorkerThatHasEndedGoesBack(t *testing.T) {
	t.Parallel()
	const bytes = 48 << 20
	for try := 1; ; try++ {
		if err := fleeting.Spawn(t.Context(), 1, bytes); err != nil {
			t.Fatal(err)
		}
		idle := shoal.MemoryStats().IdleBytes
		if idle >= bytes {
			break
		}
		if try == 10 { // other tests of the process may use the memory at once, but not always
			t.Fatalf("%d bytes are idle after a worker that had %d", idle, int64(bytes))
		}
	}
	testutil.EventuallyNoError(t, func() error {
		if shoal.MemoryStats().IdleBytes >= bytes {
			return fmt.Errorf("%+v long after the worker has ended", shoal.MemoryStats())
		}
		return nil
	})
}
