package manager_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

func want[T comparable](t testing.TB, got T, err error, wanted T) {
	t.Helper()
	if err != nil || got != wanted {
		t.Fatalf("got %v, %v; want %v", got, err, wanted)
	}
}

// settled fails if blocks are left when everything is closed. Another process may still be about to
// let go.
func settled(t testing.TB) {
	t.Helper()
	d, err := arena.Default()
	testutil.NoError(t, err)
	before := d.Stats()
	t.Cleanup(func() {
		testutil.EventuallyNoError(t, func() error {
			if s := d.Stats(); s.Blocks != before.Blocks || s.InTransit != before.InTransit {
				d.Reap()
				return fmt.Errorf("%d blocks became %d, and %d references in messages %d", before.Blocks, s.Blocks,
					before.InTransit, s.InTransit)
			}
			return nil
		})
	})
}

// local starts a server on goroutines, of which nothing may be left.
func local(t testing.TB) *manager.Manager {
	t.Helper()
	settled(t)
	m, err := manager.New(context.Background())
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, m.Close()) })
	return m
}

// process starts a server in a process of its own.
func process(t testing.TB) *manager.Manager {
	t.Helper()
	settled(t)
	m, err := manager.Start(context.Background())
	testutil.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

// each runs a test against both.
func each(t *testing.T, f func(t *testing.T, m *manager.Manager)) {
	t.Helper()
	t.Run("local", func(t *testing.T) { f(t, local(t)) })
	t.Run("process", func(t *testing.T) { f(t, process(t)) })
}

func closing(t testing.TB, c interface{ Close() error }, err error) {
	t.Helper()
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, c.Close()) })
}
