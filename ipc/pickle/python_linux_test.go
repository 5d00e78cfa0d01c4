package pickle_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"reflect"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// A peer is a Python process that runs testdata/peer.py.
type peer struct {
	requests *json.Encoder
	replies  *json.Decoder
}

// A reply is the value of a request, as Python has it.
type reply struct {
	Repr    string
	Pickle  string
	Tensors []int
}

// startPeer starts Python. The test is skipped if there is none.
func startPeer(t *testing.T) *peer {
	t.Helper()
	py, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	cmd := exec.Command(py, "testdata/peer.py") // it ends with its input
	cmd.Stderr = os.Stderr
	in := testutil.Value(cmd.StdinPipe())(t)
	out := testutil.Value(cmd.StdoutPipe())(t)
	testutil.NoError(t, cmd.Start())
	t.Cleanup(func() {
		testutil.NoError(t, in.Close())
		io.Copy(io.Discard, out)
		testutil.NoError(t, cmd.Wait())
	})
	return &peer{json.NewEncoder(in), json.NewDecoder(bufio.NewReader(out))}
}

// exchange sends a request and returns the reply.
func (p *peer) exchange(t *testing.T, request map[string]any) (r reply) {
	t.Helper()
	testutil.NoError(t, p.requests.Encode(request), p.replies.Decode(&r))
	return r
}

// A step of a rollout, as a Go program may declare it.
type step struct {
	Reward float64        `torch:"reward"`
	Obs    *tensor.Tensor `torch:"obs"`
	note   string         `torch:"-"`
}

// Python's own unpickler reads the messages of Encode, and Decode reads Python's pickle of the same
// value.
func TestPython_ReadsEncodedAndIsRead(t *testing.T) {
	x, y := tensor.Arange(tensor.Float32, 0, 6, 1), tensor.New(tensor.Int64, 2, 2)
	set := testutil.Value(python.NewSet(true, "a"))(t)
	p := startPeer(t)
	for _, c := range []struct {
		in   any
		repr string
		out  any
	}{
		{nil, "None", nil},
		{true, "True", true},
		{uint8(7), "7", int64(7)},
		{-1 << 40, "-1099511627776", int64(-1 << 40)},
		{1.5, "1.5", 1.5},
		{2i, "2j", 2i},
		{"é\x00", `'é\x00'`, "é\x00"},
		{[]byte{1, 0}, `b'\x01\x00'`, []byte{1, 0}},
		{&python.ByteArray{Bytes: []byte("a")}, "bytearray(b'a')", &python.ByteArray{Bytes: []byte("a")}},
		{[]int{1, 2}, "[1, 2]", []any{int64(1), int64(2)}},
		{[2]string{"a", "b"}, "('a', 'b')", python.Tuple{"a", "b"}},
		{python.Tuple{}, "()", python.Tuple{}},
		{map[string]int{"b": 1, "a": 2}, "{'a': 2, 'b': 1}", python.NewDict("a", int64(2), "b", int64(1))},
		{set, "frozenset({'a'})", set},
		{x, "T(0)", x},
		{pickle.Array{Tensor: x}, "A(0)", &pickle.Array{Tensor: x}},
		{[]any{x, y, x}, "[T(0), T(1), T(0)]", []any{x, y, x}},
		{step{1, x, ""}, "{'reward': 1.0, 'obs': T(0)}", python.NewDict("reward", 1.0, "obs", x)},
		{[]any{&pickle.Array{Tensor: y}, x}, "[A(0), T(1)]", []any{&pickle.Array{Tensor: y}, x}},
	} {
		m, err := pickle.Encode(c.in)
		testutil.NoError(t, err)
		r := p.exchange(t, map[string]any{"pickle": hex.EncodeToString(m.Pickle), "tensors": len(m.Tensors)})
		if r.Repr != c.repr {
			t.Errorf("%v is %s in Python, want %s", c.in, r.Repr, c.repr)
		}
		for _, b := range [][]byte{m.Pickle, testutil.Value(hex.DecodeString(r.Pickle))(t)} {
			got, err := pickle.Value{Pickle: b, Tensors: m.Tensors}.Decode()
			if err != nil || !equalValues(got, c.out) {
				t.Errorf("%s is %#v and %v in Go, want %#v", c.repr, got, err, c.out)
			}
		}
		testutil.NoError(t, m.Close())
	}
}

// Decode reads values that Encode cannot write.
func TestPython_ObjectsOfItsOwn(t *testing.T) {
	x, y := tensor.Arange(tensor.Float32, 0, 6, 1), tensor.New(tensor.Int64, 2, 2)
	point := &python.Record{Class: python.Global{Module: "__main__", Name: "Point"}, Args: python.Tuple{},
		State: python.NewDict("x", x)}
	p := startPeer(t)
	for in, want := range map[string]any{
		"[T(0), G(1), A(0)]":       []any{x, y, &pickle.Array{Tensor: x}},
		"Point(T(0))":              point,
		"(lambda t: [t, t])(T(0))": []any{x, x},
		"{'a': (T(1), None)}":      python.NewDict("a", python.Tuple{x, nil}), // its order in the new message
		"Point":                    python.Global{Module: "__main__", Name: "Point"},
		"(2**64, -2**63)":          python.Tuple{bigInt(t, "18446744073709551616"), int64(-1 << 63)},
	} {
		r := p.exchange(t, map[string]any{"make": in})
		m := pickle.Value{Pickle: testutil.Value(hex.DecodeString(r.Pickle))(t), Tensors: []*tensor.Tensor{x, y}}
		got, err := m.Decode()
		if err != nil || !equalValues(got, want) {
			t.Errorf("%s is %#v and %v in Go, want %#v", in, got, err, want)
		}
	}
}

// equalValues compares values. Tensors are equal if their elements are.
func equalValues(a, b any) bool {
	switch a := a.(type) {
	case *tensor.Tensor:
		b, ok := b.(*tensor.Tensor)
		return ok && a.DType() == b.DType() && tensor.Equal(a, b)
	case *pickle.Array:
		b, ok := b.(*pickle.Array)
		return ok && equalValues(a.Tensor, b.Tensor)
	case []any:
		b, ok := b.([]any)
		return ok && equalItems(a, b)
	case python.Tuple:
		b, ok := b.(python.Tuple)
		return ok && equalItems(a, b)
	case *python.Dict:
		b, ok := b.(*python.Dict)
		return ok && equalItems(itemsOf(a), itemsOf(b))
	case *python.Record:
		b, ok := b.(*python.Record)
		return ok && a.Class == b.Class && equalValues(a.Args, b.Args) && equalValues(a.State, b.State)
	}
	return reflect.DeepEqual(a, b)
}

func equalItems(a, b []any) bool {
	for i := range a {
		if len(a) != len(b) || !equalValues(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func itemsOf(d *python.Dict) (items []any) {
	for k, v := range d.All() {
		items = append(items, k, v)
	}
	return items
}
