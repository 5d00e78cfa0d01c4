package pickle_test

import (
	"errors"
	"math/big"
	"testing"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/ipc/pickle"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

func bigInt(t *testing.T, text string) *big.Int {
	t.Helper()
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		t.Fatalf("%q is no integer", text)
	}
	return n
}

// A message crosses a queue with its tensors, which share the memory of the sender's tensors.
func TestValue_CrossesAQueueWithoutACopy(t *testing.T) {
	ctx := testutil.Context(t)
	q := testutil.Value(ipc.NewQueue[pickle.Value](2))(t)
	defer q.Close()
	x := testutil.Value(tensor.NewShared(tensor.Float32, 4))(t)
	defer x.Close()
	sent := testutil.Value(pickle.Encode(python.NewDict("x", x, "tail", x.Narrow(0, 2, 2), "n", 3)))(t)
	testutil.NoError(t, q.Put(ctx, sent), sent.Close())
	m := testutil.Value(q.Get(ctx))(t)
	got := testutil.Value(m.Decode())(t).(*python.Dict)
	received, _ := got.Get("x")
	received.(*tensor.Tensor).Fill(5)
	tail, _ := got.Get("tail")
	tail.(*tensor.Tensor).Fill(6)
	if want := tensor.FromSlice([]float32{5, 5, 6, 6}, 4); !tensor.Equal(x, want) {
		t.Errorf("the sender has %v, want %v", x, want)
	}
	testutil.NoError(t, m.Close(), m.Close())
	if _, err := m.Decode(); !errors.Is(err, tensor.ErrClosed) {
		t.Errorf("Decode after Close returned %v, want %v", err, tensor.ErrClosed)
	}
}

// A tensor on the heap is shared when it is sent, so that Python does not get a pointer to memory
// of Go's.
func TestValue_SharesTheHeap(t *testing.T) {
	ctx := testutil.Context(t)
	q := testutil.Value(ipc.NewQueue[pickle.Value](1))(t)
	defer q.Close()
	x := tensor.Ones(tensor.Float32, 3, 2).T()
	sent := testutil.Value(pickle.Encode(x))(t)
	testutil.NoError(t, q.Put(ctx, sent), sent.Close())
	m := testutil.Value(q.Get(ctx))(t)
	defer m.Close()
	got := testutil.Value(m.Decode())(t).(*tensor.Tensor)
	if !got.IsShared() || !x.IsShared() || got.IsContiguous() {
		t.Errorf("shared: %v, and %v for the sender, contiguous: %v", got.IsShared(), x.IsShared(), got.IsContiguous())
	}
	got.Fill(2)
	if x.Sum() != 12 {
		t.Errorf("the sender has the sum %v, want 12", x.Sum())
	}
}

// A tensor that occurs several times is one element, and its views are elements of their own.
func TestEncode_CountsATensorOnce(t *testing.T) {
	x := tensor.Ones(tensor.Float32, 4)
	m := testutil.Value(pickle.Encode([]any{x, x, pickle.Array{Tensor: x}, x.Narrow(0, 1, 2)}))(t)
	defer m.Close()
	if len(m.Tensors) != 2 {
		t.Fatalf("%d tensors, want 2", len(m.Tensors))
	}
	got := testutil.Value(m.Decode())(t).([]any)
	if got[0] != got[1] || got[2].(*pickle.Array).Tensor != got[0] || !got[3].(*tensor.Tensor).SameStorage(x) {
		t.Errorf("got %v, want one tensor three times and a view of it", got)
	}
	if testutil.NoError(t, m.Close()); x.Sum() != 4 {
		t.Error("Close closed the tensor of the caller")
	}
}

