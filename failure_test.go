package shoal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/test/testutil"
)

func fs404(what string) error { return fmt.Errorf("%s: %w", what, fs.ErrNotExist) }

// mute is an error that cannot even be asked for its text.
type mute struct{ m map[string]int }

func (e mute) Error() string { e.m["asked"]++; return "" }

// badArgument panics when it is decoded.
type badArgument struct{ S string }

func (b badArgument) MarshalText() ([]byte, error) { return []byte(b.S), nil }
func (b *badArgument) UnmarshalText([]byte) error  { panic("cannot be read") }

// fails ends in the way that it is asked to.
var fails = shoal.Register("fails", func(ctx context.Context, rank int, how string) error {
	if end, ok := ways[how]; ok {
		end(ctx)
	}
	return returned[how]()
})

// returned makes the errors only where they are asked for: package variables are initialised in
// every worker.
var returned = map[string]func() error{
	"error":    func() error { return fs404("open x") },
	"huge":     func() error { return errors.New(strings.Repeat("0123456789", 10<<20)) },
	"mute":     func() error { return mute{} },
	"two":      func() error { return errors.Join(errors.New("first"), errors.New("second")) },
	"deadline": func() error { return context.DeadlineExceeded },
}

func deepest() { panic(fs404("deep down")) }

var noMap map[string]int

var ways = map[string]func(ctx context.Context){
	"panic":   func(context.Context) { deepest() },
	"nil map": func(context.Context) { noMap["x"] = 1 },
	"goexit":  func(context.Context) { runtime.Goexit() },
	"goroutine": func(ctx context.Context) {
		go deepest()
		<-ctx.Done()
	},
	// The runtime throws for this on every run; it detects concurrent map writes only by chance.
	"throw": func(context.Context) { new(sync.Mutex).Unlock() },
	"exit": func(context.Context) {
		fmt.Print("pending output")
		fmt.Fprintln(os.Stderr, "last words")
		os.Exit(7)
	},
	"exit 0": func(context.Context) { os.Exit(0) },
	"kill":   func(context.Context) { send(os.Getpid(), os.Kill); select {} },
	"segv":   func(context.Context) { send(os.Getpid(), syscall.SIGSEGV); select {} },
	"stderr": func(context.Context) {
		for i := range 1000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		os.Exit(1)
	},
}

// fail spawns one process that fails and returns how.
func fail(t *testing.T, how string) *shoal.ProcessError {
	t.Helper()
	var out strings.Builder
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: &out, Stderr: &out})
	p := fails.Go(g, how)
	err := g.Wait()
	pe, ok := errors.AsType[*shoal.ProcessError](err)
	if !ok {
		t.Fatalf("%s: got %v, want a ProcessError", how, err)
	}
	if pe.Func != "fails" || pe.Rank != 0 || pe.PID != p.PID() || pe.PID == 0 {
		t.Errorf("%s: function %q, rank %d, pid %d", how, pe.Func, pe.Rank, pe.PID)
	}
	want := fmt.Sprintf("shoal: fails rank 0 (pid %d): ", pe.PID)
	if s := pe.Error(); !strings.HasPrefix(s, want) || strings.Contains(s, "\n") {
		t.Errorf("%s: message %q does not begin with %q, or is more than a line", how, s, want)
	}
	if err := p.Wait(testutil.Context(t)); err != pe {
		t.Errorf("%s: Process.Wait returns %v", how, err)
	}
	return pe
}

func TestProcessError_KeepsIdentityAndText(t *testing.T) {
	t.Parallel()
	pe := fail(t, "error")
	if !errors.Is(pe, fs.ErrNotExist) || pe.Err.Error() != "open x: file does not exist" || pe.ExitCode != 1 {
		t.Errorf("got %v, exit %d", pe, pe.ExitCode)
	}
	if errors.Is(pe, shoal.ErrPanic) || errors.Is(pe, shoal.ErrExited) || pe.Stack != "" {
		t.Errorf("a returned error looks like a crash: %+v", pe)
	}
	if pe := fail(t, "deadline"); !errors.Is(pe, context.DeadlineExceeded) {
		t.Errorf("got %v", pe)
	}
	if pe := fail(t, "two"); !strings.HasSuffix(pe.Error(), "first; second") {
		t.Errorf("message %q", pe.Error())
	}
}

func TestProcessError_ThatDoesNotEncodeComesBackAsText(t *testing.T) {
	t.Parallel()
	if s := fail(t, "huge").Error(); !strings.Contains(s, "01234567890123456789") {
		t.Errorf("message of %d bytes without the text", len(s))
	}
	if s := fail(t, "mute").Error(); !strings.Contains(s, "mute") {
		t.Errorf("message %q does not name the type", s)
	}
}

