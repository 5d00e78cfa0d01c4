package torch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// parting starts a function of parting.py, which has a directory for temporary files of its own.
func parting(t *testing.T, py peerPython, function string, args ...any) (p *Process, temporary string) {
	t.Helper()
	temporary, err := os.MkdirTemp("", "p") // a short path, because sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temporary) })
	env := append(pythonEnv(), "TMPDIR="+temporary)
	p, err = Python{Path: py.path, Dir: "testdata", Env: env, Stderr: io.Discard,
		Linger: 3 * time.Second}.Spawn(testContext(t), "parting:"+function, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, temporary
}

// TestEstate_MessagesOutlivePython receives messages that Python has sent in any way when its
// process has ended, however it ended.
func TestEstate_MessagesOutlivePython(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, c := range [][2]string{{"file_descriptor", "return"}, {"file_system", "raise"},
			{"file_descriptor", "exit"}, {"file_system", "return"}} {
			cell(t, c[0]+" "+c[1], func(t *testing.T) { outlives(t, py, c[0], c[1]) })
		}
	})
}

func outlives(t *testing.T, py peerPython, strategy, end string) {
	ctx := testContext(t)
	queue, simple := testutil.Value(NewQueue(0, Options{}))(t), testutil.Value(NewSimpleQueue(Options{}))(t)
	defer CloseAll([]any{queue, simple})
	near, far := pair(t, "unix", Options{AuthKey: processKey()})
	p, temporary := parting(t, py, "say", queue, simple, far, strategy, end)
	var failed *ProcessError
	if err := p.Wait(ctx); (end == "raise") != errors.As(err, &failed) ||
		failed != nil && failed.Exception != "ValueError" {
		t.Fatalf("%s: %+v", end, err)
	}
	for _, source := range []struct {
		name string
		next func() (any, error)
		want string
	}{
		{"Conn", func() (any, error) { return p.Conn.Recv(ctx) }, "[[1 1] [2 2]]"},
		{"Queue", func() (any, error) { return queue.Get(ctx) }, "[[3 3]]"},
		{"SimpleQueue", func() (any, error) { return simple.Get(ctx) }, "[[4 4]]"},
		{"another connection", func() (any, error) { return near.Recv(ctx) }, "[[5 5]]"},
		{"Conn", func() (any, error) { return p.Conn.Recv(ctx) }, "[[7 7 7]]"},
	} {
		v, err := source.next()
		if err != nil {
			t.Errorf("through %s: %v", source.name, err)
			continue
		}
		var got [][]float64
		for _, x := range flat(v) {
			got = append(got, elements(x))
			x.Fill(9) // it is memory of our own, or a fault
		}
		if fmt.Sprint(got) != source.want {
			t.Errorf("through %s came %v, not %s", source.name, got, source.want)
		}
		CloseAll(v)
	}
	testutil.Eventually(t, func() bool { return len(leftBehind(t, p, temporary)) == 0 },
		"waited in vain for what the process has left to go")
}

// leftBehind are the files that a process of PyTorch has left: names, sockets and managers'.
func leftBehind(t *testing.T, p *Process, temporary string) (all []string) {
	t.Helper()
	for _, pattern := range []string{fmt.Sprintf("%s/torch_%d_*", shmDir, p.PID()), temporary + "/*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, files...)
	}
	return all
}

// TestEstate_MessagesOutlivePythonForPython lets one Python process receive the messages that
// another has left.
func TestEstate_MessagesOutlivePythonForPython(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		queue := testutil.Value(NewSimpleQueue(Options{}))(t)
		defer queue.Close()
		const n = 3 // by each strategy
		first, _ := parting(t, py, "fill", queue, n)
		if err := first.Wait(ctx); err != nil {
			t.Fatalf("%+v", err)
		}
		second, _ := parting(t, py, "pass_on", queue, 2*n)
		if sums, err := As[[]float64](second.Conn.Recv(ctx)); fmt.Sprint(sums) != "[0 2 4 0 2 4]" || err != nil {
			t.Errorf("%v, %v", sums, err)
		}
	})
}

// TestEstate_ManyMessagesOutlivePython leaves more descriptors than are under way in a socket at
// once.
func TestEstate_ManyMessagesOutlivePython(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		const n = 150
		p, _ := parting(t, py, "many", n)
		if err := p.Wait(ctx); err != nil {
			t.Fatalf("%+v", err)
		}
		for i := range n {
			x, err := As[*tensor.Tensor](p.Conn.Recv(ctx))
			if err != nil {
				t.Fatalf("message %d: %v", i, err)
			}
			if got := elements(x)[0]; got != float64(i) {
				t.Fatalf("message %d has %v", i, got)
			}
			x.Close()
		}
		if _, err := p.Conn.Recv(ctx); err != io.EOF {
			t.Errorf("after the last message: %v", err)
		}
	})
}