// A long pickle crosses a queue in shared memory, although a message is limited to 64 MiB.
func TestValue_LongPickles(t *testing.T) {
	ctx := testutil.Context(t)
	q := testutil.Value(ipc.NewQueue[pickle.Value](1))(t)
	defer q.Close()
	x := tensor.Ones(tensor.Float32, 1)
	for _, size := range []int{1 << 20, 65 << 20} {
		sent := testutil.Value(pickle.Encode([]any{make([]byte, size), x}))(t)
		if sent.Long == nil || sent.Pickle != nil || len(sent.Tensors) != 1 {
			t.Fatalf("%d bytes are in Pickle, want them in Long", size)
		}
		testutil.NoError(t, q.Put(ctx, sent), sent.Close())
		m := testutil.Value(q.Get(ctx))(t)
		got := testutil.Value(m.Decode())(t).([]any)
		if len(got[0].([]byte)) != size || got[1].(*tensor.Tensor).Sum() != 1 {
			t.Errorf("got %d bytes and %v", len(got[0].([]byte)), got[1])
		}
		testutil.NoError(t, m.Close())
		if _, err := m.Decode(); !errors.Is(err, tensor.ErrClosed) {
			t.Errorf("Decode after Close returned %v, want %v", err, tensor.ErrClosed)
		}
	}
	bytes := tensor.New(tensor.Uint8, 8)
	for _, long := range []*tensor.Tensor{x, bytes.View(2, 4), bytes.Slice(0, 0, 8, 2)} {
		if _, err := (pickle.Value{Long: long}).Decode(); !errors.Is(err, pickle.ErrFormat) {
			t.Errorf("a long pickle of %v %v: %v", long.DType(), long.Shape(), err)
		}
	}
	both := pickle.Value{Pickle: []byte("N."), Long: bytes}
	if _, err := both.Bytes(); !errors.Is(err, pickle.ErrFormat) {
		t.Errorf("two pickles: %v", err)
	}
}

func TestEncode_Refuses(t *testing.T) {
	closed := tensor.Ones(tensor.Float32, 1)
	testutil.NoError(t, closed.Close())
	deep := any(1)
	for range 2000 {
		deep = []any{deep}
	}
	x := tensor.Ones(tensor.Float32, 1)
	for name, c := range map[string]struct {
		v    any
		want error
	}{
		"a channel":                 {make(chan int), pickle.ErrUnsupported},
		"a function":                {func() {}, pickle.ErrUnsupported},
		"a closed tensor":           {[]any{x, closed}, tensor.ErrClosed},
		"an array without a tensor": {pickle.Array{}, tensor.ErrClosed},
		"bfloat16 for numpy":        {pickle.Array{Tensor: x.To(tensor.BFloat16)}, pickle.ErrUnsupported},
		"float8 for numpy":          {&pickle.Array{Tensor: x.To(tensor.Float8E5M2)}, pickle.ErrUnsupported},
		"a message":                 {pickle.Value{}, pickle.ErrUnsupported},
		"a record":                  {&python.Record{}, pickle.ErrUnsupported},
		"nested too deeply":         {deep, pickle.ErrUnsupported},
		"two equal keys":            {map[any]int{1: 1, 1.0: 2}, pickle.ErrUnsupported},
	} {
		m, err := pickle.Encode(c.v)
		if !errors.Is(err, c.want) || m.Pickle != nil || m.Tensors != nil {
			t.Errorf("%s: %v and %v, want %v", name, m, err, c.want)
		}
	}
	if x.Sum() != 1 {
		t.Error("a tensor of the caller was closed")
	}
}

// Messages that Python does not write are errors with the reason.
func TestDecode_Refuses(t *testing.T) {
	x := tensor.Ones(tensor.Float32, 1)
	for name, c := range map[string]struct {
		pickle string
		text   string
		want   error
	}{
		"nothing":                 {"", "empty", pickle.ErrFormat},
		"no end":                  {"\x80\x05N", "", pickle.ErrFormat},
		"more than one pickle":    {"\x80\x05N.N.", "", pickle.ErrFormat},
		"an index too large":      {"\x80\x05K\x02Q.", "want 0 to 1", pickle.ErrFormat},
		"a negative index":        {"\x80\x05J\xff\xff\xff\xffQ.", "want 0 to 1", pickle.ErrFormat},
		"an array beyond the end": {"\x80\x05\x8c\x01nK\x07\x86Q.", "persistent ID 7", pickle.ErrFormat},
		"an unknown kind":         {"\x80\x05\x8c\x01xK\x00\x86Q.", `"n" or "g"`, pickle.ErrFormat},
		"a storage of torch.save": {"\x80\x05\x8c\x07storageQ.", "is string", pickle.ErrFormat},
		"an index that is a list": {"\x80\x05\x8c\x01n]\x86Q.", "want an int", pickle.ErrFormat},
		"a list in itself":        {"\x80\x05]\x94h\x00a.", "contains itself", pickle.ErrUnsupported},
		"a closed tensor":         {"\x80\x05K\x01Q.", "tensor 1", tensor.ErrClosed},
		"a parameter of nothing": {"\x80\x05ctorch._utils\n_rebuild_parameter\n)R.", "no arguments",
			pickle.ErrFormat},
		"a parameter that is an int": {"\x80\x05ctorch._utils\n_rebuild_parameter\nK\x01\x85R.", "want a tensor",
			pickle.ErrFormat},
	} {
		closed := tensor.Ones(tensor.Float32, 1)
		testutil.NoError(t, closed.Close())
		v, err := pickle.Value{Pickle: []byte(c.pickle), Tensors: []*tensor.Tensor{x, closed}}.Decode()
		if v != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v and %v, want %v", name, v, err, c.want)
			continue
		}
		testutil.ErrorContains(t, err, c.text)
	}
	_, err := pickle.Value{Pickle: []byte("\x80\x05K\x02Q.")}.Decode()
	var index *pickle.IndexError
	if !errors.As(err, &index) || index.Index != 2 || index.Tensors != 0 {
		t.Errorf("%v, want an IndexError", err)
	}
}

