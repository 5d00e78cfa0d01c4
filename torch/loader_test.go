package torch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// testChild is the Child of this test program when PyTorch starts it.
var testChild = Child{
	Functions: map[string]func(context.Context, python.Tuple, *python.Dict) error{
		"__main__.rows": scaleAll, "__main__.error": takeTurns, // of loader.py
		"__main__.leave_tensors": leaveTensors, "__main__.hold_tools": holdTools, // of late.py
		// of child.py
		"__main__.turns": takeTools, "__main__.fails": func(context.Context, python.Tuple, *python.Dict) error {
			return errFails
		},
	},
	Datasets: map[string]OpenDataset{
		"squares": func(_ context.Context, w Worker) (data.Dataset, error) { return openSquares(w) },
		"scaled": func(_ context.Context, w Worker) (data.Dataset, error) {
			var args struct {
				N     int            `torch:"n"`
				Scale *tensor.Tensor `torch:"scale"`
			}
			if err := w.Keywords(&args); err != nil {
				return nil, err
			}
			return data.NewTensorDataset(args.Scale), nil
		},
		"photos": openPhotos, "lettered": openLettered,
		"goexit": func(context.Context, Worker) (data.Dataset, error) { runtime.Goexit(); return nil, nil },
		"info": func(_ context.Context, w Worker) (data.Dataset, error) {
			if extra, _ := w.Args.Get("extra"); extra != "keyword" {
				return nil, fmt.Errorf("extra is %v", extra)
			}
			return data.NewTensorDataset(tensor.FromSlice([]int64{int64(w.ID), w.Seed}, 2),
				tensor.Full(tensor.Int64, float64(w.Workers), 2)), nil
		},
	},
	Streams: map[string]OpenStream{"stream": func(_ context.Context, w Worker) iter.Seq2[data.Sample, error] {
		return func(yield func(data.Sample, error) bool) {
			n, _ := w.Args.Get("n")
			for i := w.ID; i < int(n.(int64)); i += w.Workers {
				if !yield(data.Sample{tensor.Scalar(tensor.Int64, float64(i)),
					tensor.Scalar(tensor.Float32, float64(w.ID))}, nil) {
					return
				}
			}
		}
	}},
}

// squares has i and i².
type squares struct{ n, fail, panics int }

func openSquares(w Worker) (*squares, error) {
	s := &squares{fail: -1, panics: -1}
	for name, dst := range map[string]*int{"n": &s.n, "fail": &s.fail, "panic": &s.panics} {
		if v, ok := w.Args.Get(name); ok {
			if err := assign(dst, v); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *squares) Len() int { return s.n }

func (s *squares) Get(_ context.Context, i int) (data.Sample, error) {
	switch i {
	case s.fail:
		return nil, errors.New("sample seven is bad")
	case s.panics:
		panic("sample seven panics")
	}
	return data.Sample{tensor.Scalar(tensor.Int64, float64(i)), tensor.Full(tensor.Float32, float64(i*i), 2)}, nil
}

// scaleAll multiplies the tensors that come through a queue, until None.
func scaleAll(ctx context.Context, args python.Tuple, kwargs *python.Dict) error {
	work, done, event, lock := args[0].(Queue), args[1].(Queue), args[2].(Event), args[3].(Semaphore)
	scale, _ := kwargs.Get("scale")
	for {
		v, err := work.Get(ctx)
		if err != nil {
			return err
		}
		if v == nil {
			break
		}
		x := v.(*tensor.Tensor)
		x.MulScalarInPlace(float64(scale.(int64)))
		if err := done.Put(ctx, x); err != nil {
			return err
		}
	}
	if err := lock.Acquire(ctx); err != nil {
		return err
	}
	set, err := event.IsSet(ctx)
	if err != nil {
		return err
	}
	if err := done.Put(ctx, set); err != nil {
		return err
	}
	return lock.Release()
}

// takeTurns is the other side of the turns that loader.py takes with a Condition, an RLock and an
// Event.
func takeTurns(ctx context.Context, args python.Tuple, _ *python.Dict) error {
	cond, rlock, event, back := args[0].(Cond), args[1].(Semaphore), args[2].(Event), args[3].(Queue)
	err := withSemaphore(ctx, cond.(*condition).semaphore, func() error { // Python gives it up by waiting
		if err := cond.Notify(ctx, 1); err != nil {
			return err
		}
		return cond.Wait(ctx)
	})
	if err != nil {
		return err
	}
	if err := rlock.Acquire(ctx); err != nil {
		return err
	}
	if err := back.Put(ctx, "taken"); err != nil {
		return err
	}
	return event.Set(ctx)
}

// TestChild_ServesADataLoader runs an unmodified script whose workers are this program.
func TestChild_ServesADataLoader(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, theirs := range []string{"file_descriptor", "file_system"} {
			cell(t, theirs, func(t *testing.T) { dataLoader(t, py, theirs) })
		}
	})
}

