package shoal_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/kernel"
	"github.com/shoal-mp/shoal/test/testutil"
)

// budget prints what this process may use, and then has children do so.
var budget *shoal.Func[int]

func init() {
	budget = shoal.Register("budget", func(ctx context.Context, _ int, children int) error {
		for _, key := range []string{"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOMAXPROCS"} {
			if os.Getenv(key) != strconv.Itoa(shoal.Threads()) {
				return fmt.Errorf("%s is %q, Threads %d", key, os.Getenv(key), shoal.Threads())
			}
		}
		if n := runtime.GOMAXPROCS(0); n != shoal.Threads() {
			return fmt.Errorf("GOMAXPROCS is %d, Threads %d", n, shoal.Threads())
		}
		fmt.Println(shoal.Threads())
		if children > 0 {
			return budget.Spawn(ctx, children, 0)
		}
		return nil
	})
}

func TestThreads_AreDividedAndDividedAgain(t *testing.T) {
	t.Parallel()
	all := shoal.Threads()
	for _, c := range []struct {
		opts shoal.Options
		want []int // of the worker, and of each of its three children
	}{
		{shoal.Options{}, []int{1, 1, 1, 1}},
		{shoal.Options{Workers: 1}, []int{all, max(1, all/3), max(1, all/3), max(1, all/3)}},
		{shoal.Options{Workers: all + 1}, []int{1, 1, 1, 1}},
		{shoal.Options{Threads: 7}, []int{7, 2, 2, 2}},
		{shoal.Options{Threads: 7, Start: shoal.WarmStart}, []int{7, 2, 2, 2}},
	} {
		var out strings.Builder
		c.opts.Stdout = &out
		g := shoal.NewGroup(testutil.Context(t), c.opts)
		budget.Go(g, 3)
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
		var got []int
		for line := range strings.Lines(out.String()) {
			n, _ := strconv.Atoi(strings.TrimSpace(line))
			got = append(got, n)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%+v: got %v, want %v", c.opts, got, c.want)
		}
	}
}

var environment = shoal.Register("environment", func(_ context.Context, _ int, key string) error {
	fmt.Println(os.Getenv(key))
	return nil
})

func TestOptions_EnvReplaces(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{"PATH": "/none", "OMP_NUM_THREADS": "9", "NEW": "a=b"} {
		var out strings.Builder
		g := shoal.NewGroup(testutil.Context(t),
			shoal.Options{Stdout: &out, Env: []string{key + "=x", key + "=" + value}})
		environment.Go(g, key)
		if err := g.Wait(); err != nil || out.String() != value+"\n" {
			t.Errorf("%s is %q, %v", key, out.String(), err)
		}
	}
}

var resized = shoal.Register("resized", func(ctx context.Context, _ int, n int) error {
	shoal.SetThreads(n)
	fmt.Println(shoal.Threads(), runtime.GOMAXPROCS(0), kernel.Threads())
	return budget.Spawn(ctx, 1, 0)
})

func TestSetThreads_IsForTheProcessAndThoseBelow(t *testing.T) {
	t.Parallel()
	var out, warning strings.Builder
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Threads: 2, Stdout: &out, Stderr: &warning})
	resized.Go(g, 3)
	if err := g.Wait(); err != nil || out.String() != "3 3 3\n3\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if !strings.Contains(warning.String(),
		"WARN shoal: SetThreads exceeds the share of this process threads=3 share=2") {
		t.Errorf("no warning in %q", warning.String())
	}
	defer func() {
		if recover() == nil {
			t.Error("no thread at all is accepted")
		}
	}()
	shoal.SetThreads(0)
}

var spin = shoal.Register("spin", func(ctx context.Context, _ int, _ struct{}) error {
	for range shoal.Threads() {
		go func() {
			for ctx.Err() == nil {
			}
		}()
	}
	<-ctx.Done()
	return nil
})

