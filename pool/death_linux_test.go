package pool_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/pool"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A fate is a number to square, and how to die of it.
type fate struct {
	X   int
	How string
	Dir string // those that have died leave a file there, and the next time live
}

var deaths = map[string]func(){
	"SIGKILL": func() { signalSelf(syscall.SIGKILL) },
	"SIGSEGV": func() { signalSelf(syscall.SIGSEGV) },
	"SIGSTOP": func() { signalSelf(syscall.SIGSTOP) },
	"os.Exit": func() { os.Exit(7) },
	"panic":   func() { panic("deep in a task") },
}

// signalSelf does not come back.
func signalSelf(sig syscall.Signal) {
	syscall.Kill(os.Getpid(), sig)
	select {}
}

var mortal = pool.Register("mortal", func(_ context.Context, f fate) (int, error) {
	if f.Dir != "" {
		mark := filepath.Join(f.Dir, strconv.Itoa(f.X))
		if _, err := os.Stat(mark); err == nil {
			f.How = ""
		} else if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return 0, err
		}
	}
	if die := deaths[f.How]; die != nil {
		die()
	}
	return f.X * f.X, nil
})

// taskTimeout is long enough for a task that does nothing on a machine that is busy.
const taskTimeout = 3 * time.Second

// TestDeath_Matrix kills a worker in the middle of a task, in every way, and looks whether that
// task alone fails, with the reason; whether the others are done; and whether the pool is whole
// afterwards. The values are in the input of one Imap, so the queue of the one that dies is not
// empty.
func TestDeath_Matrix(t *testing.T) {
	for _, c := range []struct {
		how  string
		is   []error
		says string
	}{
		{"SIGKILL", []error{shoal.ErrExited}, "signal: killed"},
		{"SIGSEGV", nil, "SIGSEGV"},
		{"SIGSTOP", []error{pool.ErrTimeout, context.DeadlineExceeded}, "TaskTimeout 3s"},
		{"os.Exit", []error{shoal.ErrExited}, "exit status 7"},
		{"panic", []error{shoal.ErrPanic}, "deep in a task"},
	} {
		t.Run(c.how+" inside pool task", func(t *testing.T) {
			t.Parallel()
			const victim, n = 30, 60
			opts := pool.Options{Workers: 2}
			if c.how == "SIGSTOP" {
				opts.TaskTimeout = taskTimeout
			}
			p := open(t, opts)
			input := make([]fate, n)
			for i := range input {
				input[i].X = i
			}
			input[victim].How = c.how
			i, last := 0, time.Now()
			for v, err := range mortal.Imap(testutil.Context(t), p, slices.Values(input)) {
				if i == victim {
					checkDeath(t, err, victim, c.is, c.says)
					t.Logf("%v after the result before it: %v", time.Since(last).Round(time.Microsecond), err)
				} else if err != nil || v != i*i {
					t.Errorf("value %d: %d, %v", i, v, err)
				}
				i++
				last = time.Now()
			}
			if i != n {
				t.Errorf("%d results", i)
			}
			testutil.Value(square.Map(testutil.Context(t), p, upTo(100)))(t)
		})
	}
}

func checkDeath(t *testing.T, err error, index int, is []error, says string) {
	t.Helper()
	te, ok := errors.AsType[*pool.TaskError](err)
	pe, ok2 := errors.AsType[*shoal.ProcessError](err)
	if !ok || !ok2 {
		t.Fatalf("got %v, want a TaskError with a ProcessError", err)
	}
	if te.Index != index || te.Func != "mortal" || pe.PID == 0 || pe.PID == os.Getpid() ||
		!strings.Contains(err.Error()+pe.Stderr, says) {
		t.Errorf("index %d, pid %d: %v", te.Index, pe.PID, err)
	}
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%v is not %v", err, want)
		}
	}
}

