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
		p, ctx := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}}), testutil.Context(t)
		_, err := exits.Apply(ctx, p, true)
		testutil.ErrorContains(t, err, "runtime.Goexit")
		testutil.ErrorIs(t, err, shoal.ErrPanic)
		testutil.Value(exits.Apply(ctx, p, false))(t) // of the worker that comes after it
	})
}

func TestPool_AGoexitInTheInitializerBreaksThePool(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, Initializer: initExits(0), Process: shoal.Options{Start: m}})
		err := p.Ready(testutil.Context(t))
		testutil.ErrorContains(t, err, "runtime.Goexit")
		testutil.ErrorIs(t, err, pool.ErrBroken)
	})
}

// gate lets tasks of waitsAtGate end, which run on goroutines of this process.
var gate = make(chan struct{})

var waitsAtGate = pool.Register("waitsAtGate", func(context.Context, int) (int, error) { <-gate; return 0, nil })

func TestThen_AGoexitEndsOnlyTheFunction(t *testing.T) {
	p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: shoal.GoroutineStart}})
	ctx := testutil.Context(t)
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

// A callback that panics ends neither the program nor the goroutine that serves the worker.
func TestThen_APanicEndsOnlyTheFunction(t *testing.T) {
	p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: shoal.GoroutineStart}})
	ctx := testutil.Context(t)
	r, called := waitsAtGate.ApplyAsync(p, 0), make(chan struct{})
	r.Then(func(int, error) { close(called); panic("on purpose") })
	gate <- struct{}{}
	<-called
	testutil.Value(exits.Apply(ctx, p, false))(t)
}

// brittle is a result that the caller's process cannot decode.
type brittle struct{ How byte }

func (b brittle) MarshalBinary() ([]byte, error) { return []byte{b.How}, nil }

func (b *brittle) UnmarshalBinary(data []byte) error {
	switch b.How = data[0]; b.How {
	case 'p':
		panic("on purpose")
	case 'g':
		runtime.Goexit()
	}
	return nil
}

var makesBrittle = pool.Register("makesBrittle", func(_ context.Context, how int) (brittle, error) {
	return brittle{byte(how)}, nil
})

// Results are decoded on a goroutine of the pool. If that panics or ends the goroutine, the task
// fails and the pool goes on.
func TestPool_AResultThatCannotBeDecodedFailsItsTask(t *testing.T) {
	p, ctx := open(t, pool.Options{Workers: 1}), testutil.Context(t)
	for _, how := range "pg" {
		for range 3 {
			_, err := makesBrittle.Apply(ctx, p, int(how))
			testutil.ErrorIs(t, err, shoal.ErrPanic)
			if got := new(pool.TaskError); !errors.As(err, &got) || got.Func != "makesBrittle" {
				t.Errorf("%c: got %v, want a TaskError", how, err)
			}
			all := makesBrittle.ChunkSize(1).MapAsync(p, []int{'-', int(how), '-'})
			_, err = all.Get(ctx)
			testutil.ErrorIs(t, err, shoal.ErrPanic)
			got, err := makesBrittle.Apply(ctx, p, '-')
			testutil.NoError(t, err)
			if got.How != '-' {
				t.Errorf("got %c after a failure, want -", got.How)
			}
		}
	}
}
