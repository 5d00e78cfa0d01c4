package pt_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/pickle/value"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

func load(t testing.TB, path string, o pt.Options) any {
	t.Helper()
	v, err := pt.Load(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// get returns what a dict has under a key.
func get[T any](t testing.TB, v any, key any) T {
	t.Helper()
	d, _ := v.(*value.Dict)
	item, _ := d.Get(key)
	got, ok := item.(T)
	if !ok {
		t.Fatalf("%v is %T, not %T", key, item, got)
	}
	return got
}

// Files of an old and a new PyTorch, read and mapped. testdata/record.py has written them.
func TestLoad_ReadsFilesOfPyTorch(t *testing.T) {
	for _, version := range []string{"1.13", "2.15"} {
		for _, kind := range []string{"plain", "legacy"} {
			for _, mmap := range []bool{false, true} {
				t.Run(fmt.Sprint(kind, version, " mmap ", mmap), func(t *testing.T) {
					v := load(t, "testdata/"+kind+"-"+version+".pt", pt.Options{Mmap: mmap})
					a, row, transposed := get[*tensor.Tensor](t, v, "a"), get[*tensor.Tensor](t, v, "row"),
						get[*tensor.Tensor](t, v, "t")
					if got := fmt.Sprint(a.Shape(), transposed.Strides(), row.Offset(),
						tensor.Data[float32](row)); got != "[3 4] [1 4] 4 [4 5 6 7]" {
						t.Error(got)
					}
					if !a.SameStorage(row) || !a.SameStorage(transposed) {
						t.Error("views of one storage are not")
					}
					row.Fill(9)
					if got := tensor.At[float32](transposed, 3, 1); got != 9 {
						t.Errorf("a write to one view is %v in another", got)
					}
					p := get[*autograd.Param](t, v, "p")
					if p.Frozen || p.T.Sum() != 2 || p.T.SameStorage(a) {
						t.Errorf("parameter %v", p.T)
					}
					if e := get[*tensor.Tensor](t, v, "e"); fmt.Sprint(e.Shape()) != "[0 3]" {
						t.Errorf("empty: %v", e.Shape())
					}
					if s := get[*tensor.Tensor](t, v, "s"); s.DType() != tensor.Int64 || s.Item() != 5 ||
						s.Dims() != 0 {
						t.Errorf("scalar: %v", s)
					}
					list := get[[]any](t, v, "list")
					pair := list[1].(value.Tuple)
					if b := list[0].(*tensor.Tensor); b.DType() != tensor.BFloat16 || b.Sum() != 2 {
						t.Errorf("%v", b)
					}
					if m := pair[0].(*tensor.Tensor); pair[1] != "x" ||
						fmt.Sprint(tensor.Data[bool](m)) != "[true false]" {
						t.Errorf("%v", pair)
					}
					if fmt.Sprint(get[value.Size](t, v, "size"), get[tensor.DType](t, v, "dtype"),
						get[int64](t, v, "i")) != "[2] float16 3" {
						t.Errorf("%v", v)
					}
					again := load(t, "testdata/"+kind+"-"+version+".pt", pt.Options{})
					if got := tensor.At[float32](get[*tensor.Tensor](t, again, "a"), 1, 0); got != 4 {
						t.Errorf("the file was written to: %v", got)
					}
				})
			}
		}
	}
}

// A whole module is a record, and its tensors have the names of its state_dict.
func TestStateDict_OfAModuleIsARecords(t *testing.T) {
	want := []string{"bn.bias", "bn.num_batches_tracked", "bn.running_mean", "bn.running_var", "bn.weight",
		"fc.bias", "fc.weight", "tied.bias", "tied.weight"}
	for _, file := range []string{"model-1.13", "model-2.15", "legacymodel-1.13", "legacymodel-2.15"} {
		v := load(t, "testdata/"+file+".pt", pt.Options{})
		r, ok := v.(*python.Record)
		if !ok || r.Class.String() != "__main__.Net" {
			t.Fatalf("%s: %T %v", file, v, v)
		}
		state, _, err := pt.StateDict(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(state)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, not %v", file, got, want)
		}
		if state["fc.weight"] != state["tied.weight"] || fmt.Sprint(state["fc.weight"].Shape()) != "[2 4]" {
			t.Errorf("%s: tied weights are two", file)
		}
	}
}

func TestLoad_ReadsOptimizerState(t *testing.T) {
	for _, version := range []string{"1.13", "2.15"} {
		v := load(t, "testdata/opt-"+version+".pt", pt.Options{})
		state := get[*value.Dict](t, v, "state")
		first := get[*value.Dict](t, state, int64(0))
		if avg := get[*tensor.Tensor](t, first, "exp_avg"); fmt.Sprint(avg.Shape()) != "[2 4]" {
			t.Errorf("%v", avg)
		}
		group := get[[]any](t, v, "param_groups")[0]
		if lr := get[float64](t, group, "lr"); lr != 0.001 {
			t.Errorf("lr is %v", lr)
		}
		path := filepath.Join(t.TempDir(), "again.pt")
		if err := pt.Save(path, v); err != nil {
			t.Fatal(err)
		}
		again := get[*value.Dict](t, load(t, path, pt.Options{}), "state")
		if !tensor.Equal(get[*tensor.Tensor](t, get[*value.Dict](t, again, int64(0)), "exp_avg"),
			get[*tensor.Tensor](t, first, "exp_avg")) {
			t.Error("saved again it is another")
		}
	}
}

// Dtypes without a storage class, which PyTorch has since 2.3.
func TestLoad_ReadsYoungDTypes(t *testing.T) {
	for _, mmap := range []bool{false, true} {
		v := load(t, "testdata/young-2.15.pt", pt.Options{Mmap: mmap})
		path := filepath.Join(t.TempDir(), "again.pt")
		if err := pt.Save(path, v); err != nil {
			t.Fatal(err)
		}
		for _, v := range []any{v, load(t, path, pt.Options{Mmap: mmap})} {
			for dt := tensor.Uint16; dt <= tensor.Float8E5M2; dt++ {
				x := get[*tensor.Tensor](t, v, dt.String())
				if got := fmt.Sprint(x.Shape(), x.To(tensor.Float64).ToNested()); x.DType() != dt ||
					got != "[2 3] [[0 1 2] [3 4 5]]" {
					t.Errorf("%v is %v %s", dt, x.DType(), got)
				}
				if row := get[*tensor.Tensor](t, v, dt.String()+" row"); !row.SameStorage(x) ||
					row.To(tensor.Float32).Sum() != 12 {
					t.Errorf("a row of %v: %v", dt, row)
				}
			}
		}
		aligned(t, path)
	}
}

func TestSave_IsLoaded(t *testing.T) {
	base := tensor.Arange(tensor.Float64, 0, 100, 1).Reshape(10, 10)
	v := map[string]any{"rows": base.Narrow(0, 2, 3), "column": base.Select(1, 4).Narrow(0, 2, 3),
		"list":   []any{int64(1), "two", nil, true, 2.5},
		"frozen": &autograd.Param{T: tensor.Ones(tensor.Int32, 2), Frozen: true},
		"none":   tensor.New(tensor.Float32, 0, 2)}
	for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
		v[dt.String()] = tensor.Ones(dt, 3)
	}
	path := filepath.Join(t.TempDir(), "model.pt")
	if err := pt.Save(path, v); err != nil {
		t.Fatal(err)
	}
	for _, mmap := range []bool{false, true} {
		got := load(t, path, pt.Options{Mmap: mmap})
		rows, column := get[*tensor.Tensor](t, got, "rows"), get[*tensor.Tensor](t, got, "column")
		if !tensor.Equal(rows, base.Narrow(0, 2, 3)) ||
			!tensor.Equal(column, base.Select(1, 4).Narrow(0, 2, 3)) || !rows.SameStorage(column) {
			t.Errorf("views: %v %v", rows, column)
		}
		if n := len(rows.Storage().Bytes()); n != 30*8 {
			t.Errorf("a storage of %d bytes was saved for 30 elements", n)
		}
		for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
			if x := get[*tensor.Tensor](t, got, dt.String()); x.DType() != dt || !tensor.Equal(x, tensor.Ones(dt, 3)) {
				t.Errorf("%v: %v", dt, x)
			}
		}
		if p := get[*autograd.Param](t, got, "frozen"); !p.Frozen || p.T.Sum() != 2 {
			t.Errorf("%v", p.T)
		}
		if l := get[[]any](t, got, "list"); fmt.Sprint(l) != "[1 two <nil> true 2.5]" {
			t.Errorf("%v", l)
		}
	}
	aligned(t, path)
}

