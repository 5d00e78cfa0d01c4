package torch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestProcessError_ReadsWhatPythonPrints ends Python functions in every way.
func TestProcessError_ReadsWhatPythonPrints(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		end := func(request ...any) *ProcessError {
			k := chat(t, py, Options{})
			if err := k.Send(k.ctx, python.Tuple(request)); err != nil {
				t.Fatal(err)
			}
			var failed *ProcessError
			if err := k.p.Wait(k.ctx); !errors.As(err, &failed) || failed.PID != k.p.PID() {
				t.Fatalf("%v: %v", request, err)
			}
			return failed
		}
		e := end("fail", "two\nlines: here")
		if e.Exception != "ValueError" || e.Message != "two\nlines: here" || e.ExitCode != 1 ||
			!strings.Contains(e.Traceback, "plain.py") {
			t.Errorf("raised: %+v", e)
		}
		if !strings.Contains(fmt.Sprintf("%+v", e), "Traceback") || strings.Contains(e.Error(), "\n") {
			t.Errorf("printed: %+v", e)
		}
		if e := end("exit", 7); e.ExitCode != 7 || e.Exception != "" {
			t.Errorf("exited: %+v", e)
		}
	})
}

// TestSpawn_CallsAFunctionOfPython starts functions of modules and of scripts.
func TestSpawn_CallsAFunctionOfPython(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		for _, target := range []string{"plain:tell", "plain.py:tell"} {
			k := talkTo(t, py, Options{}, target, 1, "two", []float64{3}, map[string]any{"four": python.Tuple{nil}})
			want := python.Tuple{int64(k.p.PID()), int64(os.Getpid()), "(1, 'two', [3.0], {'four': (None,)})"}
			if got := testutil.Value(k.Recv(k.ctx))(t); !reflect.DeepEqual(got, want) {
				t.Errorf("%s told %v, not %v", target, got, want)
			}
			k.bye()
		}
	})
}

// TestSpawn_SaysWhyItFailed starts processes that fail before the function begins, or within it.
func TestSpawn_SaysWhyItFailed(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		if _, err := (Python{Path: "/nowhere/python"}).Spawn(ctx, "plain:run"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no interpreter: %v", err)
		}
		if _, err := Spawn(ctx, "plain.run"); err == nil {
			t.Error("a target without a function was taken")
		}
		p, err := Python{Path: py.path, Dir: "testdata", Stderr: io.Discard}.Spawn(ctx, "no_such_module:run")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var failed *ProcessError
		if err := p.Wait(ctx); !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "no_such_module") {
			t.Errorf("no module: %v", err)
		}
		brief, cancel := context.WithCancel(ctx)
		p, err = Python{Path: py.path, Dir: "testdata", Env: pythonEnv()}.Spawn(brief, "plain:run")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Conn.Send(ctx, python.Tuple{"say", "here"}); err != nil {
			t.Fatal(err)
		}
		if v, err := p.Conn.Recv(ctx); v != "here" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		cancel()
		if err := p.Wait(ctx); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestSpawn_TheExampleRuns trains with the workers of examples/torchloader.
