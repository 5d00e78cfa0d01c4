package shoal_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// programKey names the program that this binary is to be, instead of the tests.
const programKey = "SHOAL_TEST_PROGRAM"

// programs never return.
var programs = map[string]func(){
	"ok": func() { shoal.Main(func(context.Context) error { return nil }) },
	"goexit": func() {
		shoal.Main(func(ctx context.Context) error {
			obey.Go(shoal.NewGroup(ctx, shoal.Options{}), false)
			runtime.Goexit()
			return nil
		})
	},
	"exit": func() {
		shoal.Main(func(ctx context.Context) error {
			if os.Getenv(endKey) == "signal" {
				send(os.Getpid(), syscall.SIGTERM)
				<-ctx.Done()
			}
			return ends[os.Getenv(resultKey)](ctx)
		})
	},
	"shutdown": func() { shoal.Main(shutDown) },
	"panic":    func() { shoal.Main(func(context.Context) error { deepest(); return nil }) },
	"fail": func() {
		shoal.Main(func(ctx context.Context) error { return fails.Spawn(ctx, 1, "panic") })
	},
	"fail, and say where": func() {
		shoal.Main(func(ctx context.Context) error {
			return errors.Join(errors.New("first"), fmt.Errorf("train: %w", fails.Spawn(ctx, 1, "panic")))
		})
	},
	"wait": func() {
		shoal.Main(func(ctx context.Context) error { return obey.Spawn(ctx, 2, true) })
	},
	"stubborn": func() {
		shoal.Main(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	},
	"forgetful": func() {
		shoal.Main(func(ctx context.Context) error {
			obey.Go(shoal.NewGroup(ctx, shoal.Options{}), true)
			_, err := bufio.NewReader(os.Stdin).ReadString('\n')
			return err
		})
	},
	"late": func() {
		shoal.Main(func(ctx context.Context) error {
			if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
				return err
			}
			return hello.Spawn(ctx, 2, "from a deleted file")
		})
	},
	"no main": func() {
		err := hello.Spawn(context.Background(), 1, "x")
		fmt.Println(errors.Is(err, shoal.ErrNoMain), err)
		os.Exit(0)
	},
	"tests that leave a process":     func() { shoaltest.TestMain(tests(leaveProcess)) },
	"tests that leave a memory file": func() { shoaltest.TestMain(tests(leaveMemoryFile)) },
	"tests that leave a block":       func() { shoaltest.TestMain(tests(leaveBlock)) },
	"tests that leave a goroutine": func() {
		shoaltest.TestMain(tests(func() error {
			go stay()
			return nil
		}))
	},
	"tests that leave a descriptor": func() {
		shoaltest.TestMain(tests(func() error {
			_, err := syscall.Open("/dev/full", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
			return err
		}))
	},
	"tests that leave nothing": func() {
		go stay()
		if err := leaveBlock(); err != nil { // it was there before the tests
			panic(err)
		}
		shoaltest.TestMain(tests(func() error {
			b, err := ipc.NewQueue[string](4)
			if err != nil {
				return err
			}
			defer b.Close()
			return errors.Join(b.Put(context.Background(), "in a block"), hello.Spawn(context.Background(), 1, "x"))
		}))
	},
}

// shutDown uses what has goroutines, and wants none left after Shutdown.
func shutDown(ctx context.Context) error {
	before := runtime.NumGoroutine()
	if err := shoal.Warm(ctx, 1, shoal.Options{}); err != nil {
		return err
	}
	for _, m := range []shoal.StartMethod{shoal.SpawnStart, shoal.WarmStart, shoal.GoroutineStart} {
		g, err := hello.Start(ctx, 2, "x", shoal.Options{Start: m})
		if err == nil {
			err = g.Wait()
		}
		if err != nil {
			return err
		}
	}
	forgotten := obey.Go(shoal.NewGroup(ctx, shoal.Options{}), false)
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := q.Get(short); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("got %w of an empty queue", err)
	}
	shoal.Shutdown()
	shoal.Shutdown()
	if forgotten.Alive() || len(shoal.ActiveChildren()) > 0 {
		return errors.New("a process is left")
	}
	if err := hello.Spawn(ctx, 1, "x"); !errors.Is(err, shoal.ErrClosed) || !strings.Contains(err.Error(), "Shutdown") {
		return fmt.Errorf("got %w of a start after Shutdown", err)
	}
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			return fmt.Errorf("got %d goroutines, want %d:\n%s", runtime.NumGoroutine(), before,
				stacks[:runtime.Stack(stacks, true)])
		}
	}
	return nil
}

// tests are the tests of a program. Their status is 5 if they pass.
type tests func() error

