package torch

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestRegion_IsUsedAgain closes tensors that PyTorch still has, or has not received yet. Go must
// leave their memory alone, and use it again when PyTorch has dropped the tensors.
func TestRegion_IsUsedAgain(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, s := range []Strategy{Proc, FileDescriptor, FileSystem} {
			cell(t, string(s),
				func(t *testing.T) { warmMemory(t, converse(t, py, Options{Strategy: s}, "file_descriptor")) })
		}
	})
}

func warmMemory(t *testing.T, k *talk) {
	const n = 300_000 // a size class of its own
	id := func(x *tensor.Tensor) sys.FileID { return foreignTensors.LoanOf(x.Storage()).(tenant).id }
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
	if err := k.Send(k.ctx, python.Tuple{"take", first}); err != nil {
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

// TestConn_RefusesOddTensors wants typed errors for tensors that cannot cross. Nothing of them
// stays open in PyTorch, and the next message comes.
func TestConn_RefusesOddTensors(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, theirs := range []string{"fetched", "file_descriptor", "file_system"} {
			k := converse(t, py, Options{}, theirs)
			k.ask("make", "plain", "float32") // starts the parts that PyTorch starts once
			k.ask("drop")
			before := asked[[]int](k, "open")
			leaks := 0 // leaks of PyTorch's own, when it gives up in the middle of a message
			for _, kind := range []string{"sparse", "meta", "quantized", "nested", "subclass", "class", "float8_e4m3fnuz",
				"numpy strings", "numpy objects", "numpy dates", "numpy date", "numpy structure",
				"keys of a class", "members of a class", "tuple as a key", "frozenset of a class"} {
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

// advice is the first expression in an error that says what to send in the place of a tensor.
var advice = regexp.MustCompile(`\.\w+\([\w.]*\)`)

// tensorsIn returns the tensors of a value, which the test's collection closes.
func tensorsIn(v any) (all []*tensor.Tensor) {
	switch v := v.(type) {
	case *tensor.Tensor:
		return []*tensor.Tensor{v}
	case python.Tuple:
		for _, item := range v {
			all = append(all, tensorsIn(item)...)
		}
	}
	return all
}

// oddTensor reports whether PyTorch itself refused, which depends on the version.
func oddTensor(t *testing.T, k *talk, kind string) (refused bool) {
	if err := k.Send(k.ctx, python.Tuple{"odd", kind}); err != nil {
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
		if !errors.Is(err, ErrGlobal) || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "Thing") {
			t.Errorf("a class of the user's: %v, %v", v, err)
		}
	case !errors.Is(err, ErrUnsupported):
		t.Errorf("%v, %v", v, err)
	case slices.Contains([]string{"sparse", "quantized", "nested", "subclass", "float8_e4m3fnuz"}, kind):
		code := advice.FindString(err.Error())
		if v := k.ask("advised", kind, code); len(tensorsIn(v)) == 0 {
			t.Errorf("%v: x%s arrives as %v", err, code, v)
		}
	}
	if got := k.ask("say", "next"); got != "next" {
		t.Errorf("after it came %v", got)
	}
	return refused
}

// TestConn_ValuesCross sends values that only PyTorch and numpy have, and those that Go makes of
// its own types, and wants Python's repr of them.
func TestConn_ValuesCross(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for protocol := 2; protocol <= 5; protocol++ {
			cell(t, fmt.Sprint("protocol ", protocol), func(t *testing.T) {
				k := converse(t, py, Options{Protocol: protocol}, "file_descriptor")
				numbers := tensor.FromSlice([]int32{1, 2, 3, 4}, 2, 2)
				for _, c := range []form{
					{-1, "-1"}, {uint64(1 << 63), "9223372036854775808"}, {[]int{1, 2}, "[1, 2]"},
					{[2]bool{true}, "(True, False)"},
					{map[string]int{"b": 1, "a": 2}, "{'a': 2, 'b': 1}"},
					{struct {
						A int     `torch:"alpha"`
						B float32 `torch:"-"`
						C *int
					}{A: 3}, "{'alpha': 3, 'C': None}"},
					{tensor.BFloat16, "torch.bfloat16"}, {python.Size{2, 3}, "torch.Size([2, 3])"},
					{python.Device("cpu"), "device(type='cpu')"},
					{&python.Array{DType: "<f4", Shape: []int{2, 2}, Data: make([]byte, 16)},
						"array([[0., 0.],\n       [0., 0.]], dtype=float32)"},
					{testutil.Value(value.ArrayOf(numbers.T()))(t), "array([[1, 3],\n       [2, 4]], dtype=int32)"},
				} {
					if got := k.ask("repr", c.v); got != c.repr {
						t.Errorf("%v arrived as %v, not %s", c.v, got, c.repr)
					}
				}
				numpyValues(t, k, protocol)
				k.bye()
			})
		}
	})
}

// numpyValues come from Python.
func numpyValues(t *testing.T, k *talk, protocol int) {
	const numpy = "__import__('numpy')."
	for _, code := range []string{numpy + "arange(6, dtype='<f4').reshape(2, 3)",
		numpy + "arange(6, dtype='<i8').reshape(3, 2).T", numpy + "zeros((0, 2))", numpy + "int16(-2)",
		numpy + "float64(0.5)", numpy + "bool_(True)"} {
		v, err := pt.Unmarshal(asked[[]byte](k, "eval", fmt.Sprintf("pickle.dumps(%s, %d)", code, protocol)))
		if err != nil {
			t.Errorf("%s: %v", code, err)
			continue
		}
		if got, want := k.ask("repr", v), k.ask("eval", "repr("+code+")"); got != want {
			t.Errorf("%s came back as %v, not %v", code, got, want)
		}
	}
	got := k.ask("eval",
		"(__import__('numpy').arange(6,dtype='<i4').reshape(2,3).T, __import__('numpy').float32(1.5), {(1,2): "+
			"{3}}, torch.Size([4]), torch.float16, torch.device('cuda:1'))").(python.Tuple)
	x, err := value.TensorOf(got[0].(*python.Array))
	if err != nil || fmt.Sprint(x.Shape()) != "[3 2]" || tensor.At[int32](x, 2, 1) != 5 {
		t.Errorf("a transposed numpy array: %v, %v", x, err)
	}
	if n, err := value.NumberOf(got[1].(*python.Scalar)); n != 1.5 || err != nil {
		t.Errorf("a numpy number: %v, %v", n, err)
	}
	if !reflect.DeepEqual(got[3:], python.Tuple{python.Size{4}, tensor.Float16, python.Device("cuda:1")}) {
		t.Errorf("%v", got[3:])
	}
}

// TestConn_AvoidsTheTrapsOfPyTorch tries those traps of the protocol that need a PyTorch.
func TestConn_AvoidsTheTrapsOfPyTorch(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := converse(t, py, Options{Strategy: FileDescriptor}, "fetched")
		cell(t, "a flood of descriptors, fetched at once", func(t *testing.T) { flood(t, k) })
		cell(t, "sent and closed at once", func(t *testing.T) {
			x := pattern(k, tensor.Float32, 4)
			if err := k.Send(k.ctx, python.Tuple{"take", x}); err != nil {
				t.Fatal(err)
			}
			x.Close()
			if v, err := k.Recv(k.ctx); err != nil || !sameNumbers(v.(python.Tuple)[1], [][]float64{{0, 1, 0, 1}}) {
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
			if got := k.ask("eval", "error(lambda: kept.resize_(10000))"); got != "RuntimeError" {
				t.Errorf("resized: %v", got)
			}
			r := foreignTensors.LoanOf(x.Storage()).(tenant).region
			if err := sys.Resize(r.file, 0); err == nil {
				t.Error("the file of a tensor could be cut")
			}
		})
		cell(t, "descriptors promised to a process that ended", func(t *testing.T) {
			if err := k.Send(k.ctx, python.Tuple{"make", "plain", "float32"}); err != nil {
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
			if _, err := k.importer().unmarshal(raw); !errors.Is(err, ErrGone) {
				t.Errorf("%v", err)
			}
		})
	})
}

// TestGuard_PyTorchTruncates lets PyTorch cut its own memory short, while a tensor here is on it,
// and before one arrives.
func TestGuard_PyTorchTruncates(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		k := converse(t, py, Options{}, "file_system")
		x := k.ask("make", "plain", "float32").(*tensor.Tensor)
		// and keep it: freeing it is a fault
		cut := fmt.Sprintf("(globals().update(cut=kept), os.truncate(%q, 0))[1]",
			foreignTensors.LoanOf(x.Storage()).(tenant).path())
		k.wantEval(cut, nil)
		if err := Guard(func() { x.Fill(1) }); !errors.Is(err, ErrTruncated) {
			t.Errorf("a write to memory that was cut: %v", err)
		}
		if err := k.Send(k.ctx, python.Tuple{"make", "plain", "int64"}); err != nil {
			t.Fatal(err)
		}
		raw, err := k.RecvBytes(k.ctx)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := pickle.Unmarshal(raw, allowed().Find, pickle.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for o := range pickle.Each[*pickle.Object](tree) {
			if o.Class == rebuildFilename {
				k.p.Signal(syscall.SIGKILL) // PyTorch would fault itself
				k.p.Wait(k.ctx)
				if err := os.Truncate(shmDir+string(o.Args[2].([]byte)), 8); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := k.importer().unmarshal(raw); !errors.Is(err, ErrTruncated) {
			t.Errorf("memory that was cut before it arrived: %v", err)
		}
		x.Close()
	})
}

func flood(t *testing.T, k *talk) {
	const n = 24
	before := openFiles(t)
	if err := k.Send(k.ctx, python.Tuple{"flood", n}); err != nil {
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
			v, err := k.importer().unmarshal(b)
			if err != nil {
				t.Error(err)
			}
			CloseAll(v)
		})
	}
	wg.Wait()
	if after := openFiles(t); after > before+2 { // the poller may have opened one meanwhile
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}
