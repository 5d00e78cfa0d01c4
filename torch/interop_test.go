package torch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
)

// TestWarmMemory closes tensors that PyTorch still has, or has not received yet, and wants their memory left alone; and used
// again once PyTorch has dropped them.
func TestWarmMemory(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		for _, s := range []Strategy{Proc, FileDescriptor, FileSystem} {
			cell(t, s.String(), func(t *testing.T) { warmMemory(t, converse(t, py, Options{Strategy: s}, "file_descriptor")) })
		}
	})
}

func warmMemory(t *testing.T, k *talk) {
	const n = 300_000 // a size class of its own
	id := func(x *tensor.Tensor) sys.FileID { return x.Storage().Loan().(tenant).id }
	fresh := func() *tensor.Tensor {
		t.Helper()
		x, err := k.opts.Empty(tensor.Uint8, n)
		if err != nil {
			t.Fatal(err)
		}
		return x.Fill(7)
	}
	first := fresh()
	used := []sys.FileID{id(first)}
	if err := k.Send(k.ctx, Tuple{"take", first}); err != nil {
		t.Fatal(err)
	}
	first.Close() // while it is under way, perhaps
	other := fresh().Fill(9)
	if slices.Contains(used, id(other)) {
		t.Fatal("memory under way to PyTorch was used again")
	}
	used = append(used, id(other))
	if _, err := k.Recv(k.ctx); err != nil { // so it has arrived
		t.Fatal(err)
	}
	third := fresh().Fill(9)
	if slices.Contains(used, id(third)) {
		t.Fatal("memory that PyTorch has was used again")
	}
	third.Close()
	other.Close()
	if got := asked[[][]float64](k, "read"); got[0][0] != 7 || got[0][n-1] != 7 {
		t.Fatalf("PyTorch's tensor changed to %v", got[0][0])
	}
	k.ask("drop")
	again := []*tensor.Tensor{fresh(), fresh(), fresh()}
	found := 0
	for _, x := range again {
		if slices.Contains(used, id(x)) {
			found++
		}
		x.Close()
	}
	if found != 2 { // first and other; third may have been other's
		t.Errorf("%d of 2 memories that PyTorch had dropped were used again", found)
	}
	k.bye()
}

// TestOddTensors wants typed errors for what cannot cross, nothing of it left open in PyTorch, and the next message.
func TestOddTensors(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		for _, theirs := range []string{"file_descriptor", "file_system"} {
			k := converse(t, py, Options{}, theirs)
			k.ask("make", "plain", "float32") // starts what PyTorch starts once
			k.ask("drop")
			before := asked[[]int](k, "open")
			leaks := 0 // of PyTorch's own, where it gives up in the middle of a message
			for _, kind := range []string{"sparse", "meta", "quantized", "subclass", "class", "uint16"} {
				cell(t, theirs+" "+kind, func(t *testing.T) {
					if oddTensor(t, k, kind) {
						leaks++
					}
				})
			}
			if after := asked[[]int](k, "open"); after[0] > before[0]+leaks {
				t.Errorf("%s: PyTorch had %d descriptors open, and has %d", theirs, before[0], after[0])
			}
			k.bye()
		}
	})
}

// oddTensor reports whether it was PyTorch itself that refused, which depends on the version.
func oddTensor(t *testing.T, k *talk, kind string) (refused bool) {
	if err := k.Send(k.ctx, Tuple{"odd", kind}); err != nil {
		t.Fatal(err)
	}
	v, err := k.Recv(k.ctx)
	text, refused := v.(string)
	switch {
	case refused && err == nil:
		if !strings.Contains(text, ": ") {
			t.Errorf("%q", text)
		}
	case kind == "class":
		if !errors.Is(err, ErrGlobal) || !strings.Contains(err.Error(), "Thing") {
			t.Errorf("a class of the user's: %v, %v", v, err)
		}
	case !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrGlobal):
		t.Errorf("%v, %v", v, err)
	}
	if got := k.ask("say", "next"); got != "next" {
		t.Errorf("after it came %v", got)
	}
	return refused
}