func TestPool_GoroutineThatPanicsOrHangsFailsItsTaskAlone(t *testing.T) {
	p := open(t, pool.Options{Workers: 2, TaskTimeout: taskTimeout,
		Process: shoal.Options{Start: shoal.GoroutineStart}})
	if _, err := mortal.Apply(testutil.Context(t), p, fate{How: "panic"}); !errors.Is(err, shoal.ErrPanic) {
		t.Errorf("got %v", err)
	}
	if _, err := gated.Apply(testutil.Context(t), p, t.TempDir()); !errors.Is(err, pool.ErrTimeout) ||
		!errors.Is(err, shoal.ErrAbandoned) {
		t.Errorf("got %v", err)
	}
	testutil.Value(square.Map(testutil.Context(t), p, upTo(100)))(t)
}

func TestOptions_RetriesRunsTasksAgain(t *testing.T) {
	p := open(t, pool.Options{Workers: 2, Retries: 1, ChunkSize: 5})
	input := make([]fate, 20)
	for i := range input {
		input[i] = fate{i, "", t.TempDir()}
	}
	input[7].How, input[13].How = "SIGKILL", "panic"
	if got := testutil.Value(mortal.Map(testutil.Context(t), p, input))(t); !slices.Equal(got, squares(20)) {
		t.Errorf("got %v", got)
	}
	// each time
	if _, err := mortal.Apply(testutil.Context(t), p, fate{How: "os.Exit"}); !errors.Is(err, shoal.ErrExited) {
		t.Errorf("got %v", err)
	}
}

// Killing an idle worker of a pool of Python's makes the next call hang, as often as not.
func TestPool_ReplacesAnIdleWorker(t *testing.T) {
	p := open(t, pool.Options{Workers: 2})
	for range 5 {
		pids := make(map[int]bool)
		for _, w := range testutil.Value(whoRuns.Map(testutil.Context(t), p, upTo(20)))(t) {
			pids[w[0]] = true
		}
		for pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL) // it may be gone already
		}
		// A call may come to a worker before its death is known: then it fails, and does not hang.
		for range 4 {
			if _, err := square.Apply(testutil.Context(t), p, 3); err != nil && !errors.Is(err, shoal.ErrExited) {
				t.Fatal(err)
			}
		}
	}
	testutil.Value(square.Map(testutil.Context(t), p, upTo(100)))(t)
}

// Workers are killed at random, all the time; every value has its result nevertheless.
func TestPool_SurvivesAKillStorm(t *testing.T) {
	p := open(t, pool.Options{Workers: 3, Retries: 1000, ChunkSize: 1})
	var mu sync.Mutex
	pids, killed := make(map[int]bool), 0
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			mu.Lock()
			for pid := range pids {
				if rand.IntN(2) == 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
				delete(pids, pid)
				break
			}
			mu.Unlock()
		}
	})
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return killed >= 10
	}
	for round := 0; round < 30 || !enough(); round++ {
		n := 0
		for w, err := range whoRuns.ImapUnordered(testutil.Context(t), p, slices.Values(upTo(100))) {
			if err != nil {
				t.Fatal(err)
			}
			n++
			mu.Lock()
			pids[w[0]] = true
			mu.Unlock()
		}
		if n != 100 {
			t.Fatalf("%d results of 100 values", n)
		}
	}
	close(stop)
	killer.Wait()
}

// A fragile worker is killed while it starts as long as there is a file "bad" in the directory, and
// notes that in another file.
var fragile = pool.RegisterInit("fragile", func(_ context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "bad")); err != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, "deaths"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	f.WriteString("x")
	signalSelf(syscall.SIGKILL)
	return nil
})

