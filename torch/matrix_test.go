package torch

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/tensor"
)

// dtypes are the dtypes that every PyTorch has.
var dtypes = []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Float16,
	tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128}

// youngDTypes are the dtypes that old versions of PyTorch lack.
var youngDTypes = []tensor.DType{tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Float8E4M3FN, tensor.Float8E5M2}

// objects are the objects that make of peer.py makes, besides one plain tensor of each dtype.
var objects = []string{"view", "transposed", "scalar", "empty", "parameter", "frozen", "dict", "tuple",
	"list", "two views", "same twice", "state_dict"}

// modes are the ways in which each side shares: ours, and PyTorch's; see run in peer.py.
var modes = []struct {
	ours   Strategy
	theirs string
}{{FileDescriptor, "fetched"}, {FileSystem, "file_system"}, {Proc, "file_descriptor"}}

// TestConn_EveryTensorCrosses sends every kind of value to PyTorch, from it, and there and back.
// The memory must be one: each side sees the writes of the other.
func TestConn_EveryTensorCrosses(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		for _, m := range modes {
			cell(t, string(m.ours), func(t *testing.T) {
				k := converse(t, py, Options{Strategy: m.ours}, m.theirs)
				for _, dt := range dtypes {
					kindMatrix(t, k, "plain", dt)
				}
				for _, dt := range youngDTypes {
					if asked[bool](k, "eval", fmt.Sprintf("hasattr(torch, %q)", dt)) {
						kindMatrix(t, k, "plain", dt)
					}
				}
				for _, kind := range objects {
					kindMatrix(t, k, kind, tensor.Float32)
				}
				k.bye()
			})
		}
	})
}

func kindMatrix(t *testing.T, k *talk, kind string, dt tensor.DType) {
	cell(t, fmt.Sprintf("%s %s", kind, dt), func(t *testing.T) {
		cell(t, "to torch", func(t *testing.T) { toTorch(t, k, kind, dt) })
		cell(t, "from torch", func(t *testing.T) { fromTorch(t, k, kind, dt) })
		cell(t, "there and back", func(t *testing.T) { thereAndBack(t, k, kind, dt) })
	})
}

// pattern returns 0, 1, 0, 1 … in a shape, in memory of the talk's kind.
func pattern(k *talk, dt tensor.DType, shape ...int) *tensor.Tensor {
	k.t.Helper()
	t, err := k.opts.Empty(dt, shape...)
	if err != nil {
		k.t.Fatal(err)
	}
	flags := make([]float64, t.Numel())
	for i := range flags {
		flags[i] = float64(i % 2)
	}
	t.CopyFrom(tensor.FromSlice(flags, shape...).To(dt))
	return t
}

// build makes in Go the objects that peer.py makes in Python. A heap tensor is also moved, once,
// into memory that crosses.
func build(k *talk, kind string, dt tensor.DType) any {
	switch kind {
	case "plain":
		return pattern(k, dt, 2, 3).Clone()
	case "view":
		return pattern(k, dt, 4, 6).Narrow(0, 1, 2).Slice(1, 0, 6, 2)
	case "transposed":
		return pattern(k, dt, 2, 3).T()
	case "scalar":
		return pattern(k, dt, 2).Select(0, 1)
	case "empty":
		return tensor.New(dt, 0, 3)
	case "parameter":
		return autograd.NewParam("", pattern(k, dt, 4))
	case "frozen":
		return &autograd.Param{T: pattern(k, dt, 4), Frozen: true}
	case "dict":
		return python.NewDict("x", pattern(k, dt, 3), "n", 7, "nested", map[string]any{"y": pattern(k, dt, 2)})
	case "tuple":
		return python.Tuple{pattern(k, dt, 3), "label", nil, uint64(1 << 63)}
	case "list":
		return []any{pattern(k, dt, 3), pattern(k, dt, 5)}
	case "two views":
		base := pattern(k, dt, 8)
		return python.Tuple{base.Narrow(0, 0, 4), base.Narrow(0, 2, 6)}
	case "same twice":
		same := pattern(k, dt, 4)
		return python.Tuple{same, same}
	case "state_dict":
		d := &python.Dict{Ordered: true, Attrs: python.NewDict("_metadata", &python.Dict{Ordered: true})}
		for _, name := range []string{"weight", "bias"} {
			if err := d.Set(name, pattern(k, dt, 1, 2)); err != nil {
				k.t.Fatal(err)
			}
		}
		return d
	}
	panic(kind)
}

