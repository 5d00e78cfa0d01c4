package pt

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
)

// TestMarshal_PicklesTensors come back as they were, in every protocol.
func TestMarshal_PicklesTensors(t *testing.T) {
	base := tensor.FromSlice([]float32{0, 1, 2, 3, 4, 5}, 2, 3)
	whole := value.Tuple{base.T(), base.Select(0, 1), autograd.NewParam("", tensor.Ones(tensor.BFloat16, 2)),
		tensor.Full(tensor.Uint32, 7, 2), tensor.Empty(tensor.Int64, 0, 3), "x"}
	for _, protocol := range []int{0, 2, 3, 4, 5} {
		b, err := Marshal(whole, MarshalOptions{Protocol: protocol})
		if err != nil {
			t.Fatal(err)
		}
		if want := byte(cmp.Or(protocol, 4)); b[1] != want { // after the opcode PROTO
			t.Errorf("protocol %d: the pickle has protocol %d, want %d", protocol, b[1], want)
		}
		v, err := Unmarshal(b)
		if err != nil {
			t.Fatal(err)
		}
		got := v.(value.Tuple)
		turned, row := got[0].(*tensor.Tensor), got[1].(*tensor.Tensor)
		if !turned.SameStorage(row) || !slices.Equal(turned.Strides(), []int{1, 3}) ||
			tensor.At[float32](turned, 2, 1) != 5 || tensor.At[float32](row, 0) != 3 {
			t.Errorf("protocol %d: views came back as %v and %v", protocol, turned, row)
		}
		if p, ok := got[2].(*autograd.Param); !ok || p.Frozen || p.T.DType() != tensor.BFloat16 || p.T.Sum() != 2 {
			t.Errorf("protocol %d: a parameter came back as %v", protocol, got[2])
		}
		if young := got[3].(*tensor.Tensor); young.DType() != tensor.Uint32 || tensor.At[uint32](young, 1) != 7 {
			t.Errorf("protocol %d: %v", protocol, young)
		}
		if none := got[4].(*tensor.Tensor); !slices.Equal(none.Shape(), []int{0, 3}) || got[5] != "x" {
			t.Errorf("protocol %d: %v", protocol, got[4:])
		}
	}
}

