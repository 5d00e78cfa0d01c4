package pool_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var square = pool.Register("square", func(_ context.Context, x int) (int, error) { return x * x, nil })

// oddOnly refuses the even ones.
var oddOnly = pool.Register("oddOnly", func(_ context.Context, x int) (int, error) {
	if x%2 == 0 {
		return 0, fmt.Errorf("number %d: %w", x, fs.ErrInvalid)
	}
	return x, nil
})

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func squares(n int) []int {
	all := upTo(n)
	for i, x := range all {
		all[i] = x * x
	}
	return all
}

func TestMap_ReturnsResultsInOrder(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		for _, chunk := range []int{0, 1, 7, 5000} {
			p := open(t, pool.Options{Workers: 3, ChunkSize: chunk, Process: shoal.Options{Start: m}})
			for _, n := range []int{0, 1, 1000} {
				got := testutil.Value(square.Map(testutil.Context(t), p, upTo(n)))(t)
				if !slices.Equal(got, squares(n)) {
					t.Errorf("%d values in chunks of %d: %v", n, chunk, got)
				}
			}
		}
	})
}

func TestMap_ReturnsTheFirstFailure(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, ChunkSize: 3, Process: shoal.Options{Start: m}})
		_, err := oddOnly.Map(testutil.Context(t), p, []int{1, 3, 5, 7, 8, 9, 11})
		te, ok := errors.AsType[*pool.TaskError](err)
		if !ok || te.Index != 4 || te.Func != "oddOnly" || !errors.Is(err, fs.ErrInvalid) ||
			te.Error() != "pool: task 4 of oddOnly: number 8: invalid argument" {
			t.Errorf("got %v", err)
		}
		if got := testutil.Value(oddOnly.Apply(testutil.Context(t), p, 3))(t); got != 3 { // nobody has died of it
			t.Errorf("then it says %d", got)
		}
	})
}

var sum = pool.Register2("sum", func(_ context.Context, i int, chunk *tensor.Tensor) (float64, error) {
	defer chunk.Close()
	return float64(i) * chunk.Sum(), nil
})

func TestStarMap_SharesTensors(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		whole := testutil.Value(tensor.NewShared(tensor.Float32, 40, 10))(t)
		defer whole.Close()
		whole.Fill(1)
		chunks := whole.Split(10, 0)
		got := testutil.Value(sum.StarMap(testutil.Context(t), p, slices.All(chunks)))(t)
		if !slices.Equal(got, []float64{0, 100, 200, 300}) {
			t.Errorf("sums %v", got)
		}
		if got := testutil.Value(sum.Apply(testutil.Context(t), p, 2, chunks[0]))(t); got != 200 {
			t.Errorf("sum %v", got)
		}
		if got := testutil.Value(sum.ApplyAsync(p, 3, chunks[0]).Get(testutil.Context(t)))(t); got != 300 {
			t.Errorf("sum %v", got)
		}
		r := sum.StarMapAsync(p, slices.All(chunks))
		for _, c := range chunks {
			c.Close() // what was handed in is held
		}
		if got := testutil.Value(r.Get(testutil.Context(t)))(t); got[3] != 300 {
			t.Errorf("sums %v", got)
		}
	})
}

// twice returns a tensor of its own.
var twice = pool.Register("twice", func(_ context.Context, in *tensor.Tensor) (*tensor.Tensor, error) {
	defer in.Close()
	out, err := tensor.NewShared(in.DType(), in.Shape()...)
	if err == nil {
		out.CopyFrom(in)
		out.MulScalarInPlace(2)
	}
	return out, err
})

func TestMap_SharesResults(t *testing.T) {
	p := open(t, pool.Options{Workers: 2})
	in := testutil.Value(tensor.NewShared(tensor.Float32, 1000))(t)
	defer in.Close()
	in.Fill(3)
	for _, out := range testutil.Value(twice.Map(testutil.Context(t), p, []*tensor.Tensor{in, in, in}))(t) {
		if !out.IsShared() || tensor.At[float32](out, 999) != 6 {
			t.Errorf("shared %v, element %v", out.IsShared(), tensor.At[float32](out, 999))
		}
		out.Close()
	}
}

// anything returns what it gets, of which the pool learns only then that it cannot travel.
var anything = pool.Register("anything", func(_ context.Context, give bool) (any, error) {
	if give {
		return struct{ C chan int }{}, nil
	}
	return 7, nil
})

var accepts = pool.Register("accepts", func(context.Context, any) (int, error) { return 1, nil })

func TestTaskError_OfWhatCannotCross(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	if _, err := anything.Apply(testutil.Context(t), p, true); err == nil {
		t.Error("a channel has crossed")
	}
	if _, err := accepts.Map(testutil.Context(t), p, []any{1, make(chan int), 2}); err == nil {
		t.Error("a channel was handed in")
	}
	if got := testutil.Value(anything.Apply(testutil.Context(t), p, false))(t); fmt.Sprint(got) != "7" {
		t.Errorf("then it says %v", got)
	}
}

