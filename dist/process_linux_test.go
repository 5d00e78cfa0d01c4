package dist_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var summing = shoal.Register("sum", func(ctx context.Context, rank int, g *dist.Group) error {
	defer g.Close()
	t := tensor.Full(tensor.Int64, float64(rank), 200_000)
	err := g.Join(rank)
	if err == nil {
		err = g.AllReduce(ctx, dist.Sum, t)
	}
	if want := g.Size() * (g.Size() - 1) / 2 * t.Numel(); err == nil && int(t.Sum()) != want {
		err = fmt.Errorf("rank %d of %d has a sum of %v, not %d", rank, g.Size(), t.Sum(), want)
	}
	if err == nil {
		err = g.Barrier(ctx)
	}
	return err
})

func TestGroup_WithEveryStartMethod(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		group, err := summing.Start(testutil.Context(t), 3, newGroup(t, 3), shoal.Options{Start: m})
		testutil.NoError(t, err)
		testutil.NoError(t, group.Wait())
	}
}

var deserting = shoal.Register("desert", func(ctx context.Context, rank int, g *dist.Group) error {
	if err := g.Join(rank); err != nil || rank == 0 {
		return err // without a Close
	}
	defer g.Close()
	return g.Barrier(ctx)
})

func TestGroup_ARankThatReturnsIsNamedWithEveryStartMethod(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			group, err := deserting.Start(testutil.Context(t), 2, newGroup(t, 2), shoal.Options{Start: m})
			testutil.NoError(t, err)
			err = group.Wait()
			left, ok := errors.AsType[*dist.RankError](err) // as the rank has it
			if !ok || !errors.Is(err, dist.ErrLeft) || !slices.Equal(left.Ranks, []int{0}) {
				t.Errorf("want ErrLeft of rank 0, got %v", err)
			}
		})
	}
}

// A victim is the argument of a rank that reports how it ends.
type victim struct {
	Group   *dist.Group
	Rank    int
	Place   tensor.Place
	Reports *ipc.Sender[report]
}

type report struct {
	Rank    int
	Going   bool  // the first report
	Dead    bool  // the error was a death
	PID     int   // whose
	Blamed  []int // ranks
	Message string
}

var endless = shoal.Register("reduce until somebody dies", func(ctx context.Context, _ int, v victim) error {
	defer v.Group.Close()
	defer v.Reports.Close()
	if err := v.Group.Join(v.Rank); err != nil {
		return err
	}
	t, err := tensor.On(v.Place.Device).Full(tensor.Float32, 1, 400_000) // several chunks
	if err != nil {
		return err
	}
	defer t.Close()
	err = v.Group.AllReduce(ctx, dist.Mean, t)
	if err := v.Reports.Put(ctx, report{Rank: v.Rank, Going: true}); err != nil {
		return err
	}
	for err == nil {
		err = v.Group.AllReduce(ctx, dist.Mean, t)
	}
	r := report{Rank: v.Rank, Message: err.Error()}
	var peer *arena.PeerError
	var rank *dist.RankError
	if r.Dead = errors.As(err, &peer); r.Dead {
		r.PID = peer.PID
	}
	if errors.As(err, &rank) {
		r.Blamed = rank.Ranks
	}
	return v.Reports.Put(ctx, r)
})

func TestGroup_NamesAKilledRank(t *testing.T) {
	for round := range 6 {
		killedRank(t, round%3, nil, nil, nil)
	}
}

// killedRank has a rank for each place, one of which is killed, wherever it is.
func killedRank(t *testing.T, killed int, places ...tensor.Device) {
	size := len(places)
	ctx, g := testutil.Context(t), newGroup(t, size)
	q, err := ipc.NewQueue[report](2 * size)
	testutil.NoError(t, err)
	groups, pids := make([]*shoal.Group, size), make([]int, size)
	processes := make([]*shoal.Process, size)
	for r := range groups {
		// of its own, so that none is cancelled by another's end
		groups[r] = shoal.NewGroup(ctx, shoal.Options{Workers: size})
		processes[r] = endless.Go(groups[r], victim{g, r, tensor.Place{Device: places[r]}, q.Sender()})
	}
	for range size {
		if r, err := q.Get(ctx); err != nil || !r.Going {
			t.Fatal(r, err)
		}
	}
	for r, p := range processes {
		pids[r] = p.PID()
	}
	testutil.NoError(t, syscall.Kill(pids[killed], syscall.SIGKILL))
	for range size - 1 {
		r, err := q.Get(ctx)
		testutil.NoError(t, err)
		if !r.Dead || r.PID != pids[killed] || !slices.Equal(r.Blamed, []int{killed}) {
			t.Errorf("rank %d died; rank %d says %q and blames %v", killed, r.Rank, r.Message, r.Blamed)
		}
	}
	for r, group := range groups {
		if err := group.Wait(); (err != nil) != (r == killed) {
			t.Error(err)
		}
	}
	testutil.NoError(t, errors.Join(q.Close(), g.Close()))
}
