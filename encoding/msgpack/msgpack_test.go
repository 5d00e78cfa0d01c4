package msgpack_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name + ".msgpack")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A file of msgpack-numpy, which testdata/record.py has written.
func TestLoad_ReadsFilesOfMsgpackNumpy(t *testing.T) {
	v, err := msgpack.Unmarshal(read(t, "numpy"))
	if err != nil {
		t.Fatal(err)
	}
	m := v.(map[string]any)
	x := tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3)
	for _, name := range []string{"x", "fortran"} {
		if got := m[name].(*tensor.Tensor); got.DType() != tensor.Float32 || !tensor.Equal(got, x) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := m["big"].(*tensor.Tensor); got.DType() != tensor.Float64 || got.Sum() != 15 {
		t.Errorf("%v", got)
	}
	if got := m["scalar"].(*tensor.Tensor); got.Dims() != 0 || got.Item() != 1.5 {
		t.Errorf("%v", got)
	}
	list := m["nested"].(map[string]any)["list"].([]any)
	if fmt.Sprint(m["c"], list[1:]) != "(1+2i) [1 é <nil> true 2.5 [255]]" {
		t.Errorf("%v %v", m["c"], list[1:])
	}
	all, _, err := msgpack.Load("testdata/numpy.msgpack", msgpack.Options{})
	if err != nil || len(all) != 6 || all["nested.list.0"] == nil || all["mask"].DType() != tensor.Bool {
		t.Errorf("%v, %v", all, err)
	}
	for _, name := range []string{"records", "text"} {
		if v, err := msgpack.Unmarshal(read(t, name)); !errors.Is(err, msgpack.ErrUnsupported) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
}

func TestSave_IsLoaded(t *testing.T) {
	all := map[string]*tensor.Tensor{"t": tensor.Arange(tensor.Int32, 0, 6, 1).Reshape(2, 3).T(),
		"empty": tensor.New(tensor.Float32, 0, 2), "long": tensor.New(tensor.Int8, 70_000)}
	for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
		if dt != tensor.BFloat16 {
			all[dt.String()] = tensor.Ones(dt, 3)
		}
	}
	path := filepath.Join(t.TempDir(), "x.msgpack")
	if err := msgpack.Save(path, all); err != nil {
		t.Fatal(err)
	}
	got, _, err := msgpack.Load(path, msgpack.Options{})
	if err != nil || len(got) != len(all) {
		t.Fatalf("%v, %v", got, err)
	}
	for name, x := range all {
		if got[name].DType() != x.DType() || !tensor.Equal(got[name], x) {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if _, _, err := msgpack.Load(path+"none", msgpack.Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	v := map[string]any{"a": []any{int64(-1), 1 + 2i, "x", nil, []byte{1}}, "b": map[string]any{}}
	b, err := msgpack.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := msgpack.Unmarshal(b); err != nil || fmt.Sprint(again) != fmt.Sprint(v) {
		t.Errorf("%v, %v", again, err)
	}
	loop := []any{nil}
	loop[0] = loop
	for name, v := range map[string]any{"bfloat16": tensor.Ones(tensor.BFloat16, 1),
		"a channel": make(chan int), "itself": loop} {
		if _, err := msgpack.Marshal(v); !errors.Is(err, msgpack.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnmarshal_RefusesHostileBytes(t *testing.T) {
	good := read(t, "numpy")
	for n := range len(good) {
		if v, err := msgpack.Unmarshal(good[:n]); !errors.Is(err, msgpack.ErrFormat) {
			t.Fatalf("%d bytes: %v, %v", n, v, err)
		}
	}
	array := func(kind string, shape []any, data []byte) []byte {
		b, err := msgpack.Marshal(map[string]any{"nd": true, "type": kind, "shape": shape, "data": data})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"more":       append(read(t, "numpy"), 0xc0),
		"deep":       []byte(strings.Repeat("\x91", 1000)),
		"long bytes": {0xc6, 0xff, 0xff, 0xff, 0xff}, "long list": {0xdd, 0xff, 0xff, 0xff, 0xff},
		"long map": {0xdf, 0xff, 0xff, 0xff, 0xff}, "long text": {0xdb, 0xff, 0xff, 0xff, 0xff},
		"never used": {0xc1}, "a key of a number": {0x81, 1, 1}, "a key twice": {0x82, 0xa1, 'a', 1, 0xa1, 'a', 1},
		"too few":         array("<f4", []any{int64(3)}, make([]byte, 8)),
		"negative":        array("<f4", []any{int64(-2)}, make([]byte, 8)),
		"huge":            array("<f4", []any{int64(1 << 40), int64(1 << 40)}, nil),
		"a shape of text": array("<f4", []any{"x"}, nil),
	} {
		if v, err := msgpack.Unmarshal(b); !errors.Is(err, msgpack.ErrFormat) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	if v, err := msgpack.Unmarshal([]byte{0xd4, 1, 1}); !errors.Is(err, msgpack.ErrUnsupported) {
		t.Errorf("an extension: %v, %v", v, err)
	}
}

// typed tells whether bytes that are no value may end in err.
func typed(err error) bool {
	return errors.Is(err, msgpack.ErrFormat) || errors.Is(err, msgpack.ErrUnsupported) ||
		errors.Is(err, msgpack.ErrLimit)
}

// FuzzUnmarshal wants a value or a typed error of any bytes, and the value written and read again.
func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"numpy", "records", "text"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := msgpack.Unmarshal(b)
		if err != nil {
			if !typed(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := msgpack.Marshal(v)
		if err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		if _, err := msgpack.Unmarshal(again); err != nil && !typed(err) {
			t.Fatal(err)
		}
	})
}

// Bytes that claim to be more than come take memory for what comes, however much is allowed.
func TestDecode_TakesNoMoreThanComes(t *testing.T) {
	for _, head := range []string{
		"\xc6\xff\xff\xff\xff",             // bytes
		"\x81\xa4data\xc6\xff\xff\xff\xff", // bytes of an array
		"\xdb\xff\xff\xff\xff",             // text
		"\xdd\xff\xff\xff\xff",             // a list
		"\xdf\xff\xff\xff\xff",             // a dict
	} {
		for _, most := range []int64{0, math.MaxInt64} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := msgpack.Decode(bytes.NewReader([]byte(head+"ten bytes.")), msgpack.Options{MaxBytes: most})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, msgpack.ErrFormat) && !(most == 0 && errors.Is(err, msgpack.ErrLimit)) {
				t.Errorf("%q, %d allowed: %v", head, most, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
				t.Errorf("%q claims 4 GiB, and ten bytes come: they took %d", head, took)
			}
		}
	}
}