// aligned wants every storage of an archive at a multiple of 64.
func aligned(t *testing.T, path string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		if at, err := f.DataOffset(); err != nil || at%64 != 0 {
			t.Errorf("%s is at %d: %v", f.Name, at, err)
		}
	}
}

func TestOptions_MapLocationMovesStorages(t *testing.T) {
	b, err := os.ReadFile("testdata/plain-2.15.pt")
	if err != nil {
		t.Fatal(err)
	}
	path := rewritten(t, b, func(name string, b []byte) []byte {
		if name != "data.pkl" {
			return b
		}
		return bytes.ReplaceAll(b, []byte("X\x03\x00\x00\x00cpu"), []byte("X\x06\x00\x00\x00cuda:0"))
	})
	if _, err := pt.Load(path, pt.Options{}); !errors.Is(err, pt.ErrLocation) ||
		!strings.Contains(err.Error(), "cuda:0") {
		t.Errorf("to its own device: %v", err)
	}
	get[*tensor.Tensor](t, load(t, path, pt.Options{MapLocation: pt.To("cpu")}), "a")
	asked := ""
	load(t, path, pt.Options{MapLocation: func(l string) string { asked = l; return "cpu" }})
	if asked != "cuda:0" {
		t.Errorf("asked for %q", asked)
	}
}

