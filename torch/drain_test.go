package torch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// leaveTensors is a function that late.py starts. It sends n tensors, says so, and returns.
func leaveTensors(ctx context.Context, args python.Tuple, _ *python.Dict) error {
	conn, queue := args[0].(*Conn), args[1].(Queue)
	for _, s := range []Strategy{FileDescriptor, FileSystem, Proc} {
		if string(s) == args[3] {
			conn.opts.Strategy = s
		}
	}
	for i := range args[2].(int64) {
		x, err := conn.opts.Empty(tensor.Float32, 2)
		if err != nil {
			return err
		}
		if err := conn.Send(ctx, x.Fill(float64(i))); err != nil {
			return err
		}
		if i%2 == 0 { // some of the memory is in use here to the end
			x.Close()
		}
	}
	return queue.Put(ctx, true)
}

// late runs late.py with a limit for its processes.
func late(t *testing.T, py peerPython, limit time.Duration, strategies, fetch string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), py.path, "testdata/late.py", os.Args[0], strategies, fetch)
	cmd.Env = append(pythonEnv(), "SHOAL_TORCH_LINGER="+limit.String())
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	return strings.TrimSpace(string(out)), errs.String()
}

// TestChild_WaitsUntilItsTensorsAreFetched receives in Python the tensors of a Go process whose
// function has returned, by each strategy.
func TestChild_WaitsUntilItsTensorsAreFetched(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		out, errs := late(t, py, time.Minute, "proc,file_descriptor,file_system", "fetch")
		one := `{"received": 15, "lost": 0, "exitcode": 0}`
		if want := "[" + one + ", " + one + ", " + one + "]"; out != want || errs != "" {
			t.Errorf("%s, not %s\n%s", out, want, errs)
		}
	})
}

// TestChild_WaitsNoLongerThanLinger has Python fetch nothing. The process ends after its limit,
// fails and says what is lost. Names are left.
func TestChild_WaitsNoLongerThanLinger(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		out, errs := late(t, py, 700*time.Millisecond, "proc,file_descriptor,file_system", "leave")
		failed, left := `{"received": 0, "lost": 0, "exitcode": 1}`, `{"received": 0, "lost": 0, "exitcode": 0}`
		if want := "[" + failed + ", " + failed + ", " + left + "]"; out != want {
			t.Errorf("%s, not %s", out, want)
		}
		for _, part := range []string{"memory of 8 bytes sent to process", "15 descriptors with",
			"not received within 700ms after the function returned"} {
			if !strings.Contains(errs, part) {
				t.Errorf("a process that gives up says nothing of %q: %s", part, errs)
			}
		}
		for _, f := range deadFiles(t) { // a sweep leaves them to their receivers for ten minutes
			os.Remove(shmDir + "/" + f[strings.LastIndexByte(f, '/')+1:])
		}
	})
}

// TestChild_AWorkerWaitsForItsDataLoader has a worker of a DataLoader end while its batches are
// under way. The worker waits until they are fetched, as long as it may, and then says what is
// lost. If the DataLoader wants no more, the worker does not wait.
func TestChild_AWorkerWaitsForItsDataLoader(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		run := func(limit string, how ...string) (stdout, stderr string) {
			cmd := exec.CommandContext(testContext(t), py.path,
				append([]string{"testdata/consumer.py", os.Args[0]}, how...)...)
			cmd.Env = append(pythonEnv(), "SHOAL_TORCH_LINGER="+limit)
			var errs strings.Builder
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, errs.String())
			}
			return string(out), errs.String()
		}
		out, errs := run("1h", "late", "unwanted")
		want := `{"how": "late", "got": [[0, 1], [2, 3], [4, 5]], "exitcode": 0}` + "\n" +
			`{"how": "unwanted", "got": [], "exitcode": 0}` + "\n"
		if out != want || errs != "" {
			t.Errorf("%s, not %s\n%s", out, want, errs)
		}
		out, errs = run("300ms", "never")
		if out != `{"how": "never", "got": [], "exitcode": 1}`+"\n" ||
			!strings.Contains(errs, "lost at process exit") {
			t.Errorf("nobody has fetched the batches: %s\n%s", out, errs)
		}
	})
}

// TestDrain_WaitsForReceivers waits for messages under way in this process. If it may not wait so
// long, it lists them.
func TestDrain_WaitsForReceivers(t *testing.T) {
	for _, s := range []Strategy{FileDescriptor, Proc, FileSystem} {
		opts := Options{AuthKey: testKey, Strategy: s}
		a, b := pair(t, "unix", opts)
		a.peer = newPeer(os.Getuid(), os.Getpid())
		ctx := testContext(t)
		if err := Drain(ctx); err != nil {
			t.Fatalf("%v: with nothing under way: %v", s, err)
		}
		x := testutil.Value(opts.Empty(tensor.Float32, 2))(t).Zero()
		if err := a.Send(ctx, x); err != nil {
			t.Fatal(err)
		}
		brief, cancel := context.WithTimeoutCause(ctx, 50*time.Millisecond, errors.New("no more time"))
		err := Drain(brief)
		cancel()
		if s == FileSystem {
			if err != nil {
				t.Errorf("%v: names need no waiting: %v", s, err)
			}
		} else if !errors.Is(err, ErrUnfetched) || !strings.Contains(err.Error(), "no more time") {
			t.Errorf("%v: under way: %v", s, err)
		}
		drained := make(chan error, 1)
		go func() { drained <- Drain(ctx) }()
		fetch(t, b, s)
		if err := <-drained; err != nil {
			t.Errorf("%v: fetched: %v", s, err)
		}
		x.Close()
	}
}

// fetch receives a tensor. A tensor through /proc is received as Python receives it.
func fetch(t *testing.T, c *Conn, s Strategy) {
	t.Helper()
	if s != Proc {
		CloseAll(testutil.Value(c.Recv(testContext(t)))(t))
		return
	}
	raw := string(testutil.Value(c.RecvBytes(testContext(t)))(t))
	_, path, _ := strings.Cut(raw, "/proc/")
	var pid, fd int
	if _, err := fmt.Sscanf(path, "%d/fd/%d", &pid, &fd); err != nil {
		t.Fatal(err)
	}
	testutil.Value(os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), os.O_RDWR, 0))(t).Close()
}

// TestRegion_SentTwiceAtOnceIsKept sends the same memory twice before it is opened: the kernel may
// tell two openings as one.
func TestRegion_SentTwiceAtOnceIsKept(t *testing.T) {
	a, b := pair(t, "unix", Options{AuthKey: testKey, Strategy: Proc})
	a.peer = newPeer(os.Getuid(), os.Getpid())
	ctx := testContext(t)
	x := testutil.Value(Zeros(tensor.Float32, 2))(t)
	defer x.Close()
	for range 2 {
		if err := a.Send(ctx, x); err != nil {
			t.Fatal(err)
		}
	}
	fetch(t, b, Proc)
	CloseAll(testutil.Value(b.Recv(ctx))(t))
	if err := Drain(ctx); err != nil {
		t.Error(err)
	}
}