// contents are the elements of all tensors of a value.
func contents(v any) (all [][]float64) {
	for _, t := range builtTensors(v) {
		all = append(all, elements(t))
	}
	return all
}

// builtTensors returns the tensors of an object of build, as flat does. The object may have a map
// in it.
func builtTensors(v any) []*tensor.Tensor {
	if d, ok := v.(*python.Dict); ok {
		var all []*tensor.Tensor
		for _, item := range d.All() {
			if m, ok := item.(map[string]any); ok {
				item = m["y"]
			}
			all = append(all, flat(item)...)
		}
		return all
	}
	return flat(v)
}

func toTorch(t *testing.T, k *talk, kind string, dt tensor.DType) {
	v := build(k, kind, dt)
	mine := builtTensors(v)
	answer := k.ask("take", v).(python.Tuple)
	checkDescription(t, v, mine, answer[0].([]any), true)
	if got, want := answer[1], contents(v); !sameNumbers(got, want) {
		t.Errorf("PyTorch sees %v, not %v", got, want)
	}
	k.ask("fill", 1)
	wantAll(t, mine, 1, "what PyTorch wrote")
	for _, x := range mine {
		x.Fill(0)
	}
	if got := k.ask("read"); !sameNumbers(got, contents(v)) {
		t.Errorf("PyTorch sees %v after a write here", got)
	}
	if kind == "two views" {
		if !reflect.DeepEqual(k.ask("same", python.Tuple{v.(python.Tuple)[0], v.(python.Tuple)[1]}),
			[]any{true, true}) {
			t.Error("the same views sent again are other memory")
		}
	}
	CloseAll(v)
	k.ask("drop")
}

// checkDescription compares PyTorch's description of its tensors, in shared memory or not, with
// ours.
func checkDescription(t *testing.T, v any, mine []*tensor.Tensor, theirs []any, shared bool) {
	t.Helper()
	class, learned := "Tensor", false
	if p, ok := v.(*autograd.Param); ok {
		class, learned = "Parameter", !p.Frozen
	}
	if len(mine) != len(theirs) {
		t.Fatalf("%d tensors became %d", len(mine), len(theirs))
	}
	for i, x := range mine {
		var got struct {
			_       struct{} `torch:",tuple"`
			Class   string
			DType   string
			Shape   []int
			Strides []int
			Learned bool
			Shared  bool
		}
		if err := assign(&got, theirs[i]); err != nil {
			t.Fatal(err)
		}
		if got.Class != class || got.DType != "torch."+x.DType().String() || !slices.Equal(got.Shape, x.Shape()) ||
			!slices.Equal(got.Strides, x.Strides()) && x.Numel() > 0 || got.Learned != learned ||
			got.Shared != shared && x.Numel() > 0 {
			t.Errorf("PyTorch has %+v for a %s of %v %v %v", got, class, x.DType(), x.Shape(), x.Strides())
		}
	}
}

func fromTorch(t *testing.T, k *talk, kind string, dt tensor.DType) {
	v := k.ask("make", kind, dt.String())
	defer CloseAll(v)
	checkMade(t, v, kind, dt)
	theirs := flat(v)
	if got := k.ask("read"); !sameNumbers(got, contents(v)) {
		t.Errorf("PyTorch has %v, and %v is here", got, contents(v))
	}
	for _, x := range theirs {
		x.Fill(1)
	}
	if got := k.ask("read"); !sameNumbers(got, contents(v)) {
		t.Errorf("PyTorch sees %v after a write here", got)
	}
	again := k.ask("echo")
	for i, x := range flat(again) {
		if x.Numel() > 0 && !x.SameStorage(theirs[i]) {
			t.Errorf("tensor %d of PyTorch's arrived twice and is mapped twice", i)
		}
	}
	CloseAll(again)
	k.ask("fill", 0)
	wantAll(t, theirs, 0, "what PyTorch wrote")
	k.ask("drop")
	for _, x := range theirs {
		x.Fill(1)
	}
	wantAll(t, theirs, 1, "memory that PyTorch has dropped")
}

