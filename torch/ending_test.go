package torch

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func spawnPlain(t *testing.T, py peerPython, target string, args ...any) *Process {
	t.Helper()
	p, err := Python{Path: py.path, Dir: "testdata", Env: pythonEnv(),
		Stderr: io.Discard}.Spawn(testContext(t), target, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestConn_RecvSaysWhyPythonEnded wants the failure of the process, and not only that the
// connection has ended.
func TestConn_RecvSaysWhyPythonEnded(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		for _, c := range []struct {
			target string
			arg    []any
			want   []string // in the error's line; none for io.EOF
		}{
			{"no_such_module:run", nil, []string{"ModuleNotFoundError", "no_such_module"}},
			{"plain:no_such_function", nil, []string{"AttributeError", "no_such_function"}},
			{"plain:hang_up", []any{"os._exit"}, []string{"exit status 7"}},
			{"plain:hang_up", []any{"sys.exit"}, []string{"exit status 7"}},
			{"plain:hang_up", []any{"sys.exit text"}, []string{"exit status 1: no more of this"}},
			{"plain:hang_up", []any{"return"}, nil},
			{"plain:hang_up", []any{"live"}, nil},
			{"plain:hang_up", nil, []string{"TypeError", "missing 1 required positional argument"}},
		} {
			p := spawnPlain(t, py, c.target, c.arg...)
			_, err := p.Conn.Recv(testContext(t))
			var failed *ProcessError
			switch {
			case c.want == nil:
				if err != io.EOF {
					t.Errorf("%s(%v): %v", c.target, c.arg, err)
				}
			case !errors.As(err, &failed):
				t.Errorf("%s(%v): %v", c.target, c.arg, err)
			default:
				for _, part := range c.want {
					if line := failed.Error(); !strings.Contains(line, part) || strings.Contains(line, "\n") {
						t.Errorf("%s(%v): %q is without %q", c.target, c.arg, line, part)
					}
				}
			}
			p.Close()
		}
	})
}

// TestConn_SendSaysWhyPythonEnded has Python end while Go sends.
func TestConn_SendSaysWhyPythonEnded(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k := chat(t, py, Options{})
		k.p.Signal(syscall.SIGKILL)
		<-k.p.Done()
		var failed *ProcessError
		if err := k.Send(k.ctx, "late"); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
			t.Errorf("%v", err)
		}
	})
}

// TestSpawn_NeedsNoPyTorch sends a tensor to a process that cannot use it.
func TestSpawn_NeedsNoPyTorch(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		p := spawnPlain(t, py, "plain:without_torch")
		ctx := testContext(t)
		x := tensor.New(tensor.Float32, 2)
		defer x.Close()
		if err := p.Conn.Send(ctx, x); err != nil {
			t.Fatal(err)
		}
		var failed *ProcessError
		if _, err := p.Conn.Recv(ctx); !errors.As(err, &failed) ||
			failed.Exception != "ModuleNotFoundError" || !strings.Contains(failed.Message, "torch") {
			t.Errorf("%v", err)
		}
	})
}

// TestProcess_WaitReadsOn waits for a function that polls until Go has nothing more to send, and
// that has sent more than a socket holds. Then it receives all of it.
func TestProcess_WaitReadsOn(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		const n = 200
		text := strings.Repeat("x", 5000)
		p := spawnPlain(t, py, "plain:until_end", n, text)
		ctx := testContext(t)
		if err := p.Wait(ctx); err != nil {
			t.Fatalf("%+v", err)
		}
		for i := range n {
			v, err := p.Conn.Recv(ctx)
			if pair, ok := v.(python.Tuple); !ok || pair[0] != int64(i) || pair[1] != text || err != nil {
				t.Fatalf("message %d: %v, %v", i, v, err)
			}
		}
		if _, err := p.Conn.Recv(ctx); err != io.EOF {
			t.Errorf("after the last: %v", err)
		}
		if err := p.Conn.Send(ctx, "more"); !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "Wait") {
			t.Errorf("sent after Wait: %v", err)
		}
	})
}