func dataLoader(t *testing.T, py peerPython, theirs string) {
	cmd := exec.CommandContext(testContext(t), py.path, "testdata/loader.py", os.Args[0], theirs)
	cmd.Env = pythonEnv()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var out map[string]json.RawMessage
	if err := json.Unmarshal(b[strings.LastIndexByte(strings.TrimSpace(string(b)), '\n')+1:], &out); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	square := func(list ...int) string {
		var numbers, squares []string
		for _, i := range list {
			numbers = append(numbers, fmt.Sprint(i))
			squares = append(squares, fmt.Sprintf("[%d.0, %d.0]", i*i, i*i))
		}
		return "[[" + strings.Join(numbers, ", ") + "], [" + strings.Join(squares, ", ") + "]]"
	}
	two := "[" + square(0, 1, 2) + ", " + square(3, 4, 5) + "]"
	for name, want := range map[string]string{
		"map":          "[" + square(0, 1, 2, 3) + ", " + square(4, 5, 6, 7) + ", " + square(8, 9) + "]",
		"shuffled":     "[2, []]",
		"single":       "[[0, [0.0, 0.0]], [1, [1.0, 1.0]], [2, [4.0, 4.0]]]",
		"tensors":      "[" + square(3, 9) + ", " + square(0, 8) + "]",
		"ranges":       "[" + square(1, 2, 3) + ", " + square(9, 7) + "]",
		"one_by_one":   "[" + square(4, 9) + "]",
		"single_t":     "[[4, [16.0, 16.0]], [[3, 9], [[9.0, 9.0], [81.0, 81.0]]]]",
		"persistent":   "[" + two + ", " + two + "]",
		"shared":       "[true, true]",
		"stream":       "[[[0, 2], [0.0, 0.0]], [[1, 3], [1.0, 1.0]], [[4], [0.0]]]",
		"stream_drop":  "[[[0, 1], [0.0, 0.0]], [[2, 3], [0.0, 0.0]]]",
		"stream_again": "[[[[0, 1], [0.0, 0.0]], [[2], [0.0]]], [[[0, 1], [0.0, 0.0]], [[2], [0.0]]]]",
		"tensor":       "[[[3.0, 5.0]]]",
		"early":        "[0, 1]",
		"function":     "[[0.0, 0.0], [3.0, 3.0], [6.0, 6.0], [9.0, 9.0], [12.0, 12.0]]",
		"function_end": "true",
		"exitcode":     "0",
		"notified":     "true",
		"set":          "true",
		"taken":        `"taken"`,
	} {
		if got := string(out[name]); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"error": "sample seven is bad", "panic": "sample seven panics",
		"unknown":  `data set \"nobody\" is not registered in this program: Datasets, for a Python Dataset, has [\"goexit\" \"info\" \"lettered\" \"photos\" \"scaled\" \"squares\" \"values\"]`,
		"misspelt": "dict key scales has no field",
		"mistyped": "field n: torch: unsupported value: cannot convert string to int",
		"around":   "index 2 at position 1 of a Subset is out of range, its data set has 2 samples",
	} {
		if got := string(out[name]); !strings.Contains(got, want) ||
			!strings.Contains(got, "RuntimeError: Caught RuntimeError in DataLoader worker process") {
			t.Errorf("%s: %s", name, got)
		}
	}
	var info [][][]int64
	if err := json.Unmarshal(out["info"], &info); err != nil || len(info) != 2 {
		t.Fatalf("info: %s, %v", out["info"], err)
	}
	// Sample 0 is served by worker 0, and sample 1 by worker 1, which says its seed there.
	if info[0][0][0] != 0 || info[0][1][0] != 2 || info[1][0][0] == 0 {
		t.Errorf("info: %v", info)
	}
	if strings.Contains(stderr.String(), "Traceback") || strings.Contains(stderr.String(), "leaked") {
		t.Errorf("PyTorch complained:\n%s", stderr.String())
	}
}

