package dist_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

var early = flag.Int("dist.early", 0, "kill at every 100 µs of a start, so many times; 0: at some of them, once")

// A newborn is the argument of a rank one of which is killed while it is started.
type newborn struct {
	Group   *dist.Group
	Rank    int
	Victim  int
	Does    string
	Reports *ipc.Sender[report]
	Gone    *ipc.Event // the victim is dead, and all have reported
}

// newbornDeeds is what newborns do until it fails. Some wait at the barrier, some for letters.
var newbornDeeds = map[string]func(ctx context.Context, b newborn) error{
	"barrier": func(ctx context.Context, b newborn) error { return b.Group.Barrier(ctx) },
	"letters": func(ctx context.Context, b newborn) error {
		return mortal{Group: b.Group, Rank: b.Rank, Victim: b.Victim}.withTheVictim(func(r int) error {
			if err := dist.SendValue(ctx, b.Group, r, 0, b.Rank); err != nil {
				return err
			}
			_, _, err := dist.RecvValue[int](ctx, b.Group, r, 0)
			return err
		})
	},
}

var beEarly = shoal.Register("live long enough", func(ctx context.Context, _ int, b newborn) error {
	defer b.Group.Close()
	defer b.Reports.Close()
	if err := b.Group.Join(b.Rank); err != nil {
		return err
	}
	var err error
	for err == nil {
		err = newbornDeeds[b.Does](ctx, b)
	}
	r := report{Rank: b.Rank, PID: os.Getpid(), Message: err.Error()}
	if p := new(arena.PeerError); errors.As(err, &p) {
		r.Dead, r.PID = true, p.PID
	}
	if e := new(dist.RankError); errors.As(err, &e) {
		r.Blamed = e.Ranks
	}
	return errors.Join(b.Reports.Put(ctx, r), b.Gone.Wait(ctx))
})

// A rank is killed at every 100 µs of its first 5 ms, by the kernel and by its Process, with ranks
// that are started anew and with ranks that wait for their job.
func TestEarlyDeath_ARankThatDiesAtItsStartIsNamed(t *testing.T) {
	step, rounds := 500*time.Microsecond, 1
	if *early > 0 {
		step, rounds = 100*time.Microsecond, *early
	}
	n := 0
	for range rounds {
		for delay := time.Duration(0); delay <= 5*time.Millisecond; delay += step {
			start, does := shoal.SpawnStart, "barrier"
			if n%4 == 3 {
				start = shoal.WarmStart
			}
			if n%2 == 1 {
				does = "letters"
			}
			diesEarly(t, start, does, n%3, delay, n%2 == 0)
			n++
		}
	}
	testutil.NoError(t, shoal.Warm(testutil.Context(t), 0, shoal.Options{Workers: 3}))
	t.Logf("%d ranks were killed at their start", n)
}

func diesEarly(t *testing.T, start shoal.StartMethod, does string, victim int, delay time.Duration, raw bool) {
	t.Helper()
	const size = 3
	ctx := testutil.Context(t)
	g, err := dist.NewGroup(size)
	testutil.NoError(t, err)
	q, err := ipc.NewQueue[report](2 * size)
	testutil.NoError(t, err)
	gone, err := ipc.NewEvent()
	testutil.NoError(t, err)
	var groups []*shoal.Group
	var processes []*shoal.Process
	for i := range size {
		r := (victim + 1 + i) % size // the victim is the last one
		group := shoal.NewGroup(ctx, shoal.Options{Workers: size, Start: start})
		groups = append(groups, group)
		processes = append(processes, beEarly.Go(group, newborn{g, r, victim, does, q.Sender(), gone}))
	}
	last := processes[size-1]
	for begin := time.Now(); time.Since(begin) < delay; {
	}
	pid := last.PID()
	if raw {
		testutil.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	} else {
		last.Kill()
	}
	for range size - 1 {
		r, err := q.Get(ctx)
		if err != nil {
			t.Fatalf("%v, killed after %v while others do %s: %v", start, delay, does, err)
		}
		if !r.Dead || r.PID != pid || r.Rank == victim || !slices.Contains(r.Blamed, victim) {
			t.Errorf("rank %d died as process %d after %v; rank %d says %q of %d and blames %v",
				victim, pid, delay, r.Rank, r.Message, r.PID, r.Blamed)
		}
	}
	testutil.NoError(t, gone.Set())
	for i, group := range groups {
		if err := group.Wait(); (err != nil) != (i == size-1 && raw) {
			t.Errorf("%s after %v: %v", processes[i].Name(), delay, err)
		}
	}
	testutil.NoError(t, errors.Join(q.Close(), g.Close(), gone.Close()))
	allBlocksCome(t, ctx)
}

// Several die at once, and those who are left are told all the same.
func TestEarlyDeath_AllRanksButOneDieAtTheirStart(t *testing.T) {
	const size = 4
	ctx := testutil.Context(t)
	for round := range 5 {
		g, err := dist.NewGroup(size)
		testutil.NoError(t, err)
		q, err := ipc.NewQueue[report](2 * size)
		testutil.NoError(t, err)
		gone, err := ipc.NewEvent()
		testutil.NoError(t, err)
		var groups []*shoal.Group
		for r := range size {
			group := shoal.NewGroup(ctx, shoal.Options{Workers: size})
			p := beEarly.Go(group, newborn{g, r, 0, "barrier", q.Sender(), gone})
			groups = append(groups, group)
			if r > 0 {
				time.Sleep(time.Duration(round) * 200 * time.Microsecond)
				p.Kill()
			}
		}
		if r, err := q.Get(ctx); err != nil || !r.Dead || r.Rank != 0 {
			t.Errorf("%+v, %v", r, err)
		}
		testutil.NoError(t, gone.Set())
		for r, group := range groups {
			if err := group.Wait(); err != nil {
				t.Error(fmt.Sprint("rank ", r), err)
			}
		}
		testutil.NoError(t, errors.Join(q.Close(), g.Close(), gone.Close()))
		allBlocksCome(t, ctx)
	}
}
