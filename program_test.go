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
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
)

// programKey names the program that this binary is to be, instead of the tests.
const programKey = "SHOAL_TEST_PROGRAM"

// programs never return.
var programs = map[string]func(){
	"ok": func() { shoal.Main(func(context.Context) error { return nil }) },
	"fail": func() {
		shoal.Main(func(ctx context.Context) error { return fails.Spawn(ctx, 1, "panic") })
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
	"leaky tests": func() { shoal.TestMain(leakyTests{}) },
	"clean tests": func() { shoal.TestMain(cleanTests{}) },
}

type leakyTests struct{}

func (leakyTests) Run() int {
	obey.Go(shoal.NewGroup(context.Background(), shoal.Options{}), true)
	return 0
}

type cleanTests struct{}

func (cleanTests) Run() int {
	if err := hello.Spawn(context.Background(), 1, "x"); err != nil {
		return 1
	}
	return 5
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
	cmd := exec.CommandContext(deadline(t), file)
	cmd.Env = append(append(os.Environ(), programKey+"="+name), env...)
	return cmd
}

// statusOf waits for a program and returns its exit status and output.
func statusOf(t *testing.T, name string) (int, string) {
	t.Helper()
	out, err := program(t, name).CombinedOutput()
	if err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			t.Fatal(err)
		}
		return err.(*exec.ExitError).ExitCode(), string(out)
	}
	return 0, string(out)
}

func TestExitStatusOfMain(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "ok"); status != 0 || out != "" {
		t.Errorf("success: status %d, output %q", status, out)
	}
	status, out := statusOf(t, "fail")
	if status != 1 || !strings.Contains(out, "shoal: fails rank 0 (pid ") || !strings.Contains(out, "shoal_test.deepest(") {
		t.Errorf("failure: status %d, output %q", status, out)
	}
}

func TestSpawnBeforeMainIsRefused(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "no main"); status != 0 || !strings.HasPrefix(out, "true ") {
		t.Errorf("status %d, output %q", status, out)
	}
}

func TestTestMainFailsARunThatLeavesAProcess(t *testing.T) {
	t.Parallel()
	if status, out := statusOf(t, "leaky tests"); status != 99 || !strings.Contains(out, "obey rank 0") || !strings.Contains(out, "program_test.go") {
		t.Errorf("status %d, output %q", status, out)
	}
	if status, out := statusOf(t, "clean tests"); status != 5 {
		t.Errorf("status %d, output %q", status, out)
	}
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

func TestFirstSignalStopsEverythingOnce(t *testing.T) {
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
		if n := strings.Count(errs.String(), "\n"); n != 1 || !strings.Contains(errs.String(), sig.String()) {
			t.Errorf("%v: %d lines of report: %q", sig, n, errs.String())
		}
		untilGone(t, pids...)
	}
}

func TestMainEndsWhatRunHasForgotten(t *testing.T) {
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

func TestDeletedBinaryStillSpawns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "program")
	image, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// By another program: a file that this one has open for writing while it starts others cannot be run.
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

func TestMarkThatIsNotOursIsRefused(t *testing.T) {
	t.Parallel()
	for _, mark := range []string{"1", "1 1 1 1", "x"} {
		out, err := program(t, "ok", "SHOAL_WORKER="+mark).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "unset it") {
			t.Errorf("%q: %v, %q", mark, err, out)
		}
	}
}

func TestOneReportOfASignalThatAWorkerDiedOf(t *testing.T) {
	died := fmt.Errorf("train: %w", &shoal.ProcessError{Func: "obey", PID: 1, Err: shoal.ErrExited, Signal: os.Interrupt})
	if err := shoal.Unsaid(os.Interrupt, died); err != nil {
		t.Errorf("a second report: %v", err)
	}
	if err := shoal.Unsaid(syscall.SIGTERM, died); err == nil {
		t.Error("a signal that no worker died of is not reported")
	}
}
