package dist_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An inquest is the argument of ranks of which one is killed in some turn; the others write whom
// they blame.
type inquest struct {
	Group  *dist.Group
	Victim int
	Turn   int
	Dir    string
}

var perish = shoal.Register("work until one is killed", func(ctx context.Context, rank int, in inquest) error {
	defer in.Group.Close()
	if err := in.Group.Join(rank); err != nil {
		return err
	}
	t := tensor.Ones(tensor.Float32, 1000)
	var err error
	for turn := 0; err == nil; turn++ {
		if rank == in.Victim && turn == in.Turn {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if rank%2 == 0 { // some are always late
			time.Sleep(time.Millisecond)
		}
		err = in.Group.AllReduce(ctx, dist.Sum, t)
	}
	var e *dist.RankError
	if !errors.As(err, &e) {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(in.Dir, strconv.Itoa(rank)),
		fmt.Appendf(nil, "%v %v", e.Ranks, err), 0o666), err)
})

// All ranks are of one shoal.Group, as users have them: so the death of one also cancels the
// contexts of the others, and each that fails leaves. None of these is why a call failed.
func TestRegression_S1_6_RankErrorBlamesTheDeadAlone(t *testing.T) {
	const ranks = 4
	for round := range 12 {
		dir, victim := t.TempDir(), round%ranks
		g := newGroup(t, ranks)
		err := perish.Spawn(testutil.Context(t), ranks, inquest{g, victim, round % 5, dir})
		if p := new(shoal.ProcessError); !errors.As(err, &p) {
			t.Fatal(err)
		}
		for r := range ranks {
			said, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(r)))
			if r == victim || errors.Is(err, os.ErrNotExist) { // it did not get that far before it was told to stop
				continue
			}
			testutil.NoError(t, err)
			if want := fmt.Sprint([]int{victim}); !strings.HasPrefix(string(said), want) {
				t.Errorf("rank %d died in turn %d; rank %d says %s", victim, round%5, r, said)
			}
		}
	}
}

// A rank that left after its call had failed is not why another's call failed: only a rank that has
// not come is.
func TestRankError_NamesNoneOfThoseWhoWereLetDown(t *testing.T) {
	for range 20 {
		groups, ctx := handles(t, 4), testutil.Context(t)
		errs := together(groups[:3], func(g *dist.Group) error {
			defer g.Close()
			at := ctx
			if g.Rank() == 0 {
				soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
				at = soon
			}
			return g.Barrier(at)
		})
		for r, err := range errs {
			var e *dist.RankError
			if !errors.As(err, &e) || !slices.Contains(e.Ranks, 3) || slices.Contains(e.Ranks, 0) ||
				errors.Is(err, dist.ErrLeft) {
				t.Fatalf("rank 3 did not come; rank %d says %v", r, err)
			}
		}
	}
}