// checkMade checks the form of an object that peer.py made.
func checkMade(t *testing.T, v any, kind string, dt tensor.DType) {
	t.Helper()
	want := func(x *tensor.Tensor, shape, strides []int) {
		t.Helper()
		if x.DType() != dt || !slices.Equal(x.Shape(), shape) || !slices.Equal(x.Strides(), strides) && x.Numel() > 0 {
			t.Errorf("%v %v %v, not %v %v %v", x.DType(), x.Shape(), x.Strides(), dt, shape, strides)
		}
	}
	all := flat(v)
	switch kind {
	case "plain":
		want(all[0], []int{2, 3}, []int{3, 1})
	case "view":
		want(all[0], []int{2, 3}, []int{6, 2})
	case "transposed":
		want(all[0], []int{3, 2}, []int{1, 3})
	case "scalar":
		want(all[0], []int{}, []int{})
	case "empty":
		want(all[0], []int{0, 3}, []int{3, 1})
	case "parameter", "frozen":
		if p, ok := v.(*autograd.Param); !ok || p.Frozen != (kind == "frozen") {
			t.Errorf("%T, not a %s", v, kind)
		}
	case "dict":
		d := v.(*python.Dict)
		if n, _ := d.Get("n"); n != int64(7) || d.Len() != 3 || len(all) != 2 {
			t.Errorf("%v in the dict", n)
		}
	case "tuple":
		tuple := v.(python.Tuple)
		if tuple[1] != "label" || tuple[2] != nil || fmt.Sprint(tuple[3]) != "1208925819614629174706176" {
			t.Errorf("the tuple is %v", tuple)
		}
	case "list":
		if list, ok := v.([]any); !ok || len(list) != 2 {
			t.Errorf("%T, not a list of two", v)
		}
	case "two views":
		if !all[0].SameStorage(all[1]) {
			t.Error("two views of one storage are two storages here")
		}
		want(all[1], []int{6}, []int{1})
	case "same twice":
		if all[0] != all[1] {
			t.Error("one tensor is two here")
		}
	case "state_dict":
		d := v.(*python.Dict)
		if w, ok := d.Get("weight"); !ok || !d.Ordered || w.(*tensor.Tensor).Dim(1) != 2 {
			t.Errorf("state_dict %v", d)
		}
	}
}

func thereAndBack(t *testing.T, k *talk, kind string, dt tensor.DType) {
	v := build(k, kind, dt)
	defer CloseAll(v)
	k.ask("take", v)
	back := k.ask("echo")
	defer CloseAll(back)
	mine, again := builtTensors(v), flat(back)
	if len(mine) != len(again) {
		t.Fatalf("%d tensors came back as %d", len(mine), len(again))
	}
	for i := range mine {
		if mine[i].Numel() > 0 && !mine[i].SameStorage(again[i]) {
			t.Errorf("tensor %d came back in other memory", i)
		}
		if !slices.Equal(mine[i].Shape(), again[i].Shape()) ||
			mine[i].Numel() > 0 && !slices.Equal(mine[i].Strides(), again[i].Strides()) {
			t.Errorf("tensor %d came back as %v %v", i, again[i].Shape(), again[i].Strides())
		}
	}
	k.ask("fill", 1)
	wantAll(t, mine, 1, "what PyTorch wrote")
	wantAll(t, again, 1, "what PyTorch wrote, in what came back")

	theirs := k.ask("make", kind, dt.String())
	defer CloseAll(theirs)
	if got := k.ask("same", theirs); slices.Contains(got.([]any), any(false)) && kind != "empty" {
		t.Errorf("PyTorch's tensors came back to it in other memory: %v", got)
	}
	k.ask("drop")
}

func wantAll(t *testing.T, all []*tensor.Tensor, v float64, what string) {
	t.Helper()
	for i, x := range all {
		for _, got := range elements(x) {
			if got != v {
				t.Fatalf("%s is not in tensor %d: %v", what, i, elements(x))
			}
		}
	}
}

// sameNumbers compares lists of lists of floats, of Python and of Go.
func sameNumbers(theirs any, mine [][]float64) bool {
	var got [][]float64
	if err := assign(&got, theirs); err != nil {
		return false
	}
	return fmt.Sprint(got) == fmt.Sprint(mine)
}