// TestEstate_PythonWaitsNoLongerThanLinger wants a process that cannot hand over to fail after its
// limit, and to say what is lost.
func TestEstate_PythonWaitsNoLongerThanLinger(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		p, _ := parting(t, py, "stalled")
		var failed *ProcessError
		if err := p.Wait(testContext(t)); !errors.As(err, &failed) || failed.ExitCode != 1 ||
			!strings.Contains(failed.Message, "lost at process exit") ||
			!strings.Contains(failed.Message, "1 descriptors") {
			t.Errorf("a process whose receiver has stalled: %+v", err)
		}
	})
}

// TestEstate_WhatAKilledPythonSentIsGone loses the descriptors that were not fetched, with an error
// that says why. It does not lose those that were sent ahead.
func TestEstate_WhatAKilledPythonSentIsGone(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		near, far := pair(t, "unix", Options{AuthKey: processKey()})
		p, _ := parting(t, py, "die", far, int(syscall.SIGKILL))
		ctx := testContext(t)
		var failed *ProcessError
		if err := p.Wait(ctx); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
			t.Errorf("killed: %v", err)
		}
		if v, err := near.Recv(ctx); !errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "docs/torch.md") {
			t.Errorf("its message to another connection: %v, %v", v, err)
		}
		if x, err := As[*tensor.Tensor](p.Conn.Recv(ctx)); err != nil {
			t.Error(err)
		} else {
			wantAll(t, []*tensor.Tensor{x}, 1, "what was sent to Go")
			x.Close()
		}
		if v, err := p.Conn.Recv(ctx); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
			t.Errorf("after its message: %v, %v", v, err)
		}
	})
}

// FuzzWill reads a will, which may be any bytes.
func FuzzWill(f *testing.F) {
	b, err := pt.Marshal(python.Tuple{"/tmp/pymp-x/listener-y", []byte("key"), []any{1, 2},
		[]any{python.Tuple{"torch_1_2_3", 1}}, 1}, pt.MarshalOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if w, err := readHandover(bytes.NewReader(append(frameHead(len(b)), b...))); err != nil || len(w.Keys) != 2 ||
		len(w.Names) != 1 || w.Names[0].Count != 1 {
		f.Fatalf("%+v, %v", w, err)
	}
	f.Add(b)
	f.Add([]byte("\x80\x04N."))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := readHandover(bytes.NewReader(append(frameHead(len(b)), b...)))
		if err == nil && (w.Managers < 0 || w.Address == "" && len(w.Keys) > 0) {
			t.Errorf("%+v was taken", w)
		}
	})
}

// TestEstate_WaitsForThreads receives messages that threads of Python have sent after their
// function had ended. Python waits for the threads at its end, and hands over after that.
func TestEstate_WaitsForThreads(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, c := range [][3]string{{"thread", "file_descriptor", "return"},
			{"thread", "file_system", "raise"}, {"pooled", "file_descriptor", "return"}} {
			cell(t, strings.Join(c[:], " "), func(t *testing.T) { lateThread(t, py, c[0], c[1], c[2]) })
		}
	})
}

func lateThread(t *testing.T, py peerPython, function, strategy, end string) {
	queue, simple := testutil.Value(NewQueue(0, Options{}))(t), testutil.Value(NewSimpleQueue(Options{}))(t)
	defer CloseAll([]any{queue, simple})
	p, temporary := parting(t, py, function, queue, simple, strategy, end)
	var failed *ProcessError
	if err := p.Wait(testContext(t)); (end == "raise") != errors.As(err, &failed) ||
		failed != nil && failed.Exception != "ValueError" {
		t.Fatalf("%s: %+v", end, err)
	}
	receiveElements(t, "Conn", p.Conn.Recv, "[0 0]")
	receiveElements(t, "Conn, after the function", p.Conn.Recv, "[1 1]")
	receiveElements(t, "Queue", queue.Get, "[2 2]")
	receiveElements(t, "SimpleQueue", simple.Get, "[3 3]")
	testutil.Eventually(t, func() bool { return len(leftBehind(t, p, temporary)) == 0 },
		"waited in vain for what the process has left to go")
}

// receiveElements receives one tensor.
func receiveElements(t *testing.T, through string, next func(context.Context) (any, error), want string) {
	t.Helper()
	v, err := next(testContext(t))
	if err != nil {
		t.Errorf("through %s: %v", through, err)
		return
	}
	if x, ok := v.(*tensor.Tensor); !ok || fmt.Sprint(elements(x)) != want {
		t.Errorf("through %s came %v, not %s", through, v, want)
	}
	CloseAll(v)
}

// TestEstate_DoesNotWaitForDaemonThreads keeps the messages that a daemon thread has sent before
// the hand-over, and those that it sends later by descriptor to Go, which go ahead.
func TestEstate_DoesNotWaitForDaemonThreads(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		p, _ := parting(t, py, "daemon")
		if err := p.Wait(ctx); err != nil {
			t.Fatalf("%+v", err)
		}
		receiveElements(t, "Conn", p.Conn.Recv, "[0 0]")
		receiveElements(t, "Conn, after the hand-over", p.Conn.Recv, "[1 1]")
	})
}