// A packed sequence comes back as one, also where the indices are missing that it has only if it
// was sorted.
func TestPackedSequence_GoesThereAndBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "packed.pt")
	both := tensor.FromSlice([]int64{1, 0, 0, 1}, 2, 2)
	for _, p := range []*PackedSequence{
		{Data: tensor.Ones(tensor.Float32, 3, 2), BatchSizes: tensor.FromSlice([]int64{2, 1}, 2)},
		{Data: tensor.Ones(tensor.Float32, 3, 2), BatchSizes: tensor.FromSlice([]int64{2, 1}, 2),
			SortedIndices: both.Select(0, 0), UnsortedIndices: both.Select(0, 1)},
	} {
		pickled, err := Marshal([]any{p, p}, MarshalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		unpickled, err := Unmarshal(pickled)
		if err != nil {
			t.Fatal(err)
		}
		if err := Save(path, []any{p, p}); err != nil {
			t.Fatal(err)
		}
		loaded, err := Load(path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{unpickled, loaded} {
			got, ok := v.([]any)[0].(*PackedSequence)
			if !ok || v.([]any)[1] != any(got) || !tensor.Equal(got.Data, p.Data) ||
				!tensor.Equal(got.BatchSizes, p.BatchSizes) {
				t.Fatalf("%T %+v", v, v)
			}
			sorted := p.SortedIndices != nil
			if (got.SortedIndices != nil) != sorted || (got.UnsortedIndices != nil) != sorted {
				t.Fatalf("%+v of %+v", got, p)
			}
			if sorted && (!tensor.Equal(got.SortedIndices, p.SortedIndices) ||
				!got.SortedIndices.SameStorage(got.UnsortedIndices)) {
				t.Errorf("indices %v and %v", got.SortedIndices, got.UnsortedIndices)
			}
		}
	}
	if err := Save(path, &PackedSequence{Data: both}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("without batch sizes: %v", err)
	}
	for name, args := range map[string]value.Tuple{"one part": {both},
		"five parts": {both, both, nil, nil, nil}, "no data": {nil, both}, "a number": {both, 5},
		"a text": {both, both, "x", nil}} {
		tree := &pickle.Object{Class: value.PackedClass, New: true, Args: value.Tuple{}}
		for _, a := range args {
			if a == any(both) {
				a = call(storageIn(oneStorage(t)))
			}
			tree.Args = append(tree.Args, a)
		}
		if v, err := Unmarshal(mustPickle(t, tree)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %T, %v", name, v, err)
		}
	}
}

// call is that of a tensor of two elements.
func call(storage any) *pickle.Object {
	return &pickle.Object{Class: value.Named(rebuildTensor),
		Args: value.Tuple{storage, 0, value.Tuple{2}, value.Tuple{1}, false, &value.Dict{Ordered: true}}}
}

// storageIn is the call that makes the storage of a file.
func storageIn(file []byte) *pickle.Object {
	return &pickle.Object{Class: loadFromBytes, Args: value.Tuple{file}}
}

// oneStorage is the file of a storage of two float32, as a pickle has it.
func oneStorage(t testing.TB) []byte {
	t.Helper()
	s := newSaver()
	if _, err := s.lowerValue(tensor.Ones(tensor.Float32, 2)); err != nil {
		t.Fatal(err)
	}
	file, err := s.order[0].encodeLegacyFile()
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUnmarshal_RefusesHostilePickles wants errors, and no more memory than the pickle has.
func TestUnmarshal_RefusesHostilePickles(t *testing.T) {
	file := oneStorage(t)
	whole, err := Unmarshal(mustPickle(t, call(storageIn(file))))
	if err != nil || whole.(*tensor.Tensor).Sum() != 2 {
		t.Fatalf("%v, %v", whole, err)
	}
	bare, err := Unmarshal(mustPickle(t, storageIn(file)))
	if err != nil || bare.(*tensor.Tensor).Numel() != 2 {
		t.Errorf("a storage by itself: %v, %v", bare, err)
	}
	// The same bytes, in as many calls as there are letters.
	often := "\x80\x04ctorch.storage\n_load_from_bytes\n\x940B" +
		string(binary.LittleEndian.AppendUint32(nil, uint32(len(file)))) + string(file) + "\x940(" +
		strings.Repeat("h\x00h\x01\x85R", 1000) + "t."
	if v, err := Unmarshal([]byte(often)); !errors.Is(err, ErrFormat) {
		t.Errorf("one storage a thousand times: %T, %v", v, err)
	}
	for name, c := range map[string]struct {
		tree any
		want error
	}{
		"a file that is cut short":  {call(storageIn(file[:len(file)-1])), ErrFormat},
		"a file of nothing":         {call(storageIn(nil)), ErrFormat},
		"a storage that is no call": {call(value.Tuple{}), ErrFormat},
		"a storage of another call": {call(call(storageIn(file))), ErrFormat},
		"a place in another file": {call(&pickle.Persistent{ID: value.Tuple{"storage",
			value.Named("torch.FloatStorage"), "0", "cpu", 2}}), ErrFormat},
		"a file of more than one storage": {call(storageIn(slices.Concat(file[:bytes.IndexByte(file, '.')+1],
			mustPickle(t, 1001)))), ErrFormat},
		"beyond the storage": {&pickle.Object{Class: value.Named(rebuildTensor),
			Args: value.Tuple{storageIn(file), 1, value.Tuple{2}, value.Tuple{1}}}, ErrFormat},
		"a sparse tensor": {&pickle.Object{Class: value.Named(
			"torch._utils._rebuild_sparse_tensor"), Args: value.Tuple{}}, ErrUnsupported},
		"a class of the user's": {&pickle.Object{Class: value.Named("__main__.Thing"), New: true,
			Args: value.Tuple{}}, ErrGlobal},
		"shared memory": {&pickle.Object{Class: value.Named(
			"torch.multiprocessing.reductions.rebuild_tensor"), Args: value.Tuple{}}, ErrGlobal},
		"what runs": {&pickle.Object{Class: value.Named("os.system"),
			Args: value.Tuple{"true"}}, ErrGlobal},
		"what a file of torch.save can be": {&pickle.Object{Class: value.Named("torch.load"),
			Args: value.Tuple{"x"}}, ErrGlobal},
	} {
		if v, err := Unmarshal(mustPickle(t, c.tree)); !errors.Is(err, c.want) {
			t.Errorf("%s: %T, %v", name, v, err)
		}
	}
	if b, err := Marshal(make(chan int), MarshalOptions{}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a channel: %q, %v", b, err)
	}
	if b, err := Marshal(1, MarshalOptions{Protocol: 6}); !errors.Is(err, pickle.ErrValue) {
		t.Errorf("protocol 6: %q, %v", b, err)
	}
}

func mustPickle(t testing.TB, tree any) []byte {
	t.Helper()
	b, err := pickle.Marshal(tree, 4)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// FuzzPickled wants a value or an error, and of a value that it can be written and read again.
func FuzzPickled(f *testing.F) {
	for _, v := range []any{1, value.Tuple{"x"}, tensor.Ones(tensor.Float32, 2),
		autograd.NewParam("", tensor.Ones(tensor.Float16, 1)), tensor.Ones(tensor.Uint16, 1), value.Size{2},
		&PackedSequence{Data: tensor.Ones(tensor.Float32, 2), BatchSizes: tensor.Ones(tensor.Int64, 2)}} {
		b, err := Marshal(v, MarshalOptions{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Unmarshal(b)
		if err != nil {
			return
		}
		again, err := Marshal(v, MarshalOptions{})
		if errors.Is(err, ErrUnsupported) || errors.Is(err, pickle.ErrValue) || errors.Is(err, pickle.ErrLimit) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(again); err != nil {
			t.Fatalf("%v, of what was read and written: %q", err, again)
		}
	})
}
