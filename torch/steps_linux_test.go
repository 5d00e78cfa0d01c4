package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// An ending is a function of steps.py, and an event at a step of its hand-over.
type ending struct {
	Path   string        // path of Python
	Target string        // function in steps.py
	Whom   string        // python and go are killed, and stop stops Go
	At     int           // step, from 1; 0 for none
	Dir    string        // for temporary files, and for the notes
	Linger time.Duration // of Python
	Since  time.Time     // what is older is another's, of a process that had the same number
}

func (e ending) note() string { return filepath.Join(e.Dir, "note") }

func (e ending) spawn(ctx context.Context) (*Process, error) {
	py := Python{Path: e.Path, Dir: "testdata", Env: append(pythonEnv(), "TMPDIR="+e.Dir), Stderr: io.Discard,
		Linger: e.Linger}
	return py.Spawn(ctx, "steps:"+e.Target, e.Whom, e.At, e.note())
}

// noted returns the process that has ended, and the number of steps that it came to.
func (e ending) noted(t *testing.T) (pid, steps int) {
	t.Helper()
	if _, err := fmt.Sscanf(string(testutil.Value(os.ReadFile(e.note()))(t)), "%d %d", &pid, &steps); err != nil {
		t.Fatal(err)
	}
	return pid, steps
}

// clean wants no file of Python's, nor of multiprocessing's, to be left.
func (e ending) clean(t *testing.T, pid int) {
	t.Helper()
	left := func() (all []string) {
		if e.Whom == "go" {
			sweepTempDirs(e.Dir) // the next program of Shoal's does this
		}
		names := slices.DeleteFunc(testutil.Value(filepath.Glob(fmt.Sprintf("%s/torch_%d_*", shmDir, pid)))(t),
			e.isOlder)
		files := testutil.Value(filepath.Glob(e.Dir + "/*"))(t)
		for _, f := range files {
			if f != e.note() {
				names = append(names, f)
			}
		}
		return names
	}
	defer func() {
		if t.Failed() {
			t.Logf("%s at step %d leaves %v", e.Whom, e.At, left())
		}
	}()
	testutil.Eventually(t, func() bool { return len(left()) == 0 },
		"waited in vain for what the process has left to go")
}

// isOlder reports whether a file was made before the ending began.
func (e ending) isOlder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.ModTime().Before(e.Since)
}

// An outcome is the result of an ending.
type outcome struct {
	Came, Gone int
	Wrong      []string
	Ended      string // the error of Wait, in words
	Killed     bool
	Lost       bool // the process has said so
}

// receive waits for p and receives its messages. They come through a connection that is sent first,
// unless the case is that of descriptors that go ahead.
func (e ending) receive(ctx context.Context, p *Process) (o outcome) {
	err := p.Wait(ctx)
	var failed *ProcessError
	if errors.As(err, &failed) {
		o.Killed = failed.Signal == syscall.SIGKILL
		o.Lost = failed.Exception == "RuntimeError" &&
			strings.Contains(failed.Message, "lost at process exit")
	}
	o.Ended = fmt.Sprint(err)
	from := p.Conn
	if !strings.HasSuffix(e.Target, "_ahead") {
		if from, err = As[*Conn](p.Conn.Recv(ctx)); err != nil {
			o.Wrong = append(o.Wrong, err.Error())
			return o
		}
		defer from.Close()
	}
	for {
		v, err := from.Recv(ctx)
		switch {
		case err == io.EOF || errors.As(err, &failed):
			return o
		case errors.Is(err, ErrGone):
			o.Gone++
		case err != nil:
			o.Wrong = append(o.Wrong, err.Error())
			return o
		default:
			if err := o.check(ctx, v); err != nil {
				o.Wrong = append(o.Wrong, err.Error())
			}
			CloseAll(v)
		}
	}
}

// check checks a value that came, which has a number.
func (o *outcome) check(ctx context.Context, v any) error {
	want := int64(o.Came % 3)
	o.Came++
	switch v := v.(type) {
	case *Conn:
		if got, err := v.Recv(ctx); got != want || err != nil {
			return fmt.Errorf("through connection %d came %v, %w", want, got, err)
		}
	case *tensor.Tensor:
		if got := elements(v); got[0] != float64(want) {
			return fmt.Errorf("tensor %d has %v", want, got)
		}
	default:
		return fmt.Errorf("a %T came", v)
	}
	return nil
}

