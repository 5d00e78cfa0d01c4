package shoal_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/kernel"
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

func TestBudgetIsDividedAndDividedAgain(t *testing.T) {
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
		g := shoal.NewGroup(deadline(t), c.opts)
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

func TestOptionsEnvReplaces(t *testing.T) {
	t.Parallel()
	for key, value := range map[string]string{"PATH": "/none", "OMP_NUM_THREADS": "9", "NEW": "a=b"} {
		var out strings.Builder
		g := shoal.NewGroup(deadline(t), shoal.Options{Stdout: &out, Env: []string{key + "=x", key + "=" + value}})
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

func TestSetThreadsIsForTheProcessAndThoseBelow(t *testing.T) {
	t.Parallel()
	var out, warning strings.Builder
	g := shoal.NewGroup(deadline(t), shoal.Options{Threads: 2, Stdout: &out, Stderr: &warning})
	resized.Go(g, 3)
	if err := g.Wait(); err != nil || out.String() != "3 3 3\n3\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
	if !strings.Contains(warning.String(), "WARN shoal: SetThreads exceeds the share of this process threads=3 share=2") {
		t.Errorf("no warning in %q", warning.String())
	}
	defer func() {
		if recover() == nil {
			t.Error("no thread at all is accepted")
		}
	}()
	shoal.SetThreads(0)
}

func init() {
	programs["crowd"] = func() {
		shoal.Main(func(ctx context.Context) error {
			g := shoal.NewGroup(ctx, shoal.Options{Threads: shoal.Threads() + 1})
			for range 2 {
				nothing.Go(g, struct{}{})
			}
			return g.Wait()
		})
	}
	programs["many"] = func() {
		shoal.Main(func(ctx context.Context) error {
			g := shoal.NewGroup(ctx, shoal.Options{})
			for range shoal.Threads() + 2 {
				obey.Go(g, false)
			}
			return g.Close()
		})
	}
}

func TestTooManyThreadsAreSaidOnce(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"crowd": "WARN shoal: the workers' threads exceed the CPUs", "many": "WARN shoal: more workers than CPUs", "ok": "",
	} {
		status, out := statusOf(t, program)
		if n := strings.Count(out, "WARN"); status != 0 || !strings.Contains(out, want) || n != min(len(want), 1) {
			t.Errorf("%s: status %d, output %q", program, status, out)
		}
	}
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

func init() {
	programs["spinning crowd"] = func() {
		*shoal.CrowdPeriod = 100 * time.Millisecond
		shoal.Main(func(ctx context.Context) error {
			g := shoal.NewGroup(ctx, shoal.Options{Threads: 2 * shoal.Threads()})
			for range 2 {
				spin.Go(g, struct{}{})
			}
			return g.Wait()
		})
	}
}

func TestCrowdThatHurtsIsSaid(t *testing.T) {
	t.Parallel()
	cmd := program(t, "spinning crowd")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := false
	for lines := bufio.NewScanner(errs); !said && lines.Scan(); {
		said = strings.Contains(lines.Text(), "get in each other's way") && strings.Contains(lines.Text(), "share=")
	}
	if !said {
		t.Error("it was not said")
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
}

func TestSwitchesAreCountedOfThoseWhoStay(t *testing.T) {
	before, now := map[int]int64{1: 10, 2: 100, 3: 5}, map[int]int64{1: 1010, 3: 5, 4: 1 << 40}
	if got := shoal.SwitchesPerSecond(before, now, 2*time.Second); got != 500 {
		t.Errorf("%v switches a second, want 500", got)
	}
}
