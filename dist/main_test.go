package dist_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// watchdog is far beyond what anything here takes, so that a hang becomes a failure with a place.
const watchdog = 60 * time.Second

func newGroup(t testing.TB, size int) *dist.Group {
	t.Helper()
	g, err := dist.NewGroup(size)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, g.Close()) })
	return g
}

// handles returns a Group for each rank, joined, as processes that received it have.
func handles(t testing.TB, size int) []*dist.Group {
	t.Helper()
	g := newGroup(t, size)
	q, err := ipc.NewQueue[*dist.Group](1)
	testutil.NoError(t, err)
	defer q.Close()
	all := make([]*dist.Group, size)
	for r := range all {
		testutil.NoError(t, q.Put(t.Context(), g))
		all[r], err = q.Get(t.Context())
		testutil.NoError(t, err)
		t.Cleanup(func() { testutil.NoError(t, all[r].Close()) })
		testutil.NoError(t, all[r].Join(r))
	}
	return all
}

// together calls f for every rank at once, and returns the errors by rank.
func together(all []*dist.Group, f func(g *dist.Group) error) []error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for r, g := range all {
		wg.Go(func() { errs[r] = f(g) })
	}
	wg.Wait()
	return errs
}

func all(t testing.TB, errs []error) {
	t.Helper()
	testutil.NoError(t, errors.Join(errs...))
}