func (t tests) Run() int {
	if err := t(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 5
}

// stay never ends.
func stay() { select {} }

func leaveProcess() error {
	obey.Go(shoal.NewGroup(context.Background(), shoal.Options{}), true)
	return nil
}

// leftFile is not closed by the garbage collector.
var leftFile *os.File

func leaveMemoryFile() (err error) {
	leftFile, err = sys.Memfd("left")
	return err
}

func leaveBlock() error {
	d, err := arena.Default()
	if err != nil {
		return err
	}
	_, err = d.Alloc(5000)
	return err
}

var hello = shoal.Register("hello", func(_ context.Context, rank int, text string) error {
	fmt.Println("hello", rank, text)
	return nil
})

// obey waits for its cancellation. It says so on stdout before it does.
var obey = shoal.Register("obey", func(ctx context.Context, _ int, say bool) error {
	if say {
		fmt.Println("waiting", os.Getpid())
	}
	<-ctx.Done()
	return ctx.Err()
})

// program runs this binary as another program.
func program(t *testing.T, name string, env ...string) *exec.Cmd {
	return programFile(t, "/proc/self/exe", name, env...)
}

func programFile(t *testing.T, file, name string, env ...string) *exec.Cmd {
	cmd := exec.CommandContext(testutil.Context(t), file)
	cmd.Env = append(append(os.Environ(), programKey+"="+name), env...)
	return cmd
}

// statusOf waits for a program and returns its exit status and output.
func statusOf(t *testing.T, name string, env ...string) (int, string) {
	t.Helper()
	out, err := program(t, name, env...).CombinedOutput()
	if err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
		return err.(*exec.ExitError).ExitCode(), string(out)
	}
	return 0, string(out)
}

func TestMain_ExitStatus(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "ok"); status != 0 || out != "" {
		t.Errorf("success: status %d, output %q", status, out)
	}
	status, out := statusOf(t, "fail")
	if status != 1 || !strings.Contains(out, "shoal: fails rank 0 (pid ") ||
		!strings.Contains(out, "shoal_test.deepest(") {
		t.Errorf("failure: status %d, output %q", status, out)
	}
}

const (
	endKey    = "SHOAL_TEST_END"    // "signal" for a SIGTERM that the program drains after
	resultKey = "SHOAL_TEST_RESULT" // the result of its function, by its name in ends
)

// chosen is an error that chooses an exit status.
type chosen int

func (c chosen) Error() string { return fmt.Sprintf("chose %d", int(c)) }
func (c chosen) ExitCode() int { return int(c) }

// ends are results of the function of Main.
var ends = map[string]func(ctx context.Context) error{
	"nil":       func(context.Context) error { return nil },
	"cancelled": func(ctx context.Context) error { return fmt.Errorf("work: %w", ctx.Err()) },
	"failed":    func(context.Context) error { return errors.New("disk full") },
	"method":    func(context.Context) error { return fmt.Errorf("wrapped: %w", chosen(7)) },
	"type":      func(context.Context) error { return &shoal.ExitError{Status: 75, Err: errors.New("try later")} },
	"silent":    func(context.Context) error { return &shoal.ExitError{Status: 3} },
	"zero":      func(context.Context) error { return &shoal.ExitError{Err: errors.New("all but one saved")} },
	"no status": func(context.Context) error { return chosen(-1) },
}

// The rule of Main's documentation.
func TestMain_ChoosesTheExitStatus(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]struct {
		plain, signal int
		says          string // on stderr; empty for nothing
	}{
		"nil":       {0, 0, ""},
		"cancelled": {-1, 143, "context canceled"},
		"failed":    {1, 143, "disk full"},
		"method":    {7, 7, "wrapped: chose 7"},
		"type":      {75, 75, "try later"},
		"silent":    {3, 3, ""},
		"zero":      {0, 0, "all but one saved"},
		"no status": {1, 1, "chose -1"},
	} {
		for end, status := range map[string]int{"": want.plain, "signal": want.signal} {
			if status < 0 {
				continue
			}
			got, out := statusOf(t, "exit", endKey+"="+end, resultKey+"="+result)
			if got != status || !strings.Contains(out, want.says) || want.says == "" && out != "" {
				t.Errorf("%s %s: got status %d and output %q, want %d and %q", result, end, got, out, status, want.says)
			}
		}
	}
}

func TestShutdown_LeavesNoGoroutine(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "shutdown"); status != 0 {
		t.Errorf("got status %d and output %s, want 0", status, out)
	}
}

func TestMain_AGoexitIsAnError(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "goexit"); status != 1 ||
		!strings.Contains(out, "runtime.Goexit ended the function") {
		t.Errorf("got status %d and output %q, want 1 and an error that names Goexit", status, out)
	}
}

func TestMain_APanicEndsTheProgramAsInGo(t *testing.T) {
	t.Parallel()
	status, out := statusOf(t, "panic")
	if status != 2 || !strings.HasPrefix(out, "panic: ") || !strings.Contains(out, "shoal_test.deepest(") {
		t.Errorf("got status %d and output %q, want 2 and the stack of the panic", status, out)
	}
}

func TestMain_PrintsAWrappedErrorWithItsStack(t *testing.T) {
	t.Parallel()
	status, out := statusOf(t, "fail, and say where")
	if status != 1 || !regexp.MustCompile(
		`first\ntrain: shoal: fails rank 0 .*\nshoal: fails rank 0 .*\n +stack:\n(?s:.*)shoal_test.deepest\(`).
		MatchString(out) {
		t.Errorf("status %d, output %s", status, out)
	}
}

