package dist_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/dist"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// watchdog is far beyond what anything here takes, so that a hang becomes a failure with a place.
const watchdog = 60 * time.Second

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newGroup(t testing.TB, size int) *dist.Group {
	t.Helper()
	g, err := dist.NewGroup(size)
	check(t, err)
	t.Cleanup(func() { check(t, g.Close()) })
	return g
}

// handles returns a Group for each rank, joined, as processes that received it have.
func handles(t testing.TB, size int) []*dist.Group {
	t.Helper()
	g := newGroup(t, size)
	q, err := ipc.NewQueue[*dist.Group](1)
	check(t, err)
	defer q.Close()
	all := make([]*dist.Group, size)
	for r := range all {
		check(t, q.Put(t.Context(), g))
		all[r], err = q.Get(t.Context())
		check(t, err)
		t.Cleanup(func() { check(t, all[r].Close()) })
		check(t, all[r].Join(r))
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
	check(t, errors.Join(errs...))
}
