package pool_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

var exits = pool.Register("exits", func(_ context.Context, yes bool) (bool, error) {
	if yes {
		runtime.Goexit()
	}
	return yes, nil
})

var initExits = pool.RegisterInit("initExits", func(context.Context, int) error { runtime.Goexit(); return nil })

func TestPool_AGoexitIsTheErrorOfItsTask(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p, ctx := open(t, pool.Options{Workers: 1, Start: m}), testutil.Context(t)
		_, err := exits.Apply(ctx, p, true)
		testutil.ErrorContains(t, err, "runtime.Goexit")
		testutil.ErrorIs(t, err, shoal.ErrPanic)
		testutil.Value(exits.Apply(ctx, p, false))(t) // of the worker that comes after it
	})
}

func TestPool_AGoexitInTheInitializerBreaksThePool(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, Start: m, Initializer: initExits(0)})
		err := p.Ready(testutil.Context(t))
		testutil.ErrorContains(t, err, "runtime.Goexit")
		testutil.ErrorIs(t, err, pool.ErrBroken)
	})
}

// gate lets tasks of waitsAtGate end, which run on goroutines of this process.
var gate = make(chan struct{})

var waitsAtGate = pool.Register("waitsAtGate", func(context.Context, int) (int, error) { <-gate; return 0, nil })

func TestThen_AGoexitEndsOnlyTheFunction(t *testing.T) {
	p, ctx := open(t, pool.Options{Workers: 1, Start: shoal.GoroutineStart}), testutil.Context(t)
	r, called := waitsAtGate.ApplyAsync(p, 0), make(chan struct{})
	r.Then(func(int, error) { close(called); runtime.Goexit() })
	gate <- struct{}{}
	<-called
	for range 10 { // the goroutine that serves the worker is still there
		_, err := exits.Apply(ctx, p, false)
		testutil.NoError(t, err)
	}
	if _, err := exits.Apply(ctx, p, true); !errors.Is(err, shoal.ErrPanic) {
		t.Error(err)
	}
}