// fragilePool returns a pool of fragile workers that are ready, and what makes its workers die at
// their start and kills the worker of a rank.
func fragilePool(t *testing.T, workers int) (p *pool.Pool, dir string, kill func(rank int)) {
	dir = t.TempDir()
	p = open(t, pool.Options{Workers: workers, Initializer: fragile(dir)})
	if err := p.Ready(testutil.Context(t)); err != nil {
		t.Fatal(err)
	}
	of := map[int]*shoal.Process{}
	for _, c := range shoal.ActiveChildren() {
		of[c.Rank()] = c
	}
	if err := os.WriteFile(filepath.Join(dir, "bad"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return p, dir, func(rank int) { of[rank].Kill() }
}

func TestDeath_OfWorkersThatStartDoesNotEndAPoolOfWhichOneLives(t *testing.T) {
	p, dir, kill := fragilePool(t, 3)
	kill(0)
	kill(1)
	testutil.Eventually(t, func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "deaths"))
		return len(b) > 12
	}, "no workers start any more")
	for range 10 {
		if n, err := square.Apply(testutil.Context(t), p, 3); err != nil || n != 9 {
			t.Fatalf("%d, %v: one worker is well", n, err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "bad")); err != nil {
		t.Fatal(err)
	}
	ranks := map[int]bool{}
	for ctx := testutil.Context(t); len(ranks) < 3; {
		if ctx.Err() != nil {
			t.Fatalf("only ranks %v work again", ranks)
		}
		for _, w := range testutil.Value(whoRuns.Map(ctx, p, upTo(48)))(t) {
			ranks[w[1]] = true
		}
	}
}

// The error of a pool of which nothing is left says why of each rank, and Finish does not wait for
// pauses.
func TestDeath_OfAllWorkersEndsAPoolWithTheReasonOfEach(t *testing.T) {
	p, _, kill := fragilePool(t, 3)
	for r := range 3 {
		kill(r)
	}
	err := p.Join(testutil.Context(t))
	if !errors.Is(err, pool.ErrRunning) {
		t.Fatal(err)
	}
	_, err = square.Apply(testutil.Context(t), p, 3)
	if !errors.Is(err, pool.ErrBroken) || !errors.Is(err, shoal.ErrExited) {
		t.Fatalf("%v", err)
	}
	for _, rank := range []string{"0", "1", "2"} {
		if !strings.Contains(err.Error(), "rank "+rank) {
			t.Errorf("rank %s is not named: %v", rank, err)
		}
	}
}

func TestPool_FinishDoesNotWaitForAWorkerThatCannotStart(t *testing.T) {
	p, _, kill := fragilePool(t, 2)
	kill(0)
	if n, err := square.Apply(testutil.Context(t), p, 3); err != nil || n != 9 {
		t.Fatal(n, err)
	}
	p.Finish()
	if err := p.Join(testutil.Context(t)); err != nil {
		t.Fatal(err)
	}
}

// A hurdle kills the first workers that come to it.
type hurdle struct {
	Dir   string
	Kills int
}

// fallen appends a byte to a file, and returns how many others have.
func (h hurdle) fallen() (int64, error) {
	f, err := os.OpenFile(filepath.Join(h.Dir, "starts"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := f.Write([]byte{0}); err != nil {
		return 0, err
	}
	n, err := f.Seek(0, io.SeekCurrent)
	return n - 1, err
}

var startAt = pool.RegisterInit("startAt", func(_ context.Context, h hurdle) error {
	n, err := h.fallen()
	if err == nil && int(n) < h.Kills {
		signalSelf(syscall.SIGKILL)
	}
	return err
})

// A worker that a signal kills while it starts counts as a retry.
func TestDeath_AtTheStartCountsAsARetry(t *testing.T) {
	const kills = 7
	for _, c := range []struct {
		opts   pool.Options
		broken bool
	}{
		{pool.Options{}, true},
		{pool.Options{StartRetries: kills - 1}, true},
		{pool.Options{StartRetries: kills}, false},
		{pool.Options{Retries: kills}, false},
	} {
		c.opts.Workers, c.opts.Initializer = 1, startAt(hurdle{t.TempDir(), kills})
		p := open(t, c.opts)
		got, err := square.Apply(testutil.Context(t), p, 3)
		if c.broken && (!errors.Is(err, pool.ErrBroken) || !errors.Is(err, shoal.ErrExited)) ||
			!c.broken && (err != nil || got != 9) {
			t.Errorf("StartRetries %d, Retries %d: %d, %v", c.opts.StartRetries, c.opts.Retries, got, err)
		}
	}
}
