package pool_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

type looking struct {
	In *ipc.Receiver[int]
	Go *ipc.PipeEnd[string, string]
}

// looks says, when it is told to look, whether anybody can put into its queue.
var looks = pool.Register("looks", func(ctx context.Context, l looking) (string, error) {
	if _, err := l.Go.Recv(ctx); err != nil {
		return "", err
	}
	_, err := l.In.TryGet()
	return fmt.Sprint(err), nil
})

// handIn hands a task in, and forgets its queue without closing it.
//
//go:noinline
func handIn(t *testing.T, p *pool.Pool, tell *ipc.PipeEnd[string, string]) *pool.Result[string] {
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	return looks.ApplyAsync(p, looking{q.Receiver(), tell})
}

// collect returns when what was garbage before it was called has been cleaned up.
func collect(t *testing.T) {
	t.Helper()
	for range 3 { // cleanups run in no order
		gone := make(chan struct{})
		runtime.AddCleanup(new([64]byte), func(c chan struct{}) { close(c) }, gone)
		runtime.GC()
		select {
		case <-gone:
		case <-time.After(watchdog):
			t.Fatal("nothing is collected")
		}
	}
}

func TestRegression_S2_3_AQueueIsOpenWhileATaskHasAnEndOfIt(t *testing.T) {
	t.Cleanup(func() { // when the task is over nobody has the queue, and the collector closes it
		collect(t)
		nothingIsLeft(t)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := pool.New(ctx, pool.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	here, there, err := ipc.Pipe[string, string]()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	defer there.Close()
	r := handIn(t, p, there)
	collect(t)
	if err := here.Send(ctx, "look"); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Get(ctx); got != ipc.ErrEmpty.Error() || err != nil {
		t.Errorf("the worker finds %q, %v", got, err)
	}
}

// sums leaves its argument to the garbage collector, as most functions do.
var sums = pool.Register("sums", func(_ context.Context, t *tensor.Tensor) (float64, error) { return t.Sum(), nil })

// The pages of an argument are used again soon, although a worker's heap is so small that the
// collector never runs by itself.
func TestPool_CollectsWhatFunctionsForget(t *testing.T) {
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(t.Context(), pool.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	const calls, size = 4000, 400 << 10
	before := d.Stats().Committed
	for range calls {
		x, err := tensor.NewShared(tensor.Uint8, size)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sums.Apply(t.Context(), p, x.Fill(1)); err != nil {
			t.Fatal(err)
		}
		x.Close()
	}
	// The collector falls behind on a busy machine: 30 % were seen there.
	if got := d.Stats().Committed - before; got > calls*size/2 {
		t.Errorf("%d MiB are committed for %d arguments of %d KiB, of which one is used at a time", got>>20,
			calls, size>>10)
	}
}

var ones = pool.Register("ones", func(_ context.Context, give bool) (*tensor.Tensor, error) {
	t, err := tensor.NewShared(tensor.Uint8, 400<<10)
	if err == nil && give {
		t = t.Give()
	}
	return t, err
})

// The worker closes a result that it gives, so one of these is in use at a time, or two.
func TestPool_AWorkerClosesResultsThatItGives(t *testing.T) {
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pool.New(t.Context(), pool.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	most := func(give bool) (results int64) {
		before := d.Stats().Bytes
		for range 20 {
			testutil.Value(ones.Apply(t.Context(), p, give))(t).Close()
			results = max(results, (d.Stats().Bytes-before)/(400<<10))
		}
		return results
	}
	if n := most(true); n > 2 {
		t.Errorf("%d results that were given are in use", n)
	}
	if n := most(false); n <= 2 {
		t.Errorf("%d results that were not given are in use, so this test tells nothing", n)
	}
}

// gives makes a tensor for its caller, and fails where it is told to.
var gives = pool.Register("gives", func(_ context.Context, fail bool) (*tensor.Tensor, error) {
	if fail {
		return nil, errors.New("no result")
	}
	t, err := tensor.NewShared(tensor.Uint8, 400<<10)
	if err != nil {
		return nil, err
	}
	return t.Give(), nil
})

// Results that nobody gets go at once, and not when this process's garbage collector runs.
func TestPool_FreesResultsThatNobodyGets(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	freesResults(t, 1)
	freesResults(t, 2)
	freesResults(t, 5) // of a chunk that fails, its worker has made four
}

func freesResults(t *testing.T, chunkSize int) {
	t.Helper()
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	const workers, times = 2, 5
	p, err := pool.New(t.Context(), pool.Options{Workers: workers, ChunkSize: chunkSize})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	many := make([]bool, 30)
	many[len(many)-1] = true
	wants := func(t *testing.T, err error) {
		if _, ok := errors.AsType[*pool.TaskError](err); !ok {
			t.Errorf("the error is %v", err)
		}
	}
	take := func(t *testing.T, results iter.Seq2[*tensor.Tensor, error], n int) {
		for v, err := range results {
			if err != nil {
				t.Fatal(err)
			}
			v.Close()
			if n--; n == 0 {
				break
			}
		}
	}
	for name, use := range map[string]func(t *testing.T){
		"a Map of which one fails": func(t *testing.T) {
			_, err := gives.Map(t.Context(), p, many)
			wants(t, err)
		},
		"an async Map": func(t *testing.T) {
			_, err := gives.MapAsync(p, many).Get(t.Context())
			wants(t, err)
		},
		"a loop that breaks off": func(t *testing.T) {
			take(t, gives.Imap(t.Context(), p, slices.Values(many)), 3)
		},
		"one in any order": func(t *testing.T) { // the failure of the last task could come first
			take(t, gives.ImapUnordered(t.Context(), p, slices.Values(make([]bool, len(many)))), 3)
		},
		"an IMap that is closed": func(t *testing.T) {
			m := gives.ImapAsync(p, slices.Values(many))
			testutil.Value(m.Next(t.Context()))(t).Close()
			m.Close()
		},
	} {
		t.Run(fmt.Sprintf("%s, by %d", name, chunkSize), func(t *testing.T) {
			allowed := d.Stats().Bytes + 100<<10
			for range times {
				use(t)
			}
			testutil.EventuallyNoError(t, func() error {
				if d.Stats().Bytes > allowed {
					return fmt.Errorf("%d KiB are left, and %d allowed", d.Stats().Bytes>>10, allowed>>10)
				}
				return nil
			})
		})
	}
}
