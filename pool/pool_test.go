package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

var base atomic.Int64

var setBase = pool.RegisterInit("setBase", func(ctx context.Context, n int) error {
	if n < 0 {
		return fmt.Errorf("base %d: %w", n, fs.ErrInvalid)
	}
	if n == 0 {
		os.Exit(4)
	}
	base.Store(int64(n))
	return nil
})

var addBase = pool.Register("addBase", func(_ context.Context, x int) (int, error) { return int(base.Load()) + x, nil })

func TestInitializer_RunsInEachWorker(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 3, Initializer: setBase(1000), MaxTasksPerWorker: 2,
			Process: shoal.Options{Start: m}})
		if err := p.Ready(testutil.Context(t)); err != nil {
			t.Fatal(err)
		}
		for i, v := range testutil.Value(addBase.Map(testutil.Context(t), p, upTo(50)))(t) {
			if v != 1000+i {
				t.Errorf("value %d: %d", i, v)
			}
		}
		base.Store(0)
	})
}

func TestInitializer_ThatFailsBreaksThePool(t *testing.T) {
	for _, c := range []struct {
		arg  int
		want error
	}{{-1, fs.ErrInvalid}, {0, shoal.ErrExited}} {
		p := open(t, pool.Options{Workers: 2, Initializer: setBase(c.arg)})
		_, err := square.Map(testutil.Context(t), p, upTo(10))
		if !errors.Is(err, pool.ErrBroken) || !errors.Is(err, c.want) {
			t.Errorf("base %d: %v", c.arg, err)
		}
		if err := p.Ready(testutil.Context(t)); !errors.Is(err, pool.ErrBroken) {
			t.Errorf("base %d: ready says %v", c.arg, err)
		}
		if err := p.Join(testutil.Context(t)); !errors.Is(err, c.want) {
			t.Errorf("base %d: join says %v", c.arg, err)
		}
	}
}

func TestPool_IsBrokenByWorkersThatCannotStart(t *testing.T) {
	p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Executable: "/does/not/exist"}})
	if _, err := square.Apply(testutil.Context(t), p, 1); !errors.Is(err, pool.ErrBroken) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

var whoRuns = pool.Register("whoRuns", func(ctx context.Context, _ int) ([2]int, error) {
	return [2]int{os.Getpid(), pool.Rank(ctx)}, nil
})

func TestOptions_MaxTasksReplacesWorkers(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart} {
		p := open(t, pool.Options{Workers: 2, ChunkSize: 2, MaxTasksPerWorker: 3, Process: shoal.Options{Start: m}})
		calls := make(map[int]int)
		for _, w := range testutil.Value(whoRuns.Map(testutil.Context(t), p, upTo(48)))(t) {
			calls[w[0]]++
			if w[1] != 0 && w[1] != 1 {
				t.Errorf("rank %d", w[1])
			}
		}
		for pid, n := range calls {
			if n > 6 {
				t.Errorf("worker %d did %d values, in chunks of 2; at most 3 chunks are allowed", pid, n)
			}
		}
		if len(calls) < 8 {
			t.Errorf("%d workers did 24 chunks, at most 3 each", len(calls))
		}
	}
	if pool.Rank(t.Context()) != -1 {
		t.Error("this is no worker")
	}
}

func TestFinish_LetsTasksEnd(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		if err := p.Join(testutil.Context(t)); err != pool.ErrRunning {
			t.Errorf("join of a pool that takes tasks: %v", err)
		}
		r := square.MapAsync(p, upTo(500))
		p.Finish()
		if _, err := square.Apply(testutil.Context(t), p, 1); err != pool.ErrClosed {
			t.Errorf("a task after Finish: %v", err)
		}
		if err := p.Join(testutil.Context(t)); err != nil {
			t.Error(err)
		}
		if got := testutil.Value(r.Get(testutil.Context(t)))(t); !r.Ready() || !slices.Equal(got, squares(500)) {
			t.Errorf("got %v", got)
		}
	})
}

func TestFinish_OfAPoolWithoutTasks(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		p.Finish()
		if err := p.Join(testutil.Context(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestClose_EndsTasks(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m, Grace: watchdog}})
		r := gated.MapAsync(p, []string{t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()})
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := r.Get(testutil.Context(t)); !errors.Is(err, pool.ErrClosed) && !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := square.Apply(testutil.Context(t), p, 1); err != pool.ErrClosed {
			t.Errorf("a task after Close: %v", err)
		}
		if err := p.Join(testutil.Context(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestPool_EndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testutil.Context(t))
	p, err := pool.New(ctx, pool.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := gated.MapAsync(p, []string{t.TempDir(), t.TempDir(), t.TempDir()})
	cancel(why)
	if err := p.Join(testutil.Context(t)); err != why && err != pool.ErrRunning {
		t.Errorf("join says %v", err)
	}
	if _, err := r.Get(testutil.Context(t)); err == nil {
		t.Error("a task has ended well")
	}
}

func TestNew_ChecksItsOptions(t *testing.T) {
	for _, opts := range []pool.Options{
		{Workers: -1}, {MaxTasksPerWorker: -1}, {ChunkSize: -1}, {Window: -1}, {Retries: -1}, {TaskTimeout: -time.Hour},
	} {
		if _, err := pool.New(t.Context(), opts); err == nil {
			t.Errorf("%+v is no error", opts)
		}
	}
	p := open(t, pool.Options{})
	if p.Workers() != shoal.Threads() {
		t.Errorf("%d workers by default", p.Workers())
	}
}

func TestRegister_PanicsWhereItIsWrong(t *testing.T) {
	for name, register := range map[string]func(){
		"no name":     func() { pool.Register("", func(context.Context, int) (int, error) { return 0, nil }) },
		"no function": func() { pool.Register[int, int]("x", nil) },
		"no pair":     func() { pool.Register2[int, int, int]("x", nil) },
		"no init":     func() { pool.RegisterInit[int]("x", nil) },
		"too late":    func() { pool.Register("late", func(context.Context, int) (int, error) { return 0, nil }) },
		"taken":       func() { pool.Register("square", func(context.Context, int) (int, error) { return 0, nil }) },
		"channel in":  func() { pool.Register("x", func(context.Context, chan int) (int, error) { return 0, nil }) },
		"channel out": func() { pool.Register("x", func(context.Context, int) (chan int, error) { return nil, nil }) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			register()
		}()
	}
}
