package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// everyStart runs a test once for each start method.
func everyStart(t *testing.T, test func(t *testing.T, opts shoal.Options)) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			test(t, shoal.Options{Start: m, Grace: watchdog})
		})
	}
}

type answering struct {
	Numbers []int
	Out     *ipc.Sender[int]
}

var answer = shoal.Register("answer", func(ctx context.Context, rank int, a answering) error {
	a.Numbers[0] += rank // its own copy
	return a.Out.Put(ctx, a.Numbers[0])
})

func TestStartMethod_EachRunsTheSameFunction(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		q, err := ipc.NewQueue[int](3)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		arg := answering{[]int{10}, q.Sender()}
		g, err := answer.Start(testutil.Context(t), 3, arg, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		q.Sender().Close() // those of the workers went with them, so the loop ends
		var got []int
		for n, err := range q.All(testutil.Context(t)) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		if slices.Sort(got); !slices.Equal(got, []int{10, 11, 12}) || arg.Numbers[0] != 10 {
			t.Errorf("answers %v, argument %v", got, arg.Numbers)
		}
	})
}

func TestStartMethod_EachReportsFailures(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		fail := func(how string) *shoal.ProcessError {
			g := shoal.NewGroup(testutil.Context(t), opts)
			p := fails.Go(g, how)
			pe, _ := errors.AsType[*shoal.ProcessError](g.Wait())
			if pe == nil {
				t.Fatalf("%s: no error", how)
			}
			if code, ended := p.ExitCode(); !ended || code != pe.ExitCode || code == 0 || p.Alive() {
				t.Errorf("%s: exit code %d, %v", how, code, ended)
			}
			return pe
		}
		if pe := fail("error"); !errors.Is(pe, fs.ErrNotExist) || pe.Func != "fails" || pe.PID == 0 {
			t.Errorf("%+v", pe)
		}
		pe := fail("panic")
		if !errors.Is(pe, shoal.ErrPanic) || !strings.HasPrefix(pe.Stack, "github.com/shoal-mp/shoal_test.deepest(") {
			t.Errorf("%+v", pe)
		}
		if pe := fail("goexit"); !errors.Is(pe, shoal.ErrPanic) || !strings.Contains(pe.Error(), "Goexit") {
			t.Errorf("%+v", pe)
		}
	})
}

func TestStartMethod_EachReportsAnArgumentThatCannotBeRead(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		g := shoal.NewGroup(testutil.Context(t), opts)
		takesBad.Go(g, badArgument{"x"})
		if err := g.Wait(); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("got %v", err)
		}
	})
}

func TestStartMethod_EachCancels(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		g := shoal.NewGroup(testutil.Context(t), opts)
		waiting := obey.Go(g, false)
		fails.Go(g, "error")
		if err := g.Wait(); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "obey") {
			t.Errorf("got %v, want the one failure", err)
		}
		if err := waiting.Wait(testutil.Context(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("the other one ended with %v", err)
		}
	})
}

func TestProcess_InterruptIsNoFailure(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		g := shoal.NewGroup(testutil.Context(t), opts)
		one, other := obey.Go(g, false), obey.Go(g, false)
		if !slices.Contains(shoal.ActiveChildren(), one) {
			t.Error("a process that runs is not among the active children")
		}
		if err := one.Interrupt(); err != nil {
			t.Error(err)
		}
		<-one.Done()
		if err := one.Wait(testutil.Context(t)); !errors.Is(err, context.Canceled) {
			t.Errorf("the interrupted one ended with %v", err)
		}
		if !other.Alive() {
			t.Error("the other one has ended, too")
		}
		if _, ended := other.ExitCode(); ended {
			t.Error("a process that runs has an exit code")
		}
		other.Interrupt()
		if err := g.Wait(); err != nil {
			t.Errorf("the group says %v", err)
		}
		if err := one.Interrupt(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("interrupting the dead: %v", err)
		}
	})
}

func TestProcess_TerminateAndKillHaveNegativeExitCodes(t *testing.T) {
	t.Parallel()
	for want, end := range map[int]func(*shoal.Process) error{
		-int(syscall.SIGTERM): (*shoal.Process).Terminate,
		-int(syscall.SIGKILL): (*shoal.Process).Kill,
	} {
		g := shoal.NewGroup(testutil.Context(t), shoal.Options{Restart: shoal.Restart{Max: 3}})
		p := obey.Go(g, false)
		if err := end(p); err != nil {
			t.Error(err)
		}
		<-p.Done()
		if code, _ := p.ExitCode(); code != want || p.Restarts() != 0 || p.Name() != "obey" {
			t.Errorf("exit code %d after %d restarts, want %d", code, p.Restarts(), want)
		}
		if err := g.Wait(); err != nil {
			t.Errorf("the end that was asked for is a failure: %v", err)
		}
	}
}

// hang blocks until there is something to read, whatever its context says.
var (
	hang    = shoal.Register("hang", func(context.Context, int, struct{}) error { <-hanging; return nil })
	hanging = make(chan struct{})
)

