package pool_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// diesTwice kills its worker until it has been run for the third time.
var diesTwice = pool.Register("diesTwice", func(_ context.Context, runs *ipc.Value[int64]) (int, error) {
	n, err := runs.Add(1)
	if err == nil && n < 3 {
		signalSelf(syscall.SIGKILL)
	}
	return int(n), err
})

// A lockedBuffer may be written to by several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Each retry is a line of the log, an event and a count.
func TestOptions_RetriesAreReported(t *testing.T) {
	var lines lockedBuffer
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	events := make(chan pool.RetryEvent, 2)
	p := open(t, pool.Options{Workers: 1, Retries: 2, OnRetry: func(e pool.RetryEvent) { events <- e }})
	runs := testutil.Value(ipc.NewValue[int64](0))(t)
	defer runs.Close()
	before := shoal.MemoryStats().Retries
	if n := testutil.Value(diesTwice.Apply(testutil.Context(t), p, runs))(t); n != 3 {
		t.Fatalf("run %d answered, want the third", n)
	}
	seen := map[int]bool{}
	for range 2 {
		e := <-events
		seen[e.Attempt] = true
		if e.Func != "diesTwice" || e.Rank != 0 || e.Index != 0 || !errors.Is(e.Err, shoal.ErrExited) {
			t.Errorf("got event %+v", e)
		}
	}
	if !seen[1] || !seen[2] {
		t.Errorf("got attempts %v, want 1 and 2", seen)
	}
	for _, want := range []string{"func=diesTwice index=0 rank=0 attempt=1 cause=", "attempt=2 cause=",
		`pool: worker died`} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("got log %q, want one with %q", lines.String(), want)
		}
	}
	if got := shoal.MemoryStats().Retries - before; got != 2 {
		t.Errorf("got %d retries in the figures, want 2", got)
	}
}

// OnRetry may close the pool.
func TestOptions_OnRetryMayCloseThePool(t *testing.T) {
	runs := testutil.Value(ipc.NewValue[int64](-1000))(t)
	defer runs.Close()
	closed := make(chan error)
	var once sync.Once
	var p *pool.Pool
	p = open(t, pool.Options{Workers: 1, Retries: 1000,
		OnRetry: func(pool.RetryEvent) { once.Do(func() { closed <- p.Close() }) }})
	r := diesTwice.ApplyAsync(p, runs)
	testutil.NoError(t, <-closed)
	if _, err := r.Get(testutil.Context(t)); err == nil {
		t.Error("got no error of a task of a closed pool")
	}
}

// A pool that has had workers waits for descriptors, and does not break.
func TestPool_GoesOnAfterATransientFailureOfAStart(t *testing.T) {
	var lines lockedBuffer
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	p, ctx := open(t, pool.Options{Workers: 1}), testutil.Context(t)
	testutil.NoError(t, p.Ready(ctx))
	var limit syscall.Rlimit
	testutil.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	lift := sync.OnceFunc(func() { testutil.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
	defer lift()
	testutil.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 3, Max: limit.Max}))
	for _, c := range shoal.ActiveChildren() {
		testutil.NoError(t, syscall.Kill(c.PID(), syscall.SIGKILL))
	}
	testutil.Eventually(t, func() bool { return strings.Contains(lines.String(), "attempt=7") },
		"the pool does not start its worker again")
	lift()
	if n, err := square.Apply(ctx, p, 3); err != nil || n != 9 {
		t.Errorf("got %d, %v, want 9", n, err)
	}
	if !strings.Contains(lines.String(), "too many open files") {
		t.Errorf("got log %q, want one that names EMFILE", lines.String())
	}
}
