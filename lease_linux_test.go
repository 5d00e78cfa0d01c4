package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

type taking struct {
	Work *ipc.Receiver[int]
	Out  *ipc.Sender[int]
	Dir  string
}

// take acknowledges each task after its result. The first process that has a task whose number ends
// with 5 is killed, half of them before the result and half of them after it.
var take = shoal.Register("take", func(ctx context.Context, rank int, w taking) error {
	die := func(n int, when string) error {
		f, err := os.OpenFile(fmt.Sprintf("%s/%d %s", w.Dir, n, when), os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return errors.Join(err, f.Close(), syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	for task, err := range w.Work.Leases(ctx) {
		if err != nil {
			return err
		}
		n := task.Value
		if n%20 == 5 {
			err = die(n, "before")
		}
		if err == nil {
			err = w.Out.Put(ctx, n)
		}
		if err == nil && n%20 == 15 {
			err = die(n, "after")
		}
		if err := errors.Join(err, task.Ack()); err != nil {
			return err
		}
	}
	return nil
})

func TestRestart_LosesNoTask(t *testing.T) {
	ctx := testutil.Context(t)
	work := testutil.Value(ipc.NewQueue[int](ipc.Unbounded))(t)
	defer work.Close()
	out := testutil.Value(ipc.NewQueue[int](16))(t)
	defer out.Close()
	for n := range 100 {
		testutil.NoError(t, work.Put(ctx, n))
	}
	testutil.NoError(t, work.Finish())
	g := testutil.Value(take.Start(ctx, 2, taking{work.Receiver(), out.Sender(), t.TempDir()},
		shoal.Options{Restart: shoal.Restart{Max: -1, Backoff: time.Millisecond}}))(t)
	defer g.Close()
	testutil.NoError(t, out.Sender().Close())
	seen := make([]int, 100)
	for n, err := range out.All(ctx) {
		testutil.NoError(t, err)
		seen[n]++
	}
	testutil.NoError(t, g.Wait())
	for n, times := range seen {
		want := 1
		if n%20 == 15 {
			want = 2 // its worker died after the result and before the acknowledgement
		}
		if times != want {
			t.Errorf("task %d was done %d times, want %d", n, times, want)
		}
	}
}