func TestSpawn_BeforeMainIsRefused(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "no main"); status != 0 || !strings.HasPrefix(out, "true ") {
		t.Errorf("status %d, output %q", status, out)
	}
}

func TestTestMain_FailsARunThatLeavesSomething(t *testing.T) {
	for what, want := range map[string]string{
		"a process": `\tobey rank 0 \(pid \d+\), started at .*program_test.go:\d+\n` +
			`(?s:.*)\t\t.*shoal_test.leaveProcess\n\t\t\t.*program_test.go:\d+\n`,
		"a memory file": `\tdescriptor \d+: /memfd:left \(deleted\)\n` +
			`(?s:.*)\t\t.*shoal_test.leaveMemoryFile\n\t\t\t.*program_test.go:\d+\n`,
		"a block":      `\t1 blocks of shared memory, 1 of them held by this process; .*\n\tblock \d+\.0 \(block\), 8192 bytes, allocated or received by\n(?s:.*)shoal_test.leaveBlock\n.*program_test.go:\d+\n`,
		"a goroutine":  `\tgoroutine \d+ \[select \(no cases\).*\]:\n\s+.*shoal_test.stay\(.*\n\s+.*program_test.go:\d+ (?s:.*)created by (?s:.*)program_test.go:\d+ `,
		"a descriptor": `\tdescriptor \d+: /dev/full\n$`,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			status, out := statusOf(t, "tests that leave "+what, "SHOAL_DEBUG=lifetime")
			if status != 99 || !regexp.MustCompile(`^(?s:.*)shoaltest: the tests leaked:\n`+
				want).MatchString(out) {
				t.Errorf("status %d, output %s", status, out)
			}
		})
	}
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		if status, out := statusOf(t, "tests that leave nothing"); status != 5 || strings.Contains(out, "left") {
			t.Errorf("status %d, output %s", status, out)
		}
	})
}

// start runs a program and returns its stdin and, line by line, its stdout.
func start(t *testing.T, cmd *exec.Cmd) (io.WriteCloser, *bufio.Scanner, *bytes.Buffer) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs := new(bytes.Buffer)
	cmd.Stderr = errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, bufio.NewScanner(out), errs
}

func TestMain_FirstSignalStopsEverythingOnce(t *testing.T) {
	t.Parallel()
	for sig, status := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		cmd := program(t, "wait")
		_, out, errs := start(t, cmd)
		var pids []int
		for len(pids) < 2 && out.Scan() {
			var pid int
			fmt.Sscanf(out.Text(), "waiting %d", &pid)
			pids = append(pids, pid)
			send(pid, os.Interrupt) // as a terminal would: to everybody
		}
		cmd.Process.Signal(sig)
		for out.Scan() {
		}
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%v: status %d, want %d", sig, got, status)
		}
		if n := reports(errs.String()); n != 1 || !strings.Contains(errs.String(), sig.String()) {
			t.Errorf("%v: %d lines of report: %q", sig, n, errs.String())
		}
		untilGone(t, pids...)
	}
}

// reports counts the lines on stderr that are not warnings about the machine.
func reports(stderr string) (n int) {
	for line := range strings.Lines(stderr) {
		if !strings.Contains(line, " WARN ") {
			n++
		}
	}
	return n
}

func TestMain_EndsWhatRunHasForgotten(t *testing.T) {
	t.Parallel()
	cmd := program(t, "forgetful")
	in, out, _ := start(t, cmd)
	if !out.Scan() {
		t.Fatal("the worker says nothing")
	}
	var pid int
	fmt.Sscanf(out.Text(), "waiting %d", &pid)
	fmt.Fprintln(in)
	for out.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if alive(pid) {
		t.Errorf("worker %d has outlived Main", pid)
	}
}

func TestSpawn_WithADeletedBinary(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "program")
	image, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// By another program: a file that this one has open for writing while it starts others cannot
	// be run.
	if out, err := exec.Command("cp", image, file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := programFile(t, file, "late")
	in, out, errs := start(t, cmd)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in)
	n := 0
	for out.Scan() {
		if strings.HasSuffix(out.Text(), "from a deleted file") {
			n++
		}
	}
	if err := cmd.Wait(); err != nil || n != 2 {
		t.Errorf("%d greetings, %v, %s", n, err, errs)
	}
}

func TestMain_RefusesAWorkerEnvironmentThatIsNotOurs(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"1", "2 1 1 1 false", "1 1 1 1", "x"} {
		out, err := program(t, "ok", "SHOAL_WORKER="+mark).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "unset it") {
			t.Errorf("%q: %v, %q", mark, err, out)
		}
	}
}

func TestMain_ReportsASignalOnce(t *testing.T) {
	died := fmt.Errorf("train: %w", &shoal.ProcessError{Func: "obey", PID: 1, Err: shoal.ErrExited,
		Signal: os.Interrupt})
	if err := shoal.Unsaid(os.Interrupt, died); err != nil {
		t.Errorf("a second report: %v", err)
	}
	if err := shoal.Unsaid(syscall.SIGTERM, died); err == nil {
		t.Error("a signal that no worker died of is not reported")
	}
}