func TestOptions_MapLocationMovesToADevice(t *testing.T) {
	dev := devicetest.New("pttest:1")
	device.Register("pttest", device.Backend{
		Parse: func(text string) (device.Device, error) {
			if text != "pttest:1" {
				return nil, tensor.ErrDevice
			}
			return dev, nil
		},
	})
	path := filepath.Join(t.TempDir(), "m.pt")
	x := tensor.Arange(tensor.Float32, 0, 12, 1).View(3, 4)
	if err := pt.Save(path, map[string]*tensor.Tensor{"x": x, "turned": x.T(),
		"bool": tensor.Gt(x, x.Number(3))}); err != nil {
		t.Fatal(err)
	}
	for name, location := range map[string]func(string) string{
		"string":   pt.To("pttest:1"),
		"function": func(l string) string { return map[string]string{"cpu": "pttest:1"}[l] },
	} {
		for _, mmap := range []bool{false, true} {
			v := load(t, path, pt.Options{MapLocation: location, Mmap: mmap})
			got, turned := get[*tensor.Tensor](t, v, "x"), get[*tensor.Tensor](t, v, "turned")
			if got.Device() != dev || !got.SameStorage(turned) {
				t.Errorf("%s: on %v, of one storage %v", name, got.Device(), got.SameStorage(turned))
			}
			devicetest.Same(t, got, x, 0)
			devicetest.Same(t, turned, x.T(), 0)
			devicetest.Same(t, get[*tensor.Tensor](t, v, "bool"), tensor.Gt(x, x.Number(3)), 0)
		}
	}
	stays := load(t, path, pt.Options{
		MapLocation: func(l string) string { return map[string]string{"cuda:0": "pttest:1"}[l] }})
	if d := get[*tensor.Tensor](t, stays, "x").Device(); d != nil {
		t.Errorf("what the map does not name is on %v", d)
	}
	for _, nowhere := range []string{"pttest:2", "elsewhere", "auto", "cuda:0"} {
		if _, err := pt.Load(path, pt.Options{MapLocation: pt.To(nowhere)}); !errors.Is(err, pt.ErrLocation) {
			t.Errorf("to %s: %v", nowhere, err)
		}
	}
	dev.Fail(errors.New("full"))
	if _, err := pt.Load(path, pt.Options{MapLocation: pt.To("pttest:1")}); err == nil ||
		!strings.Contains(err.Error(), "full") {
		t.Errorf("to a full device: %v", err)
	}
}

// A file under tensors may be removed, replaced, and even cut short.
func TestOptions_MmapSurvivesACutFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.pt")
	if err := pt.Save(path, map[string]*tensor.Tensor{"w": tensor.Ones(tensor.Float32, 1<<20),
		"b": tensor.Ones(tensor.Float32, 4)}); err != nil {
		t.Fatal(err)
	}
	v := load(t, path, pt.Options{Mmap: true})
	w, b := get[*tensor.Tensor](t, v, "w"), get[*tensor.Tensor](t, v, "b")
	if w.SameStorage(b) {
		t.Error("two storages are one")
	}
	b.Close()
	// takes its place
	if err := pt.Save(path, map[string]*tensor.Tensor{"w": tensor.New(tensor.Float32, 3)}); err != nil {
		t.Fatal(err)
	}
	if got := w.Sum(); got != 1<<20 {
		t.Errorf("after the file was replaced the sum is %v", got)
	}
	v = load(t, path, pt.Options{Mmap: true})
	short := get[*tensor.Tensor](t, v, "w")
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Catch(func() { short.Sum() }); !errors.Is(err, tensor.ErrFile) {
		t.Errorf("cut short: %v", err)
	}
	if err := pt.Save(path+"2", short); !errors.Is(err, tensor.ErrFile) {
		t.Errorf("saved while cut short: %v", err)
	}
	if _, err := os.Stat(path + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was left: %v", err)
	}
}

func TestSave_RefusesWhatCannotBeSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.pt")
	loop := &value.Dict{}
	loop.Set("self", loop)
	for name, v := range map[string]any{
		"a record": &python.Record{}, "a channel": make(chan int), "itself": loop, "a function": func() {},
	} {
		if err := pt.Save(path, v); !errors.Is(err, pt.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := pt.Save(filepath.Join(path, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// rewritten is an archive whose entries are changed; nil removes one.
func rewritten(t testing.TB, b []byte, change func(name string, b []byte) []byte) string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range r.File {
		e, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		var content bytes.Buffer
		content.ReadFrom(e)
		_, name, _ := strings.Cut(f.Name, "/")
		if changed := change(name, append([]byte{}, content.Bytes()...)); changed != nil {
			e, _ := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
			e.Write(changed)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, out.Bytes())
}

func write(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pt")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