// A torch.nn.Parameter, and a tensor that requires gradients, is its tensor.
func TestDecode_Parameters(t *testing.T) {
	x := tensor.Ones(tensor.Float32, 1)
	for _, b := range []string{
		"\x80\x05ctorch._utils\n_rebuild_parameter\nK\x00Q\x88ccollections\nOrderedDict\n)R\x87R.",
		"\x80\x05\x8c\x01gK\x00\x86Q.",
	} {
		got, err := pickle.Value{Pickle: []byte(b), Tensors: []*tensor.Tensor{x}}.Decode()
		if err != nil || got != x {
			t.Errorf("%q is %v and %v, want the tensor", b, got, err)
		}
	}
}

// A message becomes a struct, and a numpy.ndarray a tensor or an Array, without a copy.
func TestDecodeAs(t *testing.T) {
	x := tensor.Ones(tensor.Float32, 2)
	m := testutil.Value(pickle.Encode(python.NewDict("step", 7, "obs", x, "mask", pickle.Array{Tensor: x},
		"rest", python.Tuple{pickle.Array{Tensor: x}})))(t)
	defer m.Close()
	type rollout struct {
		Step uint8            `torch:"step"`
		Obs  *tensor.Tensor   `torch:"obs"`
		Mask *tensor.Tensor   `torch:"mask"`
		Rest [1]pickle.Array  `torch:"rest"`
		None map[string]int64 `torch:"none"`
	}
	got := testutil.Value(pickle.DecodeAs[rollout](m))(t)
	if got.Step != 7 || got.Obs != m.Tensors[0] || got.Mask != got.Obs || got.Rest[0].Tensor != got.Obs ||
		got.None != nil {
		t.Errorf("got %+v", got)
	}
	if _, err := pickle.DecodeAs[struct{ Step int }](m); !errors.Is(err, pickle.ErrUnsupported) {
		t.Errorf("a struct without fields for the keys: %v", err)
	}
	if _, err := pickle.DecodeAs[int](m); !errors.Is(err, pickle.ErrUnsupported) {
		t.Errorf("a dict as an int: %v", err)
	}
	if _, err := pickle.DecodeAs[int](pickle.Value{}); !errors.Is(err, pickle.ErrFormat) {
		t.Errorf("an empty message: %v", err)
	}
}

// FuzzDecode decodes messages with three tensors, and encodes their values again.
func FuzzDecode(f *testing.F) {
	x := tensor.Ones(tensor.Float32, 2)
	for _, v := range []any{nil, []any{1, "a", 2.5}, map[string]any{"x": x, "y": pickle.Array{Tensor: x}},
		python.Tuple{true, []byte("b")}, tensor.Float32, python.Size{1, 2}} {
		f.Add(testutil.Must(pickle.Encode(v)).Pickle)
	}
	f.Add([]byte("\x80\x05\x8c\x01gK\x00\x86Q."))
	f.Add([]byte("\x80\x05ctorch._utils\n_rebuild_parameter\nK\x00Q\x88ccollections\nOrderedDict\n)R\x87R."))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := pickle.Value{Pickle: b, Tensors: []*tensor.Tensor{x, nil, x.Narrow(0, 1, 1)}}
		v, err := m.Decode()
		if err != nil {
			for _, want := range []error{pickle.ErrFormat, pickle.ErrUnsupported, pickle.ErrLimit, tensor.ErrClosed} {
				if errors.Is(err, want) {
					return
				}
			}
			t.Fatalf("an error of no kind: %v", err)
		}
		again, err := pickle.Encode(v)
		if errors.Is(err, pickle.ErrUnsupported) || errors.Is(err, pickle.ErrLimit) {
			return
		}
		testutil.NoError(t, err)
		if _, err := again.Decode(); err != nil {
			t.Fatalf("decoded %#v, encoded it and got %v", v, err)
		}
	})
}