// TestValues sends plain values and wants Python's repr of them, and the same back.
func TestValues(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		for protocol := 2; protocol <= 5; protocol++ {
			cell(t, fmt.Sprint("protocol ", protocol), func(t *testing.T) {
				k := converse(t, py, Options{Protocol: protocol}, "file_descriptor")
				frozen, _ := NewSet(true, 1)
				set, _ := NewSet(false, "a")
				array := &Array{DType: "<f4", Shape: []int{2, 2}, Data: make([]byte, 16)}
				for _, c := range []struct {
					v    any
					repr string
				}{
					{nil, "None"}, {true, "True"}, {-1, "-1"}, {1 << 40, "1099511627776"}, {uint64(1 << 63), "9223372036854775808"},
					{1.5, "1.5"}, {2i, "2j"}, {"é\x00\U0001f600", `'é\x00😀'`}, {[]byte{0, 255}, `b'\x00\xff'`}, {&ByteArray{Bytes: []byte("x")}, "bytearray(b'x')"},
					{Tuple{}, "()"}, {Tuple{1, Tuple{2}}, "(1, (2,))"}, {[]int{1, 2}, "[1, 2]"}, {[2]bool{true}, "(True, False)"},
					{map[string]int{"b": 1, "a": 2}, "{'a': 2, 'b': 1}"}, {set, "{'a'}"}, {frozen, "frozenset({1})"},
					{struct {
						A int     `torch:"alpha"`
						B float32 `torch:"-"`
						C *int
					}{A: 3}, "{'alpha': 3, 'C': None}"},
					{tensor.BFloat16, "torch.bfloat16"}, {Size{2, 3}, "torch.Size([2, 3])"}, {Device("cpu"), "device(type='cpu')"},
					{Global{Module: "collections", Name: "OrderedDict"}, "<class 'collections.OrderedDict'>"},
					{array, "array([[0., 0.],\n       [0., 0.]], dtype=float32)"},
				} {
					if got := k.ask("repr", c.v); got != c.repr {
						t.Errorf("%v arrived as %v, not %s", c.v, got, c.repr)
					}
				}
				got := k.ask("eval", "(__import__('numpy').arange(6,dtype='<i4').reshape(2,3).T, __import__('numpy').float32(1.5), 1 << 70, {(1,2): {3}}, torch.Size([4]), torch.float16, torch.device('cuda:1'))").(Tuple)
				x, err := TensorOf(got[0].(*Array))
				if err != nil || fmt.Sprint(x.Shape()) != "[3 2]" || tensor.At[int32](x, 2, 1) != 5 {
					t.Errorf("a transposed numpy array: %v, %v", x, err)
				}
				if n, err := NumberOf(got[1].(*Scalar)); n != 1.5 || err != nil {
					t.Errorf("a numpy number: %v, %v", n, err)
				}
				if fmt.Sprint(got[2]) != "1180591620717411303424" || fmt.Sprint(got[4:]) != "([4] float16 cuda:1)" && fmt.Sprint(got[4:]) != "[[4] float16 cuda:1]" {
					t.Errorf("%v", got[2:])
				}
				k.bye()
			})
		}
	})
}

