package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

type reporting struct {
	News *ipc.Latest[edition]
	Said *ipc.Sender[uint64]
	From int
}

// edit stores editions until it is killed, and says which versions they had.
var edit = newRole("edit", func(ctx context.Context, r reporting) error {
	for n := r.From; ; n++ {
		version, err := store(ctx, r.News, n)
		if err == nil {
			err = r.Said.Put(ctx, version)
		}
		if err != nil {
			return err
		}
	}
})

// follow loads until it is killed, and says which versions it saw, one after the other.
var follow = newRole("follow", func(ctx context.Context, r reporting) error {
	for last := uint64(0); ; {
		e, version, err := r.News.Wait(ctx, last)
		if err == nil && version <= last {
			err = fmt.Errorf("version %d after %d", version, last)
		}
		if err := errors.Join(err, e.check(), e.Close()); err != nil {
			return err
		}
		last = version
		if err := r.Said.Put(ctx, version); err != nil {
			return err
		}
	}
})

// A storm kills those who store and those who load, wherever they are, while others look: the value
// is always whole and never an older one, and in the end nothing is left of those before.
func TestLatest_SurvivesKillsOfStoresAndLoads(t *testing.T) {
	d := shared(t)
	ctx := testutil.Context(t)
	l := newLatest(t, d)
	seen := newQueue[uint64](t, 4)
	// nobody who stores waits for us
	stored, err := ipc.NewQueueWith[uint64](ipc.QueueOptions{Capacity: 4, Policy: ipc.DropOldest})
	testutil.NoError(t, err)
	defer stored.Close()
	const kills = 60
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	begun := 0
	editor := func() *exec.Cmd {
		begun++
		return edit.start(t, d, reporting{l, stored.Sender(), begun * 1000})
	}
	follower := func() *exec.Cmd { return follow.start(t, d, reporting{l, seen.Sender(), 0}) }
	all := []*exec.Cmd{editor(), editor(), follower(), follower()}
	last := uint64(0)
	for range kills {
		for range rng.IntN(20) {
			version, err := seen.Get(ctx)
			testutil.NoError(t, err)
			e, now, err := l.Load()
			testutil.NoError(t, errors.Join(err, e.check(), e.Close()))
			if now < version || now < last {
				t.Fatalf("version %d, when another process has seen %d and this one %d", now, version, last)
			}
			last = now
		}
		for version, err := stored.TryGet(); err == nil; version, err = stored.TryGet() {
			if now := l.Version(); now < version {
				t.Fatalf("version %d, when %d was stored", now, version)
			}
		}
		i := rng.IntN(len(all))
		testutil.NoError(t, all[i].Process.Kill())
		all[i].Wait()
		if i < 2 {
			all[i] = editor()
		} else {
			all[i] = follower()
		}
	}
	for _, c := range all {
		testutil.NoError(t, c.Process.Kill())
		c.Wait()
	}
	_, err = store(ctx, l, 7) // whoever had the lock
	testutil.NoError(t, err)
	e, _, err := l.Load()
	testutil.NoError(t, errors.Join(err, e.check()))
	if e.N != 7 {
		t.Errorf("edition %d", e.N)
	}
	testutil.NoError(t, errors.Join(e.Close(), stored.Close(), seen.Close()))
	awaitBlocks(t, d, 4+2) // the ring, its two ends and the mutex; what the message of edition 7 holds
	testutil.NoError(t, l.Close())
}

// awaitBlocks waits until so many blocks are in use, which is when the dead are reaped.
func awaitBlocks(t testing.TB, d *arena.Domain, want int) {
	t.Helper()
	testutil.EventuallyNoError(t, func() error {
		_, err := d.Reap()
		testutil.NoError(t, err)
		if d.Stats().Blocks != want {
			return fmt.Errorf("%d blocks are in use; want %d", d.Stats().Blocks, want)
		}
		return nil
	})
}