// endings runs test for every n-th step of a function's end, and once for none. The steps are dealt
// out among the Pythons.
func endings(t *testing.T, whom, target string, sent, stride int,
	each func(*testing.T, func(*testing.T, peerPython)), test func(*testing.T, ending)) {
	var mu sync.Mutex
	turn, players := -1, len(plainPythons())
	if strings.HasPrefix(target, "tensors") {
		players = len(torchPythons())
	}
	each(t, func(t *testing.T, py peerPython) {
		mu.Lock()
		turn++
		first := 1 + turn
		mu.Unlock()
		e := ending{Path: py.path, Target: target, Whom: whom, Linger: time.Minute, Since: time.Now().Add(-time.Second)}
		steps := unharmed(t, e, sent)
		for e.At = first; e.At <= steps; e.At += players * stride {
			e.Dir = t.TempDir()
			test(t, e)
			if t.Failed() {
				t.Fatalf("%s killed or stopped at step %d of %d", whom, e.At, steps)
			}
		}
	})
}

// unharmed lets a function end without an event, and counts the steps.
func unharmed(t *testing.T, e ending, sent int) int {
	t.Helper()
	e.Dir = t.TempDir()
	ctx := testContext(t)
	p := testutil.Value(e.spawn(ctx))(t)
	defer p.Close()
	if o := e.receive(ctx, p); o.Ended != "<nil>" || o.Came != sent || o.Gone != 0 || o.Wrong != nil {
		t.Fatalf("nothing has happened, and yet: %+v", o)
	}
	pid, steps := e.noted(t)
	e.clean(t, pid)
	if steps < 10 {
		t.Fatalf("the end has %d steps", steps)
	}
	return steps
}

// TestEstate_PythonKilledWhileItHandsOver kills Python at each line of its end. Each message comes
// whole, or is gone with an error that says so.
func TestEstate_PythonKilledWhileItHandsOver(t *testing.T) {
	endings(t, "python", "connections", 3, 1, eachPython, func(t *testing.T, e ending) { killedAt(t, e, 3) })
}

// TestEstate_PyTorchKilledWhileItHandsOver does the same with tensors, by descriptors and by names,
// at some of the lines.
func TestEstate_PyTorchKilledWhileItHandsOver(t *testing.T) {
	endings(t, "python", "tensors", 6, 25, eachTorch, func(t *testing.T, e ending) { killedAt(t, e, 6) })
}

// killedAt kills Python after it has sent so many values, or while it sends them ahead.
func killedAt(t *testing.T, e ending, sent int) outcome {
	t.Helper()
	if err := Trim(); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	files := openFiles(t)
	p := testutil.Value(e.spawn(ctx))(t)
	defer p.Close()
	o := e.receive(ctx, p)
	all := o.Came+o.Gone == sent || o.Came+o.Gone < sent && strings.HasSuffix(e.Target, "_ahead")
	if !o.Killed || !all || o.Wrong != nil {
		t.Errorf("%+v", o)
	}
	p.Close()
	e.clean(t, p.PID())
	testutil.Eventually(t, func() bool { return openFiles(t) <= files },
		"waited in vain for no more than %d descriptors", files)
	return o
}

// TestAhead_PythonKilledWhileItSends kills Python at each line of its sending. The messages that Go
// has are whole, and no descriptor stays open for the others.
func TestAhead_PythonKilledWhileItSends(t *testing.T) {
	endings(t, "python", "connections_ahead", 3, 1, eachPython, func(t *testing.T, e ending) {
		if o := killedAt(t, e, 3); o.Gone > 0 {
			t.Errorf("what went ahead is gone: %+v", o)
		}
	})
}

// TestAhead_PyTorchKilledWhileItSends does the same with tensors, at some of the lines.
func TestAhead_PyTorchKilledWhileItSends(t *testing.T) {
	endings(t, "python", "tensors_ahead", 6, 5, eachTorch, func(t *testing.T, e ending) { killedAt(t, e, 6) })
}