// TestTraps are those of the wire protocol that need a PyTorch.
func TestTraps(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		k := converse(t, py, Options{Strategy: FileDescriptor}, "file_descriptor")
		cell(t, "a flood of descriptors, fetched at once", func(t *testing.T) { flood(t, k) })
		cell(t, "sent and closed at once", func(t *testing.T) {
			x := pattern(k, tensor.Float32, 4)
			if err := k.Send(k.ctx, Tuple{"take", x}); err != nil {
				t.Fatal(err)
			}
			x.Close()
			if v, err := k.Recv(k.ctx); err != nil || !sameNumbers(v.(Tuple)[1], [][]float64{{0, 1, 0, 1}}) {
				t.Errorf("%v, %v", v, err)
			}
		})
		cell(t, "a storage bigger than its tensor", func(t *testing.T) {
			base := pattern(k, tensor.Int16, 100)
			part := base.Narrow(0, 3, 2)
			k.ask("take", part)
			if n := asked[int](k, "eval", "kept.storage().nbytes()"); n != 200 {
				t.Errorf("PyTorch was told of a storage of %d bytes", n)
			}
			CloseAll([]any{base, part})
		})
		cell(t, "PyTorch cannot resize our memory", func(t *testing.T) {
			x := pattern(k, tensor.Uint8, 10)
			defer x.Close()
			k.ask("take", x)
			if got := k.ask("eval", "[f for f in [lambda: kept.resize_(10000)] if not __import__('contextlib').suppress(RuntimeError).__exit__(None, None, None)] and 'tried'"); got != "tried" {
				t.Fatal(got)
			}
			r := x.Storage().Loan().(tenant).region
			if err := sys.Resize(r.file, 0); err == nil {
				t.Error("the file of a tensor could be cut")
			}
		})
		cell(t, "descriptors promised to a process that ended", func(t *testing.T) {
			if err := k.Send(k.ctx, Tuple{"make", "plain", "float32"}); err != nil {
				t.Fatal(err)
			}
			raw, err := k.RecvBytes(k.ctx)
			if err != nil {
				t.Fatal(err)
			}
			k.p.Signal(syscall.SIGKILL)
			var failed *ProcessError
			if err := k.p.Wait(k.ctx); !errors.As(err, &failed) || failed.Signal != syscall.SIGKILL {
				t.Errorf("killed: %v", err)
			}
			if _, err := k.importer(k.ctx).unmarshal(raw); !errors.Is(err, ErrGone) {
				t.Errorf("%v", err)
			}
		})
	})
}

func flood(t *testing.T, k *talk) {
	const n = 24
	before := openFiles(t)
	if err := k.Send(k.ctx, Tuple{"flood", n}); err != nil {
		t.Fatal(err)
	}
	raw := make([][]byte, n)
	for i := range raw {
		var err error
		if raw[i], err = k.RecvBytes(k.ctx); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for _, b := range raw {
		wg.Go(func() {
			v, err := k.importer(k.ctx).unmarshal(b)
			if err != nil {
				t.Error(err)
			}
			CloseAll(v)
		})
	}
	wg.Wait()
	if after := openFiles(t); after > before+2 { // the poller may have come meanwhile
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}

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

// TestKilled kills PyTorch while Go has its tensors, and lets go of everything after that.
func TestKilled(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		for _, theirs := range []string{"file_descriptor", "file_system"} {
			cell(t, theirs, func(t *testing.T) {
				names := torchFiles(t)
				k := converse(t, py, Options{}, theirs)
				files, maps := openFiles(t), mappings(t)
				v := k.ask("make", "list", "float32")
				mine := pattern(k, tensor.Float32, 6)
				k.ask("take", mine)
				if err := k.Send(k.ctx, Tuple{"take", mine}); err != nil { // perhaps never received
					t.Fatal(err)
				}
				k.p.Signal(syscall.SIGKILL)
				k.p.Wait(k.ctx)
				for _, x := range append(flat(v), mine) {
					x.Fill(3)
				}
				wantAll(t, append(flat(v), mine), 3, "what was written after the death of PyTorch")
				for err := error(nil); err == nil; {
					_, err = k.Recv(k.ctx) // ends: the connection is closed
				}
				CloseAll(v)
				mine.Close()
				k.Close()
				if err := Trim(); err != nil {
					t.Fatal(err)
				}
				if got := openFiles(t); got > files {
					t.Errorf("%d descriptors were open before, and %d are", files, got)
				}
				if got := mappings(t); got > maps {
					t.Errorf("%d mappings were there before, and %d are", maps, got)
				}
				waitFor(t, func() bool { return len(torchFiles(t)) <= len(names) }, "PyTorch's files in /dev/shm to go")
			})
		}
	})
}