// TestChild_BecomesTheResourceTracker starts that helper of Python's. Ctrl-C must not end it at any
// time, as Python arranges when it starts the helper itself.
func TestChild_BecomesTheResourceTracker(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		code := "import subprocess, sys\n" +
			"see = 'import signal; print([signal.getsignal(s) == signal.SIG_IGN for s in (signal.SIGINT, " +
			"signal.SIGTERM)])'\n" +
			"for helper in 'resource_tracker', 'forkserver':\n" +
			"    subprocess.run([sys.argv[1], '-c', 'from multiprocessing.' + helper + ' import main; ' + see])\n"
		cmd := exec.CommandContext(testContext(t), py.path, "-c", code, os.Args[0])
		cmd.Env = pythonEnv()
		out, err := cmd.CombinedOutput()
		if want := "[True, True]\n[False, False]\n"; err != nil || string(out) != want {
			t.Errorf("%s, not %s: %v", out, want, err)
		}
	})
}

// TestChild_ServesTheExampleOfALoader trains by examples/torchloader, as its documentation says.
func TestChild_ServesTheExampleOfALoader(t *testing.T) {
	if !interop {
		t.Skip("the example was not run: it is built and trains for some seconds (make interop does)")
	}
	eachTorch(t, func(t *testing.T, py peerPython) {
		program := filepath.Join(t.TempDir(), "loader")
		if out, err := exec.CommandContext(testContext(t), "go", "build", "-o", program,
			"../examples/torchloader").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		train := func(program string) (string, error) {
			cmd := exec.CommandContext(testContext(t), py.path, "../examples/torchloader/train.py", program)
			cmd.Env = pythonEnv()
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		lesson := string(testutil.Value(os.ReadFile("../docs/learn/8-pytorch.md"))(t))
		if out, err := train(program); err != nil || !strings.Contains(lesson, "\n"+out+"```") {
			t.Errorf("%s: %v; lesson 8 shows another output", out, err)
		}
		if out, err := train(program + "-that-is-not-there"); err == nil ||
			!strings.Contains(out, "go build -o loader") {
			t.Errorf("%s: %v", out, err)
		}
	})
}

// TestChild_EndsWithItsParent kills the training process, and wants its Go workers to end.
func TestChild_EndsWithItsParent(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		code := "import sys, time, torch, loader\n" +
			"if __name__ == '__main__':\n" +
			"    torch.multiprocessing.set_executable(sys.argv[1])\n" +
			"    it = iter(torch.utils.data.DataLoader(loader.Squares(1000), batch_size=2, num_workers=2, " +
			"multiprocessing_context='spawn'))\n" +
			"    next(it); print(*[w.pid for w in it._workers], flush=True); time.sleep(600)\n"
		cmd := exec.CommandContext(testContext(t), py.path, "-c", code, os.Args[0])
		cmd.Dir, cmd.Env = "testdata", pythonEnv()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var workers [2]process
		if _, err := fmt.Fscan(out, &workers[0].pid, &workers[1].pid); err != nil {
			t.Fatal(err)
		}
		for i := range workers {
			workers[i] = newPeer(os.Getuid(), workers[i].pid).process
			if workers[i] == anyone {
				t.Fatal("a worker has ended too early")
			}
		}
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait()
		testutil.Eventually(t, func() bool { return !workers[0].running() && !workers[1].running() },
			"waited in vain for the workers to end")
	})
}

// running is alive for a process for which no process waits.
func (p process) running() bool {
	if !p.isAlive() {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