func TestProcessError_PanicBringsItsStack(t *testing.T) {
	t.Parallel()
	pe := fail(t, "panic")
	if !errors.Is(pe, shoal.ErrPanic) || !errors.Is(pe, fs.ErrNotExist) ||
		!strings.Contains(pe.Error(), "panic: deep down") {
		t.Errorf("got %v", pe)
	}
	if !strings.HasPrefix(pe.Stack, "github.com/shoal-mp/shoal_test.deepest(") {
		t.Errorf("the stack does not begin in the user's function:\n%s", pe.Stack)
	}
	if s := fmt.Sprintf("%+v", pe); !strings.Contains(s, "failure_test.go") {
		t.Errorf("%%+v shows no file: %s", s)
	}
	if pe := fail(t, "nil map"); !strings.Contains(pe.Stack, "failure_test.go") || !errors.Is(pe, shoal.ErrPanic) {
		t.Errorf("%+v", pe)
	}
	if pe := fail(t, "goexit"); !errors.Is(pe, shoal.ErrPanic) || !strings.Contains(pe.Error(), "Goexit") {
		t.Errorf("%+v", pe)
	}
}

func TestProcessError_PanicInAnotherGoroutineBringsItsStack(t *testing.T) {
	t.Parallel()
	pe := fail(t, "goroutine")
	if !errors.Is(pe, shoal.ErrPanic) || !strings.Contains(pe.Error(), "deep down") || pe.ExitCode != 2 {
		t.Errorf("got %v, exit %d", pe, pe.ExitCode)
	}
	_, frames, _ := strings.Cut(pe.Stack, "\n")
	if !strings.HasPrefix(frames, "github.com/shoal-mp/shoal_test.deepest(") {
		t.Errorf("the stack does not begin in the user's function:\n%s", pe.Stack)
	}
}

func TestProcessError_RuntimeThrowBringsItsReason(t *testing.T) {
	t.Parallel()
	pe := fail(t, "throw")
	if !errors.Is(pe, shoal.ErrPanic) || !strings.Contains(pe.Error(), "unlock of unlocked mutex") {
		t.Errorf("got %v", pe)
	}
}

func TestProcessError_ExitHasItsStatusAndLastWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	g := shoal.NewGroup(testutil.Context(t), shoal.Options{Stdout: &out, Stderr: new(strings.Builder)})
	fails.Go(g, "exit")
	pe, _ := errors.AsType[*shoal.ProcessError](g.Wait())
	if !errors.Is(pe, shoal.ErrExited) || pe.ExitCode != 7 || !strings.Contains(pe.Error(), "exit status 7") {
		t.Errorf("got %v", pe)
	}
	if pe.Stderr != "last words" || out.String() != "pending output\n" {
		t.Errorf("stderr %q, stdout %q", pe.Stderr, out.String())
	}
	if pe := fail(t, "exit 0"); !errors.Is(pe, shoal.ErrExited) ||
		!strings.Contains(pe.Error(), "before the function returned") {
		t.Errorf("got %v", pe)
	}
}

func TestProcessError_NamesTheSignal(t *testing.T) {
	t.Parallel()
	pe := fail(t, "kill")
	if !errors.Is(pe, shoal.ErrExited) || pe.Signal != syscall.SIGKILL || pe.ExitCode != -1 ||
		!strings.Contains(pe.Error(), "signal: killed") {
		t.Errorf("got %v, signal %v, exit %d", pe, pe.Signal, pe.ExitCode)
	}
	if pe := fail(t, "segv"); !strings.Contains(fmt.Sprintf("%+v", pe), "SIGSEGV") && pe.Signal != syscall.SIGSEGV {
		t.Errorf("got %+v", pe)
	}
}

func TestProcessError_KeepsTheLastLinesOfStderr(t *testing.T) {
	t.Parallel()
	lines := strings.Split(fail(t, "stderr").Stderr, "\n")
	if len(lines) != 64 || lines[0] != "line 936" || lines[63] != "line 999" {
		t.Errorf("%d lines, from %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
}

var takesBad = shoal.Register("takesBad", func(context.Context, int, badArgument) error { return nil })

func TestProcessError_PanicWhileDecodingIsReported(t *testing.T) {
	t.Parallel()
	err := takesBad.Spawn(testutil.Context(t), 1, badArgument{"x"})
	if err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("got %v", err)
	}
}

func init() {
	if !shoal.IsWorker() {
		unknown = shoal.Register("unknown", func(context.Context, int, int) error { return nil })
	}
}

var unknown *shoal.Func[int]

func TestRegister_FunctionThatIsNotRegisteredThere(t *testing.T) {
	t.Parallel()
	if err := unknown.Spawn(testutil.Context(t), 1, 0); !errors.Is(err, shoal.ErrNotRegistered) {
		t.Errorf("got %v, want ErrNotRegistered", err)
	}
}