func TestApplyAsync_MakesAResult(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		var all []*pool.Result[int]
		for i := range 100 {
			all = append(all, oddOnly.ApplyAsync(p, i))
		}
		called := make(chan error, 100)
		for i, r := range all {
			r.Then(func(v int, err error) { called <- err })
			v, err := r.Get(testutil.Context(t))
			if odd := i%2 == 1; (err == nil) != odd || odd && v != i || !r.Ready() {
				t.Errorf("%d: %v, %v", i, v, err)
			}
			if err := <-called; errors.Is(err, fs.ErrInvalid) == (i%2 == 1) {
				t.Errorf("%d: called with %v", i, err)
			}
		}
	})
}

func TestResult_ThatIsNotThere(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	r := gated.ApplyAsync(p, t.TempDir())
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Get(over); err != context.Canceled || r.Ready() {
		t.Errorf("got %v", err)
	}
	if _, err := gated.Map(over, p, []string{t.TempDir()}); err != context.Canceled {
		t.Errorf("Map with a context that is done: %v", err)
	}
}

// A patient task says that it has begun, and waits for the end of its context, which it reports.
type patient struct {
	Began *ipc.Sender[int]
	Ended *ipc.Sender[bool]
}

var waitForStop = pool.Register("waitForStop", func(ctx context.Context, p patient) (int, error) {
	defer p.Began.Close()
	defer p.Ended.Close()
	if err := p.Began.Put(context.WithoutCancel(ctx), os.Getpid()); err != nil {
		return 0, err
	}
	<-ctx.Done()
	return 0, p.Ended.Put(context.WithoutCancel(ctx), true)
})

var processID = pool.Register("processID",
	func(ctx context.Context, _ int) (int, error) { return os.Getpid(), ctx.Err() })

// A caller that does not wait for a Map, an Apply or an Imap any more stops what runs of it; its
// workers go on with other tasks.
func TestMap_StopsTasksThatNobodyWaitsFor(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, ChunkSize: 1, Process: shoal.Options{Start: m}})
		began, err := ipc.NewQueue[int](4)
		testutil.NoError(t, err)
		defer began.Close()
		ended, err := ipc.NewQueue[bool](4)
		testutil.NoError(t, err)
		defer ended.Close()
		task := patient{began.Sender(), ended.Sender()}
		for name, call := range map[string]func(ctx context.Context) error{
			"Map": func(ctx context.Context) error {
				_, err := waitForStop.Map(ctx, p, []patient{task, task, task})
				return err
			},
			"Apply": func(ctx context.Context) error { _, err := waitForStop.Apply(ctx, p, task); return err },
			"Imap": func(ctx context.Context) (err error) {
				for _, err = range waitForStop.Imap(ctx, p, slices.Values([]patient{task, task})) {
				}
				return err
			},
		} {
			ctx, cancel := context.WithCancel(testutil.Context(t))
			returned := make(chan error, 1)
			go func() { returned <- call(ctx) }()
			pid := testutil.Value(began.Get(testutil.Context(t)))(t)
			cancel()
			if err := <-returned; !errors.Is(err, context.Canceled) {
				t.Errorf("%s returned %v", name, err)
			}
			testutil.Value(ended.Get(testutil.Context(t)))(t)
			if now := testutil.Value(processID.Apply(testutil.Context(t), p, 0))(t); now != pid {
				t.Errorf("%s: worker %d became %d", name, pid, now)
			}
			for began.Len() > 0 { // the worker had been given another one already
				testutil.Value(began.TryGet())(t)
				testutil.Value(ended.Get(testutil.Context(t)))(t)
			}
		}
	})
}

// The values of a chunk that its worker has not begun are not begun when nobody waits any more,
// although the function of the one before has returned no error.
func TestMap_BeginsNoMoreOfAChunkThatNobodyWaitsFor(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 1, ChunkSize: 3, Process: shoal.Options{Start: m}})
		began, err := ipc.NewQueue[int](4)
		testutil.NoError(t, err)
		defer began.Close()
		ended, err := ipc.NewQueue[bool](4)
		testutil.NoError(t, err)
		defer ended.Close()
		task := patient{began.Sender(), ended.Sender()}
		ctx, cancel := context.WithCancel(testutil.Context(t))
		go func() {
			began.Get(testutil.Context(t))
			cancel()
		}()
		if _, err := waitForStop.Map(ctx, p, []patient{task, task, task}); !errors.Is(err, context.Canceled) {
			t.Errorf("Map returned %v", err)
		}
		testutil.Value(ended.Get(testutil.Context(t)))(t)
		testutil.Value(processID.Apply(testutil.Context(t), p, 0))(t)
		if n := began.Len(); n != 0 {
			t.Errorf("%d more were begun", n)
		}
	})
}
