package pool_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// gated waits until there is a file "open" in its directory.
var gated = pool.Register("gated", atGate)

func atGate(ctx context.Context, dir string) (int, error) {
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(dir, "open")); err == nil {
			return -1, nil
		}
		time.Sleep(time.Millisecond) // there is nothing to wait on
	}
	return 0, context.Cause(ctx)
}

// maybeGated waits if it is told a directory.
var maybeGated = pool.Register("maybeGated", func(ctx context.Context, dir string) (bool, error) {
	if dir == "" {
		return false, nil
	}
	for ctx.Err() == nil {
		if _, err := os.Stat(filepath.Join(dir, "open")); err == nil {
			return true, nil
		}
		time.Sleep(time.Millisecond) // there is nothing to wait on
	}
	return false, context.Cause(ctx)
})

func openGate(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestImap_YieldsInOrderAndDrawsNoMoreThanItsWindow(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		for _, chunk := range []int{1, 3, 100} {
			const window = 8
			p := open(t, pool.Options{Workers: 2, ChunkSize: chunk, Window: window, Process: shoal.Options{Start: m}})
			drawn, taken := 0, 0
			for v, err := range square.Imap(testutil.Context(t), p, counted(&drawn, 100)) {
				if drawn-taken > window {
					t.Errorf("%d values are drawn and %d results taken", drawn, taken)
				}
				if err != nil || v != taken*taken {
					t.Fatalf("result %d is %d, %v", taken, v, err)
				}
				taken++
			}
			if taken != 100 || drawn != 100 {
				t.Errorf("%d results of %d values", taken, drawn)
			}
		}
	})
}

// counted yields 0 to n-1, or without end, and counts.
func counted(drawn *int, n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; n < 0 || i < n; i++ {
			*drawn++
			if !yield(i) {
				return
			}
		}
	}
}

func TestImap_OfAnEndlessInputCanBeLeft(t *testing.T) {
	p := open(t, pool.Options{Workers: 2, Window: 10})
	drawn := 0
	for v, err := range square.Imap(testutil.Context(t), p, counted(&drawn, -1)) {
		if err != nil {
			t.Fatal(err)
		}
		if v == 49 {
			break
		}
	}
	if drawn > 18 {
		t.Errorf("%d values are drawn for 8 results and a window of 10", drawn)
	}
}

func TestImap_GoesOnAfterAFailure(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Process: shoal.Options{Start: m}})
		i := 0
		for v, err := range oddOnly.Imap(testutil.Context(t), p, slices.Values(upTo(50))) {
			te, failed := errors.AsType[*pool.TaskError](err)
			if odd := i%2 == 1; failed == odd || odd && v != i ||
				failed && (te.Index != i || !errors.Is(err, fs.ErrInvalid)) {
				t.Errorf("value %d: %v, %v", i, v, err)
			}
			i++
		}
		if i != 50 {
			t.Errorf("%d results", i)
		}
	})
}

// Behind the one that waits, its worker has been given some of the others: they must not wait for
// it.
func TestImapUnordered_DoesNotWaitForASlowOne(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Window: 1000, Process: shoal.Options{Start: m}})
		testutil.Value(maybeGated.Map(testutil.Context(t), p, make([]string, 500)))(t) // they are seen to be quick
		dir := t.TempDir()
		input := make([]string, 500)
		input[100] = dir
		n := 0
		for slow, err := range maybeGated.ImapUnordered(testutil.Context(t), p, slices.Values(input)) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; slow != (n == 500) {
				t.Errorf("result %d is the slow one: %v", n, slow)
			}
			if n == 499 {
				openGate(t, dir)
			}
		}
		if n != 500 {
			t.Errorf("%d results", n)
		}
	})
}

func TestImap_EndsWithItsContextAndItsPool(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	ctx, cancel := context.WithCancel(testutil.Context(t))
	ends := func(ctx context.Context, want error) {
		t.Helper()
		var errs []error
		for _, err := range gated.Imap(ctx, p, slices.Values([]string{t.TempDir(), t.TempDir()})) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], want) {
			t.Errorf("got %v, want %v", errs, want)
		}
	}
	cancel()
	ends(ctx, context.Canceled)
	p.Close()
	ends(testutil.Context(t), pool.ErrClosed)
}

func TestRegression_S3_2_ImapGoesOnAfterATimeout(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		for _, c := range []struct {
			name  string
			start func(*pool.Pool, iter.Seq[string]) *pool.IMap[bool]
		}{{"ordered", maybeGated.ImapAsync}, {"unordered", maybeGated.ImapUnorderedAsync}} {
			p := open(t, pool.Options{Workers: 1, Process: shoal.Options{Start: m}})
			dir := t.TempDir()
			results := c.start(p, slices.Values([]string{dir, "", ""}))
			defer results.Close()
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				if v, err := results.Next(ctx); !errors.Is(err, pool.ErrNotReady) ||
					!errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%s: %v, %v while the first waits", c.name, v, err)
				}
				cancel()
			}
			openGate(t, dir)
			for i := range 3 {
				if slow, err := results.Next(testutil.Context(t)); err != nil || slow != (i == 0) {
					t.Errorf("%s: result %d: %v, %v", c.name, i, slow, err)
				}
			}
			for range 2 {
				if _, err := results.Next(testutil.Context(t)); err != io.EOF {
					t.Errorf("%s: %v behind the last one", c.name, err)
				}
			}
		}
	})
}

