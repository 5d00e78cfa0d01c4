package pool_test

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
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

func TestImapYieldsInOrderAndDrawsNoMoreThanItsWindow(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		for _, chunk := range []int{1, 3, 100} {
			const window = 8
			p := open(t, pool.Options{Workers: 2, Start: m, ChunkSize: chunk, Window: window})
			drawn, taken := 0, 0
			for v, err := range square.Imap(deadline(t), p, counted(&drawn, 100)) {
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

func TestImapOfAnEndlessInputCanBeLeft(t *testing.T) {
	p := open(t, pool.Options{Workers: 2, Window: 10})
	drawn := 0
	for v, err := range square.Imap(deadline(t), p, counted(&drawn, -1)) {
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

func TestImapGoesOnAfterAFailure(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Start: m})
		i := 0
		for v, err := range oddOnly.Imap(deadline(t), p, slices.Values(upTo(50))) {
			te, failed := errors.AsType[*pool.TaskError](err)
			if odd := i%2 == 1; failed == odd || odd && v != i || failed && (te.Index != i || !errors.Is(err, fs.ErrInvalid)) {
				t.Errorf("value %d: %v, %v", i, v, err)
			}
			i++
		}
		if i != 50 {
			t.Errorf("%d results", i)
		}
	})
}

// Behind the one that waits, its worker has been given some of the others: they must not wait for it.
func TestUnorderedResultsDoNotWaitForASlowOne(t *testing.T) {
	everyStart(t, func(t *testing.T, m shoal.StartMethod) {
		p := open(t, pool.Options{Workers: 2, Start: m, Window: 1000})
		get[[]bool](t)(maybeGated.Map(deadline(t), p, make([]string, 500))) // they are seen to be quick
		dir := t.TempDir()
		input := make([]string, 500)
		input[100] = dir
		n := 0
		for slow, err := range maybeGated.ImapUnordered(deadline(t), p, slices.Values(input)) {
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

func TestImapEndsWithItsContextAndItsPool(t *testing.T) {
	p := open(t, pool.Options{Workers: 1})
	ctx, cancel := context.WithCancel(deadline(t))
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
	ends(deadline(t), pool.ErrClosed)
}