// TestProcess_WaitLeavesMessagesToRecv receives while another goroutine waits for the process.
func TestProcess_WaitLeavesMessagesToRecv(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k := chat(t, py, Options{})
		for i := range 5 {
			if err := k.Send(k.ctx, python.Tuple{"say", i}); err != nil {
				t.Fatal(err)
			}
		}
		waited := make(chan error, 1)
		go func() { waited <- k.p.Wait(k.ctx) }()
		for i := range 5 {
			if v, err := k.Recv(k.ctx); v != int64(i) || err != nil {
				t.Errorf("message %d: %v, %v", i, v, err)
			}
		}
		if err := <-waited; err != nil {
			t.Errorf("%+v", err)
		}
	})
}

// TestEstate_ImportsNothing starts a function without PyTorch. Python imports nothing for its end.
func TestEstate_ImportsNothing(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k := chat(t, py, Options{})
		code := `[m for m in ("torch", "multiprocessing.resource_sharer", "multiprocessing.managers", "asyncio", "logging") if m in __import__("sys").modules]`
		if got := k.ask("eval", code); len(got.([]any)) != 0 {
			t.Errorf("a function that needs none of it has imported %v", got)
		}
		k.bye()
	})
}

// holdTools is a function that terminated.py starts. It uses its arguments, and waits.
func holdTools(ctx context.Context, args python.Tuple, _ *python.Dict) error {
	conn, queue, lock, event := args[0].(*Conn), args[1].(Queue), args[2].(Semaphore), args[3].(Event)
	if err := errors.Join(queue.Put(ctx, "x"), lock.Acquire(ctx), event.Set(ctx), conn.Send(ctx, "ready")); err != nil {
		return err
	}
	_, err := conn.Recv(ctx)
	return err
}

// TestSpawn_ThePythonTrackerIsSilent ends processes in every way, on both sides. Python's resource
// tracker removes the rest, without a message.
func TestSpawn_ThePythonTrackerIsSilent(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		for _, end := range []func(p *Process) error{
			(*Process).Close, func(p *Process) error { return p.Signal(syscall.SIGTERM) },
			func(p *Process) error { p.Wait(ctx); return nil },
		} {
			stderr, write := must2(os.Pipe())(t)
			p, err := Python{Path: py.path, Dir: "testdata", Env: pythonEnvWithout("PYTHONWARNINGS"),
				Stderr: write}.Spawn(ctx, "plain:make_tools")
			if err != nil {
				t.Fatal(err)
			}
			if v, err := p.Conn.Recv(ctx); v != "ready" || err != nil {
				t.Fatal(v, err)
			}
			if err := end(p); err != nil {
				t.Error(err)
			}
			<-p.Done()
			p.Close()
			write.Close()
			if text := string(testutil.Value(io.ReadAll(stderr))(t)); strings.Contains(text, "resource_tracker") {
				t.Errorf("after the end: %s", text)
			}
			stderr.Close()
		}
		cmd := exec.CommandContext(ctx, py.path, "testdata/terminated.py", os.Args[0])
		cmd.Env = pythonEnvWithout("PYTHONWARNINGS")
		out, err := cmd.CombinedOutput()
		if want := "ready\nterminate -15\nready\nkill -9\nready\njoin 0\n"; string(out) != want || err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

func must2[A, B any](a A, b B, err error) func(t *testing.T) (A, B) {
	return func(t *testing.T) (A, B) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return a, b
	}
}

// pythonEnvWithout is pythonEnv without one variable.
func pythonEnvWithout(variable string) []string {
	return slices.DeleteFunc(pythonEnv(), func(v string) bool { return strings.HasPrefix(v, variable+"=") })
}

// TestEstate_WaitsForThreadsInEveryPython receives descriptors that threads have sent after their
// function had ended, with each version of Python: the end of a process differs between versions.
func TestEstate_WaitsForThreadsInEveryPython(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		for _, pooled := range []bool{false, true} {
			ctx := testContext(t)
			p := spawnPlain(t, py, "plain:late_threads", pooled)
			if err := p.Wait(ctx); err != nil {
				t.Fatalf("%+v", err)
			}
			for i := range 2 {
				pipe, err := As[*Conn](p.Conn.Recv(ctx))
				if err != nil {
					t.Fatalf("pipe %d, by a pool: %v: %v", i, pooled, err)
				}
				if v, err := pipe.Recv(ctx); v != int64(i) || err != nil {
					t.Errorf("through pipe %d: %v, %v", i, v, err)
				}
				pipe.Close()
			}
		}
	})
}