// TestGoKilled kills a Go process while PyTorch has its tensors: they stay, and nothing else does.
func TestGoKilled(t *testing.T) {
	eachTorch(t, func(t *testing.T, py python) {
		for _, s := range []Strategy{Proc, FileSystem} {
			cell(t, s.String(), func(t *testing.T) {
				ctx := testContext(t)
				addr := filepath.Join(t.TempDir(), "socket")
				l, err := Listen("unix", addr, Options{AuthKey: testKey})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				py3 := exec.CommandContext(ctx, py.path, "-c", "import peer; peer.connect('unix', "+fmt.Sprintf("%q", addr)+", b'"+string(testKey)+"')")
				py3.Dir, py3.Stderr, py3.Env = "testdata", os.Stderr, pythonEnv()
				if err := py3.Start(); err != nil {
					t.Fatal(err)
				}
				c, err := l.Accept(ctx)
				if err != nil {
					t.Fatal(err)
				}
				k := &talk{t: t, ctx: ctx, Conn: c}
				victim(t, k, addr, s)
				if got := k.ask("read"); !sameNumbers(got, [][]float64{{5, 5, 5}}) {
					t.Errorf("after the death of Go PyTorch has %v", got)
				}
				k.ask("fill", 6)
				if got := k.ask("echo"); !sameNumbers([]any{anyFloats(got)}, [][]float64{{6, 6, 6}}) {
					t.Errorf("PyTorch sent %v on", got)
				} else {
					CloseAll(got)
				}
				k.Close()
				if err := py3.Wait(); err != nil {
					t.Error(err)
				}
				waitFor(t, func() bool { sweep(); return len(deadFiles(t)) == 0 }, "the dead process's files to go")
			})
		}
	})
}

func anyFloats(v any) (list []any) {
	for _, f := range elements(v.(*tensor.Tensor)) {
		list = append(list, f)
	}
	return list
}