func TestStartMethod_GoroutineThatDoesNotStopIsLeftAlone(t *testing.T) {
	opts := shoal.Options{Start: shoal.GoroutineStart, Grace: 10 * time.Millisecond}
	g := shoal.NewGroup(testutil.Context(t), opts)
	p := hang.Go(g, struct{}{})
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a signal to a goroutine: %v", err)
	}
	if err := g.Close(); !errors.Is(err, shoal.ErrAbandoned) || !strings.Contains(err.Error(), "did not stop") {
		t.Errorf("got %v", err)
	}
	g = shoal.NewGroup(testutil.Context(t), opts)
	p = hang.Go(g, struct{}{})
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	if err := p.Wait(testutil.Context(t)); !errors.Is(err, shoal.ErrAbandoned) || g.Wait() != nil {
		t.Errorf("got %v", err)
	}
	for range 2 {
		hanging <- struct{}{} // they are there still
	}
}

func TestGroup_JoinEndsWithItsContext(t *testing.T) {
	t.Parallel()
	g, err := obey.Start(testutil.Context(t), 2, false, shoal.Options{Grace: watchdog})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if ended, err := g.Join(over); ended || err != nil {
			t.Errorf("join of processes that run: %v, %v", ended, err)
		}
	}
	if ps := g.Processes(); len(ps) != 2 || !alive(ps[0].PID()) || !alive(ps[1].PID()) || ps[1].Rank() != 1 {
		t.Errorf("processes %v", ps)
	}
	fails.Go(g, "error")
	if ended, err := g.Join(testutil.Context(t)); !ended || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("join after a failure: %v, %v", ended, err)
	}
	g, err = hello.Start(testutil.Context(t), 2, "x", shoal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := g.Join(testutil.Context(t)); !ended || err != nil {
		t.Errorf("join after success: %v, %v", ended, err)
	}
	if _, err := hello.Start(testutil.Context(t), 0, "x", shoal.Options{}); err == nil {
		t.Error("no processes are no error")
	}
}

// flaky fails in its first lives; each leaves a file.
var flaky = shoal.Register("flaky", func(_ context.Context, rank int, dir string) error {
	lives, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(len(lives))), nil, 0o600); err != nil {
		return err
	}
	if rank != 7 {
		return fmt.Errorf("rank %d", rank)
	}
	if len(lives) < 2 {
		return errors.New("not yet")
	}
	return nil
})

func TestRestart_OnFailure(t *testing.T) {
	everyStart(t, func(t *testing.T, opts shoal.Options) {
		opts.FirstRank = 7
		opts.Restart = shoal.Restart{Max: 1, Backoff: time.Millisecond}
		g := shoal.NewGroup(testutil.Context(t), opts)
		p := flaky.Go(g, t.TempDir())
		if err := g.Wait(); err == nil || !strings.Contains(err.Error(), "not yet") || p.Restarts() != 1 {
			t.Errorf("one restart: %v after %d", err, p.Restarts())
		}
		opts.Restart.Max = -1
		g = shoal.NewGroup(testutil.Context(t), opts)
		p = flaky.Go(g, t.TempDir())
		if err := g.Wait(); err != nil || p.Restarts() != 2 {
			t.Errorf("any number: %v after %d", err, p.Restarts())
		}
	})
}

// A process that fails at once waits longer each time, and one that has run for a while does not
// pay for the failures before.
func TestRestart_PausesDouble(t *testing.T) {
	r := shoal.Restart{Backoff: 100, MaxBackoff: 700}
	row, got := 0, []time.Duration(nil)
	for _, execution := range []time.Duration{0, 699, 0, 0, 0, 700, 1, 1e9, 0} {
		row = shoal.RestartRow(r, row, execution)
		got = append(got, shoal.RestartPause(r, row))
	}
	if want := []time.Duration{100, 200, 400, 700, 700, 100, 200, 100, 200}; !slices.Equal(got, want) {
		t.Errorf("pauses %v, want %v", got, want)
	}
}

func TestRestart_NotOfACancelledGroup(t *testing.T) {
	t.Parallel()
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Restart: shoal.Restart{Max: -1, Backoff: watchdog * 2,
		MaxBackoff: watchdog * 2}})
	p := fails.Go(g, "error") // and now it waits for longer than the test may take
	if err := g.Close(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if p.Alive() || p.Restarts() != 0 {
		t.Errorf("it was restarted %d times", p.Restarts())
	}
}

// attributes prints what a worker can be given.
var attributes = shoal.Register("attributes", func(context.Context, int, struct{}) error {
	dir, err := os.Getwd()
	status, err2 := os.ReadFile("/proc/thread-self/status")
	stat, err3 := os.ReadFile("/proc/thread-self/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			fmt.Printf("%s|%s|%s|%v|%v\n", dir, strings.TrimSpace(list), strings.Fields(rest)[16],
				shoal.Current().Name, shoal.Current().PID == os.Getpid())
		}
	}
	parent := shoal.Current().Parent
	if parent == nil || parent.PID != os.Getppid() || parent.Name != "main" || parent.Parent != nil {
		return fmt.Errorf("the parent is %v", parent)
	}
	return errors.Join(err, err2, err3)
})

