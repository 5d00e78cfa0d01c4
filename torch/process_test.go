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
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// TestProcessErrors ends Python functions in every way.
func TestProcessErrors(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		ctx := testContext(t)
		end := func(request ...any) *ProcessError {
			k := converse(t, py, Options{}, "file_descriptor")
			if err := k.Send(ctx, Tuple(request)); err != nil {
				t.Fatal(err)
			}
			var failed *ProcessError
			if err := k.p.Wait(ctx); !errors.As(err, &failed) {
				t.Fatalf("%v: %v", request, err)
			}
			return failed
		}
		e := end("raise", "two\nlines: here")
		if e.Exception != "ValueError" || e.Message != "two\nlines: here" || e.ExitCode != 1 || !strings.Contains(e.Traceback, "peer.py") {
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

// TestSpawnFailures never gets as far as the function.
func TestSpawnFailures(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		ctx := testContext(t)
		if _, err := (Python{Path: "/nowhere/python"}).Spawn(ctx, "peer:run"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no interpreter: %v", err)
		}
		if _, err := Spawn(ctx, "peer.run"); err == nil {
			t.Error("a target without a function was taken")
		}
		p, err := Python{Path: py.path, Dir: "testdata"}.Spawn(ctx, "no_such_module:run")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var failed *ProcessError
		if err := p.Wait(ctx); !errors.As(err, &failed) || !strings.Contains(failed.Stderr, "no_such_module") {
			t.Errorf("no module: %v", err)
		}
		brief, cancel := context.WithCancel(ctx)
		p, err = Python{Path: py.path, Dir: "testdata", Env: pythonEnv()}.Spawn(brief, "peer.py:run", "file_descriptor")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := p.Conn.Send(ctx, Tuple{"say", "script"}); err != nil {
			t.Fatal(err)
		}
		if v, err := p.Conn.Recv(ctx); v != "script" || err != nil {
			t.Errorf("a script's function: %v, %v", v, err)
		}
		cancel()
		if err := p.Wait(ctx); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
			t.Errorf("cancelled: %v", err)
		}
	})
}

// TestExample trains with the workers of examples/torchloader.
func TestExample(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		program := filepath.Join(t.TempDir(), "loader")
		if out, err := exec.Command("go", "build", "-o", program, "../examples/torchloader").CombinedOutput(); err != nil {
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

// TestSocketsAndPipes takes the ends of Python's pipes and sockets, and gives one.
func TestSocketsAndPipes(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		k := converse(t, py, Options{}, "file_descriptor")
		if err := k.Send(k.ctx, Tuple{"pipe"}); err != nil {
			t.Fatal(err)
		}
		pipe, err := Recv[*Conn](k.ctx, k.Conn)
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		if err := pipe.Send(k.ctx, 41); err != nil {
			t.Fatal(err)
		}
		if v, err := pipe.Recv(k.ctx); v != int64(42) || err != nil {
			t.Errorf("%v, %v", v, err)
		}

		ends := k.ask("oneway").(Tuple)
		defer CloseAll(ends)
		if err := ends[1].(*Conn).Send(k.ctx, "one way"); err != nil {
			t.Fatal(err)
		}
		if v, err := ends[0].(*Conn).Recv(k.ctx); v != "one way" || err != nil {
			t.Errorf("%v, %v", v, err)
		}

		if err := k.Send(k.ctx, Tuple{"socket"}); err != nil {
			t.Fatal(err)
		}
		socket, err := Recv[net.Conn](k.ctx, k.Conn)
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		socket.Write([]byte("abcde"))
		b := make([]byte, 5)
		if _, err := io.ReadFull(socket, b); err != nil || string(b) != "edcba" {
			t.Errorf("%q, %v", b, err)
		}

		for network, addr := range map[string]string{"unix": filepath.Join(t.TempDir(), "given"), "tcp": "127.0.0.1:0"} {
			giveSocket(t, k, network, addr)
		}
		giveEnds(t, k)

		near, far := pair(t, "unix", k.opts)
		if err := k.Send(k.ctx, Tuple{"use", far}); err != nil {
			t.Fatal(err)
		}
		said := must2(near.Recv(k.ctx)).(Tuple)
		if said[0] != "hello" || fmt.Sprint(elements(said[1].(*tensor.Tensor))) != "[1 1]" {
			t.Errorf("through a connection that was given away: %v", said)
		}
		CloseAll(said)
		if err := near.Send(k.ctx, "bye"); err != nil {
			t.Fatal(err)
		}
		if v, err := k.Recv(k.ctx); v != "bye" || err != nil {
			t.Errorf("%v, %v", v, err)
		}
		k.bye()
	})
}

// giveSocket gives one end of a socket of package net away.
func giveSocket(t *testing.T, k *talk, network, addr string) {
	l := must(net.Listen(network, addr))(t)
	defer l.Close()
	far := must(net.Dial(network, l.Addr().String()))(t)
	near := must(l.Accept())(t)
	defer near.Close()
	if _, err := near.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	family := map[string]int64{"unix": 1, "tcp": 2}[network]
	if got := k.ask("reverse", far); fmt.Sprint(got) != fmt.Sprint(Tuple{family, int64(1), true}) {
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
	a, b := must(k.opts.NewSimpleQueue())(t), must(k.opts.NewSimpleQueue())(t)
	defer a.Close()
	defer b.Close()
	if err := a.writer.Send(k.ctx, 41); err != nil {
		t.Fatal(err)
	}
	if got := k.ask("ends", Tuple{a.reader, b.writer}); fmt.Sprint(got) != fmt.Sprint(Tuple{false, false}) {
		t.Errorf("the ends of pipes can do %v", got)
	}
	if v, err := b.reader.Recv(k.ctx); v != int64(42) || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

func must2(v any, err error) any {
	if err != nil {
		panic(err)
	}
	return v
}
