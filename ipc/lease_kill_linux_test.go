package ipc_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

type leasing struct {
	In   *ipc.Receiver[note]
	Done *ipc.Sender[int]
}

// leaser works on leases until the queue ends: it looks into each block, reports the value and
// acknowledges it.
var leaser = newRole("lease", func(ctx context.Context, w leasing) error {
	for l, err := range w.In.Leases(ctx) {
		if err != nil {
			return err
		}
		want := text(l.Value.Sender, l.Value.N)
		if got := string(l.Value.Blob.bytes()[:len(want)]); got != want {
			return errors.New("another value in the block: " + got)
		}
		if err := errors.Join(l.Value.Blob.Close(), w.Done.Put(ctx, l.Value.N), l.Ack()); err != nil {
			return err
		}
	}
	return nil
})

// Workers that lease are killed again and again at random. Each value is done, most of them once,
// and at the end no block is left.
func TestLease_KilledWorkersLoseNothing(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	before := d.Stats().Blocks
	q, done := testutil.Value(ipc.NewQueue[note](16))(t), testutil.Value(ipc.NewQueue[int](ipc.Unbounded))(t)
	const workers = 3
	kills := 40
	if testing.Short() {
		kills = 10 // a process takes a second to start where the processor is emulated
	}
	var killed atomic.Bool
	put := make(chan int, 1)
	go func() {
		n := 0
		for ; !killed.Load(); n++ {
			b, err := makeBlob(d, text(0, n))
			if err == nil {
				err = errors.Join(q.Put(ctx, note{0, n, b}), b.Close())
			}
			if err != nil {
				t.Error(err)
				break
			}
		}
		if err := q.Finish(); err != nil {
			t.Error(err)
		}
		put <- n
	}()
	start := func() *exec.Cmd { return leaser.start(t, d, leasing{q.Receiver(), done.Sender()}) }
	var cmds [workers]*exec.Cmd
	for i := range cmds {
		cmds[i] = start()
	}
	seen := map[int]int{}
	count := func() {
		for n, err := done.TryGet(); err == nil; n, err = done.TryGet() {
			seen[n]++
		}
	}
	for range kills {
		i := rand.IntN(workers)
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // to die at any instruction
		testutil.NoError(t, cmds[i].Process.Kill())
		cmds[i].Wait()
		cmds[i] = start()
		count()
	}
	killed.Store(true)
	wait(t, cmds[:]...)
	count()
	values, again := <-put, 0
	for n := range values {
		if seen[n] == 0 {
			t.Errorf("value %d of %d is lost", n, values)
		}
		again += max(seen[n]-1, 0)
	}
	if len(seen) != values || again > kills {
		t.Errorf("%d values of %d came, and %d of them again, after %d kills", len(seen), values, again, kills)
	}
	t.Logf("%d values, %d of them again", values, again)
	testutil.NoError(t, q.Close())
	testutil.NoError(t, done.Close())
	testutil.Eventually(t, func() bool { return d.Stats().Blocks == before }, "blocks are left over")
}