func TestOptions_WorkerGetsItsAttributes(t *testing.T) {
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart} {
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			image, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			dir := t.TempDir()
			g := shoal.NewGroup(testutil.Context(t), shoal.Options{
				Start: m, Executable: image, WorkDir: dir, Nice: 7, CPUs: [][]int{{firstCPU(t)}}, Stdout: &out,
			})
			attributes.Go(g, struct{}{})
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintf("%s|%d|7|attributes|true\n", dir, firstCPU(t)); out.String() != want {
				t.Errorf("got %q, want %q", out.String(), want)
			}
		})
	}
	if me := shoal.Current(); me.Parent != nil || me.Name != "main" {
		t.Error("the first process has a parent")
	}
	if n := shoal.CPUCount(); n < 1 || n < runtime.NumCPU() {
		t.Errorf("%d processors", n)
	}
}

// confinement prints the processors of a rank.
var confinement = shoal.Register("confinement", func(_ context.Context, rank int, _ struct{}) error {
	_, err := fmt.Printf("%d %s\n", rank, allowedThreads())
	return err
})

func TestOptions_CPUsAreDealtToWorkers(t *testing.T) {
	t.Parallel()
	all := allowedThreads()
	var every []int
	for part := range strings.SplitSeq(all, ",") {
		var low, high int
		if n, _ := fmt.Sscanf(part, "%d-%d", &low, &high); n < 2 {
			high = low
		}
		for ; low <= high; low++ {
			every = append(every, low)
		}
	}
	var out strings.Builder
	g, err := confinement.Start(testutil.Context(t), 4, struct{}{},
		shoal.Options{CPUs: [][]int{every[:1], every}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(got)
	one := fmt.Sprint(every[0])
	if want := []string{"0 " + one, "1 " + all, "2 " + one, "3 " + all}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// allowedThreads returns the processors that this process may use, as the kernel lists them.
func allowedThreads() string {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err.Error()
	}
	_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
	list, _, _ := strings.Cut(rest, "\n")
	return list
}

// firstCPU returns the number of a processor that this process may use.
func firstCPU(t *testing.T) (n int) {
	if _, err := fmt.Sscanf(allowedThreads(), "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOptions_AreChecked(t *testing.T) {
	t.Parallel()
	says := map[string]string{ // what to change
		"directory": "working directory: stat /does/not/exist",
		"stranger":  "exit status 0 before the function started: check that the executable is a build of this program",
	}
	for name, opts := range map[string]shoal.Options{
		"start method": {Start: 17},
		"files":        {Start: shoal.WarmStart, Output: shoal.Files, Dir: t.TempDir()},
		"nice":         {Nice: 20},
		"executable":   {Executable: "/does/not/exist"},
		"directory":    {WorkDir: "/does/not/exist"},
		"processors":   {CPUs: [][]int{{100_000}}},
		"stranger":     {Executable: "/bin/true"},
		"output":       {Output: 7},
		"environment":  {Env: []string{"OMP_NUM_THREADS"}},
		"workers":      {Workers: -1},
		"threads":      {Threads: -1},
		"first rank":   {FirstRank: -1, CPUs: [][]int{{0}}},
		"grace":        {Grace: -1},
		"orphan grace": {OrphanGrace: -1},
		"back-off":     {Restart: shoal.Restart{Backoff: -1}},
	} {
		g := shoal.NewGroup(testutil.Context(t), opts)
		hello.Go(g, "x")
		err := g.Wait()
		if _, ok := errors.AsType[*shoal.ProcessError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(fmt.Sprint(err), says[name]) {
			t.Errorf("%s: %v does not say %q", name, err, says[name])
		}
	}
	if err := shoal.ReplaceStartMethod(17); !errors.Is(err, shoal.ErrStartMethod) {
		t.Errorf("an unknown start method replaces the start method: %v", err)
	}
	if err := shoal.SetStartMethod(17); !errors.Is(err, shoal.ErrStartMethod) {
		t.Errorf("an unknown start method is set: %v", err)
	}
}

func init() {
	programs["start method"] = func() {
		shoal.Main(func(ctx context.Context) error {
			fmt.Println(shoal.CurrentStartMethod(), shoal.SetStartMethod(shoal.GoroutineStart),
				shoal.CurrentStartMethod())
			if err := shoal.SetStartMethod(shoal.SpawnStart); !errors.Is(err, shoal.ErrStartMethod) {
				return fmt.Errorf("a second call returns %v", err)
			}
			var in bool
			inside = &in
			err := notice.Spawn(ctx, 1, 0)
			fmt.Println(in, shoal.ReplaceStartMethod(shoal.SpawnStart), shoal.CurrentStartMethod())
			return err
		})
	}
}

var (
	inside *bool
	notice = shoal.Register("notice", func(context.Context, int, int) error { *inside = true; return nil })
)

func TestSetStartMethod_IsSetOnce(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "start method"); status != 0 || out != "spawn <nil> goroutine\ntrue <nil> spawn\n" {
		t.Errorf("status %d, output %q", status, out)
	}
}