// TestEstate_Heir is the Go process of the tests that kill or stop Go.
func TestEstate_Heir(t *testing.T) {
	said := os.Getenv("SHOAL_TORCH_HEIR")
	if said == "" {
		t.Skip("only a part of TestEstate_GoKilledWhileItTakesOver")
	}
	var e ending
	if err := json.Unmarshal([]byte(said), &e); err != nil {
		t.Fatal(err)
	}
	ctx := testContext(t)
	p := testutil.Value(e.spawn(ctx))(t)
	defer p.Close()
	b := testutil.Value(json.Marshal(e.receive(ctx, p)))(t)
	p.Close()
	fmt.Printf("outcome %s\n", b)
}

// heir starts TestEstate_Heir. The reader ends when all processes have ended that it has started.
func heir(t *testing.T, e ending) (cmd *exec.Cmd, out *os.File) {
	t.Helper()
	out, theirs := must2(os.Pipe())(t)
	cmd = exec.CommandContext(testContext(t), os.Args[0], "-test.run", "^TestEstate_Heir$")
	cmd.Env = append(os.Environ(), "SHOAL_TORCH_HEIR="+string(testutil.Value(json.Marshal(e))(t)), "SHOAL_INTEROP=")
	cmd.Stdout, cmd.Stderr = theirs, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	out.SetReadDeadline(time.Now().Add(2 * time.Minute))
	t.Cleanup(func() { out.Close() })
	return cmd, out
}

// TestEstate_GoKilledWhileItTakesOver kills Go at each line of the hand-over. Python ends, and
// nothing is left.
func TestEstate_GoKilledWhileItTakesOver(t *testing.T) {
	endings(t, "go", "connections", 3, 1, eachPython, func(t *testing.T, e ending) {
		cmd, out := heir(t, e)
		text, err := io.ReadAll(out)
		if cmd.Wait() == nil || err != nil || strings.Contains(string(text), "outcome") {
			t.Errorf("Go was not killed, or Python has not ended: %v, %s", err, text)
		}
		pid, _ := e.noted(t)
		e.clean(t, pid)
	})
}

// TestEstate_GoStoppedWhileItTakesOver stops Go at lines of the hand-over, and lets it go on. All
// messages come.
func TestEstate_GoStoppedWhileItTakesOver(t *testing.T) {
	endings(t, "stop", "connections", 3, 2, eachPython, func(t *testing.T, e ending) {
		o := stopped(t, e, func(int) {})
		if o.Ended != "<nil>" || o.Came != 3 || o.Gone != 0 || o.Wrong != nil {
			t.Errorf("after Go has gone on: %+v", o)
		}
	})
}

// TestEstate_GoStoppedForTooLong lets Go go on when Python has given up. Wait returns the loss, and
// nobody hangs.
func TestEstate_GoStoppedForTooLong(t *testing.T) {
	endings(t, "stop", "connections", 3, 6, eachPython, func(t *testing.T, e ending) {
		e.Linger = 300 * time.Millisecond
		o := stopped(t, e, func(python int) {
			testutil.Eventually(t, func() bool { return sys.Exiting(python) }, "waited in vain for Python to give up")
		})
		if good := o.Ended == "<nil>" && o.Came == 3; !good && !o.Lost || o.Came+o.Gone != 3 || o.Wrong != nil {
			t.Errorf("after Python has given up: %+v", o)
		}
	})
}

// stopped runs an ending that stops Go, which goes on after the pause.
func stopped(t *testing.T, e ending, pause func(python int)) (o outcome) {
	t.Helper()
	cmd, out := heir(t, e)
	testutil.Eventually(t, func() bool { return state(cmd.Process.Pid) == "T" }, "waited in vain for Go to be stopped")
	pid, _ := e.noted(t)
	pause(pid)
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(out)
	if failed := cmd.Wait(); failed != nil || err != nil {
		t.Fatalf("Go has ended with %v, %v: %s", failed, err, text)
	}
	_, said, _ := strings.Cut(string(text), "outcome ")
	said, _, _ = strings.Cut(said, "\n")
	if err := json.Unmarshal([]byte(said), &o); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	e.clean(t, pid)
	return o
}

// state is the kernel's letter for the state of a process; "" if there is no such process.
func state(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	letter, _, _ := strings.Cut(rest, " ")
	return letter
}