// victim lets another Go process send a tensor to k's PyTorch, and kills it.
func victim(t *testing.T, k *talk, addr string, s Strategy) {
	t.Helper()
	reader, theirs, err := sys.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.CommandContext(k.ctx, os.Args[0], "-test.run", "^TestVictim$")
	cmd.Env = append(os.Environ(), "SHOAL_TORCH_VICTIM="+s.String())
	cmd.ExtraFiles, cmd.Stderr = []*os.File{theirs}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	// The victim writes its message to us, and we pass it on: PyTorch has one connection.
	relay := newConn(reader, Options{})
	raw, err := relay.RecvBytes(k.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.SendBytes(k.ctx, raw); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Recv(k.ctx); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// TestVictim is what the process of TestGoKilled does.
func TestVictim(t *testing.T) {
	s := os.Getenv("SHOAL_TORCH_VICTIM")
	if s == "" {
		t.Skip("only a part of TestGoKilled")
	}
	opts := Options{Strategy: Proc}
	if s == FileSystem.String() {
		opts.Strategy = FileSystem
	}
	c, err := connOf(os.NewFile(3, "relay"), true, opts)
	if err != nil {
		t.Fatal(err)
	}
	x, err := opts.Zeros(tensor.Float32, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Send(context.Background(), Tuple{"take", x.Fill(5)}); err != nil {
		t.Fatal(err)
	}
	c.Recv(context.Background()) // until it is killed
}

// torchFiles are the names of PyTorch's shared memory.
func torchFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(shmDir + "/torch_*")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// deadFiles are the names of Shoal's processes that have ended.
func deadFiles(t *testing.T) (dead []string) {
	t.Helper()
	files, err := filepath.Glob(shmDir + "/" + namePrefix + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if owner, ok := ownerOf(filepath.Base(f)); ok && !owner.alive() {
			dead = append(dead, f)
		}
	}
	return dead
}

// mappings counts those of shared memory in this process.
func mappings(t *testing.T) (n int) {
	t.Helper()
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if strings.Contains(s.Text(), "torch") {
			n++
		}
	}
	return n
}

func waitFor(t *testing.T, done func() bool, what string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); {
		if time.Now().After(deadline) {
			t.Errorf("waited in vain for %s", what)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestPlainPython speaks with every Python that SHOAL_PYTHONS names, without PyTorch: both roles, both networks.
func TestPlainPython(t *testing.T) {
	paths := filepath.SplitList(os.Getenv("SHOAL_PYTHONS"))
	if p, err := exec.LookPath("python3"); err == nil && len(paths) == 0 {
		paths = []string{p}
	}
	if len(paths) == 0 {
		t.Skip("there is no python3 to speak with")
	}
	for _, path := range paths {
		for _, network := range []string{"unix", "tcp"} {
			cell(t, fmt.Sprintf("%s client %s", path, network), func(t *testing.T) { plainClient(t, path, network) })
			cell(t, fmt.Sprintf("%s server %s", path, network), func(t *testing.T) { plainServer(t, path, network) })
		}
	}
}

func startPlain(t *testing.T, path, role, network, addr string) (out *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(testContext(t), path, "testdata/plain.py", role, network, addr, string(testKey))
	cmd.Stderr, cmd.Env = os.Stderr, pythonEnv()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return bufio.NewReader(pipe)
}

func plainClient(t *testing.T, path, network string) {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "socket")
	}
	l, err := Listen(network, addr, Options{AuthKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	startPlain(t, path, "client", network, l.Addr())
	c, err := l.Accept(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	plainTalk(t, c)
}

func plainServer(t *testing.T, path, network string) {
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "socket")
	}
	line, err := startPlain(t, path, "server", network, addr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(testContext(t), network, strings.TrimSpace(line), Options{AuthKey: testKey})
	if err != nil {
		t.Fatal(err)
	}
	plainTalk(t, c)
}

// plainTalk is the other side of plain.py's serve.
func plainTalk(t *testing.T, c *Conn) {
	defer c.Close()
	ctx := testContext(t)
	must := func(v any, err error) any {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := must(c.Recv(ctx)).(Tuple); len(v) != 2 || v[0] != int64(3) {
		t.Fatalf("version %v", v)
	}
	v := must(c.Recv(ctx)).(Tuple)
	pipe := v[0].(*Conn)
	defer pipe.Close()
	d := v[1].(*Dict)
	if big, _ := d.Get("big"); fmt.Sprint(big) != "-"+fmt.Sprint(bigOne(200)) {
		t.Errorf("big: %v", big)
	}
	if set, _ := d.Get("set"); !set.(*Set).Has(2) || set.(*Set).Frozen {
		t.Errorf("set: %v", set)
	}
	if err := pipe.Send(ctx, 21); err != nil {
		t.Fatal(err)
	}
	if v := must(pipe.Recv(ctx)); v != int64(42) {
		t.Errorf("through the pipe: %v", v)
	}
	f := must(sys.Memfd("note")).(*os.File)
	defer f.Close()
	f.WriteString("hello")
	f.Seek(0, io.SeekStart)
	if err := c.Send(ctx, Tuple{map[string]any{"k": []int{1}}, f}); err != nil {
		t.Fatal(err)
	}
	got := must(c.Recv(ctx)).(Tuple)
	var back map[string][]int
	if err := assign(&back, got[0]); err != nil || back["k"][0] != 1 || string(got[1].([]byte)) != "hello" {
		t.Errorf("back came %v, %v", got, err)
	}
	if b, err := c.RecvBytes(ctx); err != nil || string(b) != strings.Repeat("raw", 10000) {
		t.Errorf("%d raw bytes, %v", len(b), err)
	}
	if err := c.SendBytes(ctx, []byte("end")); err != nil {
		t.Fatal(err)
	}
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

func must2(v any, err error) any {
	if err != nil {
		panic(err)
	}
	return v
}
