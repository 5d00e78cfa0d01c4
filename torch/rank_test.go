package torch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/tensor"
)

// init makes the test's own program a rank, if torchrun starts it as one.
func init() {
	play := map[string]func(ctx context.Context, r *Rank) error{
		"mixed": evaluate, "serve": serve,
		"fail": func(context.Context, *Rank) error { return errors.New("no such weights") }}
	part := play[os.Getenv("SHOAL_TEST_RANK")]
	if part == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := Rendezvous(ctx, StoreOptions{})
	if err == nil {
		err = r.Record(part(ctx, r))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rank of Go:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// evaluate is the part of the rank of Go beside testdata/ranks.py. It is killed in the first start,
// and does its part in the second.
func evaluate(ctx context.Context, r *Rank) error {
	defer r.Close()
	if r.Rank != 2 || r.WorldSize != 3 || r.LocalRank != 2 || r.LocalWorldSize != 3 || r.MaxRestarts != 1 ||
		!r.AgentStore {
		return fmt.Errorf("the rank is %+v", r)
	}
	if err := r.Barrier(ctx, "start", 3); err != nil {
		return err
	}
	if r.Restart == 0 {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		return err
	}
	l, err := r.Listen(ctx, "data", Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	if err := receiveWeights(ctx, r); err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	if err := giveBatch(ctx, l); err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	type metrics struct {
		Rank int     `json:"rank"`
		Loss float64 `json:"loss"`
	}
	all, err := GatherJSON(ctx, r, "metrics", metrics{r.Rank, 1}, 0, 1, 2)
	if err != nil || !slices.Equal(all, []metrics{{0, 0}, {1, 0.5}, {2, 1}}) {
		return fmt.Errorf("metrics %v: %w", all, err)
	}
	if err := r.Barrier(ctx, "end", 3); err != nil {
		return err
	}
	fmt.Println("go 2 is done")
	return nil
}

// receiveWeights maps the weights that rank 0 trains.
func receiveWeights(ctx context.Context, r *Rank) error {
	c, err := r.Connect(ctx, "weights", Options{})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := As[*tensor.Tensor](c.Recv(ctx))
	if err != nil {
		return err
	}
	defer w.Close()
	if err := c.Send(ctx, "mapped"); err != nil {
		return err
	}
	if _, err := As[string](c.Recv(ctx)); err != nil {
		return err
	}
	if got := fmt.Sprint(elements(w)); got != "[3 4 5 6 7 8]" {
		return fmt.Errorf("PyTorch's change is not seen: %s", got)
	}
	tensor.Data[float32](w)[5] = 42
	return c.Send(ctx, "changed")
}

// giveBatch shares a batch that rank 1 changes.
func giveBatch(ctx context.Context, l *Listener) error {
	c, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	batch, err := Empty(tensor.Float32, 4)
	if err != nil {
		return err
	}
	defer batch.Close()
	batch.Fill(1.5)
	if err := c.Send(ctx, batch); err != nil {
		return err
	}
	if _, err := As[string](c.Recv(ctx)); err != nil {
		return err
	}
	if got := fmt.Sprint(elements(batch)); got != "[3 3 3 3]" {
		return fmt.Errorf("PyTorch's change is not seen: %s", got)
	}
	return nil
}

// torchrun runs a command in so many ranks, and returns their output. Options are spelled as
// PyTorch 1.13 reads them. Under Python 3.11 its torchrun starts nothing unless output is
// redirected.
func torchrun(t *testing.T, py peerPython, part string, ranks, restarts int,
	command ...string) (output string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args := []string{"-m", "torch.distributed.run", fmt.Sprint("--nproc_per_node=", ranks),
		fmt.Sprint("--max_restarts=", restarts), "--monitor_interval=0.2",
		"--master_addr=127.0.0.1", "--master_port=" + freePort(t), "--log_dir", t.TempDir(), "-r", "3", "-t",
		"3", "--no_python"}
	if strings.HasPrefix(py.version, "1.") {
		args[slices.Index(args, "3")], args[len(args)-2] = "1", "1"
	}
	cmd := exec.CommandContext(ctx, py.path, append(args, command...)...)
	cmd.Env = py.environ("SHOAL_TEST_RANK=" + part)
	cmd.WaitDelay = 10 * time.Second
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// freePort returns the number of a port that no process uses. It is below those that systems give
// to connections, which begin at 32768 on Linux: PyTorch uses it seconds later, and no connection
// that is made meanwhile takes it.
func freePort(t *testing.T) string {
	t.Helper()
	for tries := 0; ; tries++ {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			l.Close()
			return port
		}
		if tries > 1000 {
			t.Fatalf("no port is free: %v", err)
		}
	}
}

// Ranks of PyTorch and one of Go's do a job together. In the first start the rank of Go is killed.
// torchrun starts all of them anew.
func TestRank_TorchrunStartsGoBesidePyTorch(t *testing.T) {
	eachTorchrun(t, func(t *testing.T, py peerPython) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		script, err := filepath.Abs("testdata/ranks.py")
		if err != nil {
			t.Fatal(err)
		}
		choose := fmt.Sprintf(`if [ "$RANK" = 2 ]; then exec %s; else unset SHOAL_TEST_RANK; exec %s %s; fi`,
			self, py.path, script)
		out, err := torchrun(t, py, "mixed", 3, 1, "/bin/sh", "-c", choose)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{"python 0 is done", "python 1 is done", "go 2 is done"} {
			if strings.Count(out, want) != 1 {
				t.Errorf("not once %q in\n%s", want, out)
			}
		}
	})
}

// torchrun's report has the error with which a rank of Go has failed.
func TestRank_TorchrunReportsWhatGoFailedWith(t *testing.T) {
	eachTorchrun(t, func(t *testing.T, py peerPython) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		out, err := torchrun(t, py, "fail", 1, 0, self)
		if err == nil || !strings.Contains(out, "no such weights") || !strings.Contains(out, "exitcode") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// A pythonStore is a TCPStore of PyTorch.
type pythonStore struct {
	t    *testing.T
	addr string
	in   io.Writer
	out  *bufio.Scanner
	cmd  *exec.Cmd
}

func startStore(t *testing.T, py peerPython) *pythonStore {
	t.Helper()
	cmd := exec.Command(py.path, "testdata/store.py")
	cmd.Env, cmd.Stderr = py.environ(), os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	s := &pythonStore{t: t, in: in, out: bufio.NewScanner(out), cmd: cmd}
	s.addr = "127.0.0.1:" + s.line()
	return s
}

func (s *pythonStore) line() string {
	s.t.Helper()
	if !s.out.Scan() {
		s.t.Fatal("the store has ended")
	}
	return s.out.Text()
}

// call calls a method of the store in Python.
func (s *pythonStore) call(args ...any) string {
	s.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintln(s.in, string(b))
	return s.line()
}

// Every call of a Store has the effect of PyTorch's, in both dialects, and each side sees the
// changes of the other.
func TestStore_SpeaksToPyTorch(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		server := startStore(t, py)
		s, err := DialStore(ctx, server.addr, StoreOptions{MaxValue: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		first := strings.HasPrefix(py.version, "1.")
		want := func(what string, got, want any, err error) {
			t.Helper()
			if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, not %v: %v", what, got, want, err)
			}
		}
		server.call("set", "theirs", "hello")
		v, err := s.Get(ctx, "theirs")
		want("get", string(v), "hello", err)
		want("set", nil, nil, s.Prefix("job").Set(ctx, "mine", []byte("wörld")))
		want("set", server.call("get", "job/mine"), `"w\u00f6rld"`, nil)
		n, err := s.Add(ctx, "n", 5)
		want("add", n, 5, err)
		want("add", server.call("add", "n", -7), -2, nil)
		n, err = s.Add(ctx, "n", 1)
		want("add", n, -1, err)
		there, err := s.Check(ctx, "theirs", "n")
		want("check", there, true, err)
		there, err = s.Check(ctx, "theirs", "none")
		want("check", there, false, err)
		v, err = s.CompareSet(ctx, "theirs", []byte("other"), []byte("x"))
		want("compare and set", string(v), "hello", err)
		v, err = s.CompareSet(ctx, "theirs", []byte("hello"), []byte("changed"))
		want("compare and set", string(v), "changed", err)
		want("compare and set", server.call("get", "theirs"), `"changed"`, nil)
		want("several", nil, nil, s.MultiSet(ctx, []string{"a", "b", "empty"}, [][]byte{[]byte("1"), []byte("2"), {}}))
		want("several", server.call("get", "b"), `"2"`, nil)
		all, err := s.MultiGet(ctx, "b", "a", "empty")
		want("several", fmt.Sprintf("%s", all), "[2 1 ]", err)
		was, err := s.Delete(ctx, "a")
		want("delete", was, true, err)
		was, err = s.Delete(ctx, "a")
		want("delete", was, false, err)
		keys, err := s.NumKeys(ctx)
		want("number of keys", keys, server.call("num_keys"), err)
		if err := s.Append(ctx, "b", []byte("3")); first {
			if !errors.Is(err, ErrUnsupported) {
				t.Errorf("append: %v", err)
			}
		} else {
			want("append", server.call("get", "b"), `"23"`, err)
		}
		// A wait ends when the key comes, and with its context. Meanwhile other calls go on.
		done := make(chan error)
		go func() { done <- s.Wait(ctx, "n", "late") }()
		soon, stop := context.WithTimeout(ctx, 50*time.Millisecond)
		defer stop()
		var failed *StoreError
		if _, err := s.Get(soon, "never"); !errors.Is(err, context.DeadlineExceeded) ||
			!errors.As(err, &failed) || failed.Key != "never" {
			t.Errorf("%v", err)
		}
		server.call("set", "late", "")
		want("wait", nil, nil, <-done)
		// Go refuses to send a value that is too large, and does not read one of PyTorch's.
		if err := s.Set(ctx, "large", make([]byte, maxStoreValue+1)); !errors.Is(err, ErrTooLong) {
			t.Errorf("%v", err)
		}
		if err := s.Set(ctx, strings.Repeat("k", maxStoreKey), nil); !errors.Is(err, ErrTooLong) {
			t.Errorf("%v", err)
		}
		want("large", nil, nil, s.Set(ctx, "large", make([]byte, 2<<20)))
		if _, err := s.Get(ctx, "large"); !errors.Is(err, ErrTooLong) {
			t.Errorf("%v", err)
		}
		// When the server ends, all calls return an error, also those that wait.
		go func() { done <- s.Wait(ctx, "never") }()
		v, err = s.Get(ctx, "theirs")
		want("get", string(v), "changed", err)
		if err := errors.Join(server.cmd.Process.Kill(), <-done); !errors.Is(err, ErrClosed) {
			t.Errorf("%v", err)
		}
	})
}

func TestReadRank_WithoutTorchrunSaysSo(t *testing.T) {
	set := func(pairs ...string) {
		for _, name := range []string{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK",
			"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE"} {
			t.Setenv(name, "") // the end of the test restores it
			os.Unsetenv(name)
		}
		for i := 0; i < len(pairs); i += 2 {
			os.Setenv(pairs[i], pairs[i+1])
		}
	}
	for want, pairs := range map[string][]string{
		"RANK is not set":        nil,
		`RANK is "one"`:          {"RANK", "one", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", "1"},
		"MASTER_PORT is not set": {"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost"},
		"MASTER_ADDR is not set": {"RANK", "1", "WORLD_SIZE", "2", "MASTER_PORT", "29500"},
		"rank 2 of 2":            {"RANK", "2", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", "1"},
		"port 70000":             {"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "localhost", "MASTER_PORT", "70000"},
	} {
		set(pairs...)
		if _, err := Rendezvous(t.Context(), StoreOptions{}); !errors.Is(err, ErrNoRank) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	set("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "192.0.2.1", "MASTER_PORT", "29500")
	if _, err := Rendezvous(t.Context(), StoreOptions{}); err == nil ||
		!strings.Contains(err.Error(), "another machine") {
		t.Errorf("%v", err)
	}
	os.Setenv("MASTER_ADDR", "::1")
	path := filepath.Join(t.TempDir(), "error.json")
	os.Setenv("TORCHELASTIC_ERROR_FILE", path)
	r, err := ReadRank()
	if err != nil || r.MasterAddr != "[::1]:29500" || r.LocalWorldSize != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	failed := errors.New("x")
	if err := r.Record(nil); err != nil {
		t.Error(err)
	}
	if err := r.Record(failed); !errors.Is(err, failed) {
		t.Error(err)
	}
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"message":"*errors.errorString: x"`) {
		t.Errorf("%s, %v", b, err)
	}
}