// As next(0) in Python: a time that is over takes what is there.
func TestIMap_NextTakesWhatIsThere(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	results := square.ImapAsync(p, slices.Values(upTo(3)))
	defer results.Close()
	testutil.Value(square.Map(testutil.Context(t), p, upTo(1)))(t) // the one worker has done what came before
	over, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for i := range 3 {
		if v, err := results.Next(over); err != nil || v != i*i {
			t.Errorf("result %d: %d, %v", i, v, err)
		}
	}
}

func TestIMap_ThatIsClosedOrWhosePoolEnds(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	drawn := 0
	left := square.ImapAsync(p, counted(&drawn, -1))
	if err := errors.Join(left.Close(), left.Close()); err != nil {
		t.Error(err)
	}
	if _, err := left.Next(testutil.Context(t)); err != io.EOF || drawn != 16 {
		t.Errorf("%v, and %d are drawn", err, drawn)
	}
	ended := gated.ImapAsync(p, slices.Values([]string{t.TempDir(), t.TempDir()}))
	p.Close()
	if _, err := ended.Next(testutil.Context(t)); !errors.Is(err, pool.ErrClosed) {
		t.Errorf("%v of a pool that is closed", err)
	}
	if _, err := ended.Next(testutil.Context(t)); err != io.EOF {
		t.Errorf("%v behind the end", err)
	}
}

// whereRun returns the worker's pid.
var whereRun = pool.Register("whereRun", func(context.Context, int) (int, error) { return os.Getpid(), nil })

var whereRun2 = pool.Register2("whereRun2", func(context.Context, int, int) (int, error) { return os.Getpid(), nil })

// A worker does one chunk, so its processes tell the chunks.
func TestRegression_S3_2_ChunkSizeOfACall(t *testing.T) {
	p := open(t, pool.Options{Workers: 1, ChunkSize: 1, MaxTasksPerWorker: 1})
	six := slices.Values(upTo(6))
	for name, call := range map[string]func(size int) ([]int, error){
		"Map": func(n int) ([]int, error) { return whereRun.ChunkSize(n).Map(testutil.Context(t), p, upTo(6)) },
		"MapAsync": func(n int) ([]int,
			error) {
			return whereRun.ChunkSize(n).MapAsync(p, upTo(6)).Get(testutil.Context(t))
		},
		"Imap": func(n int) ([]int, error) { return all(whereRun.ChunkSize(n).Imap(testutil.Context(t), p, six)) },
		"ImapUnordered": func(n int) ([]int,
			error) {
			return all(whereRun.ChunkSize(n).ImapUnordered(testutil.Context(t), p, six))
		},
		"ImapAsync": func(n int) ([]int, error) { return each(t, whereRun.ChunkSize(n).ImapAsync(p, six)) },
		"StarMap": func(n int) ([]int, error) {
			return whereRun2.ChunkSize(n).StarMap(testutil.Context(t), p, slices.All(upTo(6)))
		},
		"StarMapAsync": func(n int) ([]int, error) {
			return whereRun2.ChunkSize(n).StarMapAsync(p, slices.All(upTo(6))).Get(testutil.Context(t))
		},
	} {
		for size, want := range map[int]int{4: 2, 99: 1} {
			pids := testutil.Value(call(size))(t)
			slices.Sort(pids)
			if n := len(pids); n != 6 {
				t.Errorf("%s: %d results", name, n)
			}
			if n := len(slices.Compact(pids)); n != want {
				t.Errorf("%s by chunks of %d gave %d chunks of 6 values", name, size, n)
			}
		}
	}
	if pids := testutil.Value(whereRun.Map(testutil.Context(t), p, upTo(2)))(t); pids[0] == pids[1] {
		t.Error("the function itself has chunks now")
	}
	defer func() {
		if recover() == nil {
			t.Error("chunks of 0 values")
		}
	}()
	whereRun.ChunkSize(0)
}

func all(results iter.Seq2[int, error]) (vs []int, err error) {
	for v, err := range results {
		if err != nil {
			return vs, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

func each(t *testing.T, results *pool.IMap[int]) (vs []int, err error) {
	defer results.Close()
	for {
		v, err := results.Next(testutil.Context(t))
		if err == io.EOF {
			return vs, nil
		}
		if err != nil {
			return vs, err
		}
		vs = append(vs, v)
	}
}