// crowd is a program of so many workers, until it is interrupted or what it waits for is so.
func oversubscription(opts shoal.Options, workers int, f *shoal.Func[struct{}], enough func() bool) func() {
	return func() {
		*shoal.OversubscriptionPeriod = 100 * time.Millisecond
		shoal.Main(func(ctx context.Context) error {
			g := shoal.NewGroup(ctx, opts)
			defer g.Close()
			for range workers {
				f.Go(g, struct{}{})
			}
			for ctx.Err() == nil && !enough() {
				time.Sleep(time.Millisecond) // there is nothing to wait on
			}
			return nil
		})
	}
}

// idle waits, as a server does.
var idle = shoal.Register("idle", func(ctx context.Context, _ int, _ struct{}) error {
	fmt.Println("idle")
	<-ctx.Done()
	return nil
})

// idleServers is a program of many servers, which are watched as soon as they wait.
func idleServers() {
	shoal.SetThreadWarning(false)
	*shoal.OversubscriptionPeriod = 100 * time.Millisecond
	var waiting lineCount
	n := 2*shoal.Threads() + 2
	oversubscription(shoal.Options{Threads: 2 * shoal.Threads(), Stdout: &waiting}, n, idle, func() bool {
		if waiting.Load() == int64(n) {
			shoal.SetThreadWarning(true)
		}
		return shoal.OversubscriptionLooks() > 5
	})()
}

// A lineCount counts the lines that are written to it.
type lineCount struct{ atomic.Int64 }

func (n *lineCount) Write(b []byte) (int, error) {
	n.Add(int64(bytes.Count(b, []byte("\n"))))
	return len(b), nil
}

func init() {
	never := func() bool { return shoal.OversubscriptionLooks() > 300 } // then the test has failed
	twice := shoal.Options{Threads: 2 * shoal.Threads()}
	programs["crowd"] = oversubscription(twice, 2, spin, never)
	programs["many"] = oversubscription(shoal.Options{}, 2*shoal.Threads()+2, spin, never)
	programs["idle crowd"] = idleServers
	programs["crowd that may be"] = func() {
		shoal.SetThreadWarning(false)
		begin := time.Now()
		oversubscription(twice, 2, spin, func() bool { return time.Since(begin) > time.Second })()
	}
}

// saidBy returns the output of a crowded program up to its warning, or all of it if it ends
// without.
func saidBy(t *testing.T, name string) (said []string) {
	t.Helper()
	cmd := program(t, name)
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "preempt each other") {
			break
		}
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	return said
}

func TestThreads_TooManyAreSaidOnce(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"crowd": "WARN shoal: the workers' busy threads exceed the CPUs",
		"many":  "WARN shoal: more busy workers than CPUs",
	} {
		said := saidBy(t, program)
		if len(said) != 2 || !strings.Contains(said[0], want) ||
			!strings.Contains(said[0], "shoal.SetThreadWarning(false)") {
			t.Errorf("%s: %q", program, said)
		}
	}
}

func TestThreads_OversubscriptionThatHurtsIsSaid(t *testing.T) {
	t.Parallel()
	said := saidBy(t, "crowd")
	if len(said) == 0 {
		t.Fatal("the program said nothing")
	}
	if last := said[len(said)-1]; !strings.Contains(last, "preempt each other") ||
		!strings.Contains(last, "share=") {
		t.Errorf("%q", said)
	}
}

// A manager's server, and all that wait for sockets, disturb nobody.
func TestRegression_S2_4_IdleServersDoNotCount(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "idle crowd"); status != 0 || out != "" {
		t.Errorf("status %d, output %q", status, out)
	}
}

func TestRegression_S2_4_TheWarningCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "crowd that may be"); status != 0 || out != "" {
		t.Errorf("status %d, output %q", status, out)
	}
}

func TestThreads_SwitchesOfThoseThatStayAreCounted(t *testing.T) {
	before, now := map[int]int64{1: 10, 2: 100, 3: 5}, map[int]int64{1: 1010, 3: 5, 4: 1 << 40}
	if got := shoal.SwitchesPerSecond(before, now, 2*time.Second); got != 500 {
		t.Errorf("%v switches a second, want 500", got)
	}
}