func TestSpawn_TheExampleRuns(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		program := filepath.Join(t.TempDir(), "loader")
		if out, err := exec.Command("go", "build", "-o", program,
			"../examples/torchloader").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := exec.CommandContext(testContext(t), py.path, "../examples/torchloader/train.py", program)
		cmd.Env = pythonEnv()
		out, err := cmd.CombinedOutput()
		var right float64
		if _, scan := fmt.Sscanf(string(out), "%f of the samples", &right); err != nil || scan != nil || right < 0.5 {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestConn_SocketsAndPipesTravel takes the ends of Python's pipes and sockets, and gives some.
func TestConn_SocketsAndPipesTravel(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		k := chat(t, py, Options{})
		usePipe(t, k)

		ends := k.ask("oneway").(python.Tuple)
		defer CloseAll(ends)
		if err := ends[1].(*Conn).Send(k.ctx, "one way"); err != nil {
			t.Fatal(err)
		}
		if v, err := ends[0].(*Conn).Recv(k.ctx); v != "one way" || err != nil {
			t.Errorf("%v, %v", v, err)
		}

		if err := k.Send(k.ctx, python.Tuple{"socket"}); err != nil {
			t.Fatal(err)
		}
		socket, err := As[net.Conn](k.Conn.Recv(k.ctx))
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		socket.Write([]byte("abcde"))
		b := make([]byte, 5)
		if _, err := io.ReadFull(socket, b); err != nil || string(b) != "edcba" {
			t.Errorf("%q, %v", b, err)
		}

		for network, addr := range map[string]string{"unix": filepath.Join(t.TempDir(), "given"),
			"tcp": "127.0.0.1:0"} {
			giveSocket(t, k, network, addr)
		}
		giveEnds(t, k)
		if said := giveConnection(t, k, "['hello', 1]"); !reflect.DeepEqual(said, []any{"hello", int64(1)}) {
			t.Errorf("through a connection that was given away: %v", said)
		}
		k.bye()
	})
}

// TestConn_TensorsGoThroughGivenConnections has PyTorch send through one.
func TestConn_TensorsGoThroughGivenConnections(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := converse(t, py, Options{}, "file_descriptor")
		said := giveConnection(t, k, "('hello', torch.ones(2))").(python.Tuple)
		defer CloseAll(said)
		if said[0] != "hello" || !reflect.DeepEqual(elements(said[1].(*tensor.Tensor)), []float64{1, 1}) {
			t.Errorf("through a connection that was given away: %v", said)
		}
		k.bye()
	})
}

// giveConnection gives one end of a connection away, and returns the text that Python sends through
// it.
func giveConnection(t *testing.T, k *talk, says string) any {
	near, far := pair(t, "unix", k.opts)
	if err := k.Send(k.ctx, python.Tuple{"use", far, says}); err != nil {
		t.Fatal(err)
	}
	said := testutil.Value(near.Recv(k.ctx))(t)
	if err := near.Send(k.ctx, "bye"); err != nil {
		t.Fatal(err)
	}
	if v, err := k.Recv(k.ctx); v != "bye" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	return said
}

// giveSocket gives one end of a socket of package net away.
func giveSocket(t *testing.T, k *talk, network, addr string) {
	l := testutil.Value(net.Listen(network, addr))(t)
	defer l.Close()
	far := testutil.Value(net.Dial(network, l.Addr().String()))(t)
	near := testutil.Value(l.Accept())(t)
	defer near.Close()
	if _, err := near.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	family := map[string]int64{"unix": 1, "tcp": 2}[network]
	if got := k.ask("reverse", far); fmt.Sprint(got) != fmt.Sprint(python.Tuple{family, int64(1), true}) {
		t.Errorf("a socket of %s arrived as %v", network, got)
	}
	if b, err := io.ReadAll(near); string(b) != "cba" || err != nil {
		t.Errorf("through a socket of %s: %q, %v", network, b, err)
	}
	if _, err := far.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a socket that was given away: %v", err)
	}
}

// giveEnds gives the far ends of two pipes away.
func giveEnds(t *testing.T, k *talk) {
	a, b := testutil.Value(NewSimpleQueue(k.opts))(t), testutil.Value(NewSimpleQueue(k.opts))(t)
	defer a.Close()
	defer b.Close()
	if err := a.(*pipeQueue).writer.Send(k.ctx, 41); err != nil {
		t.Fatal(err)
	}
	if got := k.ask("ends", python.Tuple{a.(*pipeQueue).reader,
		b.(*pipeQueue).writer}); fmt.Sprint(got) != fmt.Sprint(python.Tuple{false, false}) {
		t.Errorf("the ends of pipes can do %v", got)
	}
	if v, err := b.(*pipeQueue).reader.Recv(k.ctx); v != int64(42) || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}
