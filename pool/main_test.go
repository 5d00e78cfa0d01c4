package pool_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// noMainKey makes this test binary a program that does not call shoal.Main.
const noMainKey = "SHOAL_TEST_NO_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(noMainKey) != "" {
		p, err := pool.New(context.Background(), pool.Options{Workers: 1})
		fmt.Println(p == nil, errors.Is(err, shoal.ErrNoMain), err)
		os.Exit(0)
	}
	shoaltest.TestMain(m)
}

// watchdog is far beyond what anything here takes, so that a hang becomes a failure with a place.
const watchdog = 60 * time.Second

// everyStart runs a test once for each start method.
func everyStart(t *testing.T, test func(t *testing.T, m shoal.StartMethod)) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		t.Run(m.String(), func(t *testing.T) { test(t, m) })
	}
}

// pools is how many are open.
var pools atomic.Int64

// open makes a pool that the test closes. The last one to be closed leaves no memory behind.
func open(t testing.TB, opts pool.Options) *pool.Pool {
	t.Helper()
	pools.Add(1)
	p, err := pool.New(testutil.Context(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if pools.Add(-1) == 0 {
			nothingIsLeft(t)
		}
	})
	return p
}

func nothingIsLeft(t testing.TB) {
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	testutil.EventuallyNoError(t, func() error {
		n := d.Stats().Blocks
		if n == 0 || pools.Load() > 0 { // blocks of another test, which runs beside this one
			return nil
		}
		return fmt.Errorf("%d blocks are left", n)
	})
}
