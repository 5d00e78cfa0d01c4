package npy_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// both are the two ways to read an array.
var both = map[string]func(string) (*tensor.Tensor, error){"load": npy.Load, "map": npy.Map}

// Files of numpy, which testdata/record.py has written.
func TestLoad_ReadsFilesOfNumpy(t *testing.T) {
	x := tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3)
	mask := tensor.FromSlice([]bool{false, false, false, true, true, true}, 2, 3)
	for name, want := range map[string]*tensor.Tensor{
		"v1": x, "v2": x, "v3": x, "fortran": x, "big": x, "bool": mask,
		"scalar": tensor.Scalar(tensor.Int64, 5), "empty": tensor.New(tensor.Float32, 0, 3),
	} {
		for how, open := range both {
			got, err := open("testdata/" + name + ".npy")
			if err != nil {
				t.Errorf("%s %s: %v", how, name, err)
				continue
			}
			if got.DType() != want.DType() || fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) ||
				!tensor.Equal(got, want) {
				t.Errorf("%s %s: %v", how, name, got)
			}
			got.Close()
		}
	}
	for how, open := range both {
		got, err := open("testdata/unsigned.npy")
		if err != nil || got.DType() != tensor.Uint32 || !tensor.Equal(got.To(tensor.Float32), x) {
			t.Errorf("%s unsigned: %v, %v", how, got, err)
		}
	}
	c, err := npy.Load("testdata/bigcomplex.npy")
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.At[complex128](c, 1, 2); got != 5+1i {
		t.Errorf("complex: %v", got)
	}
	for _, name := range []string{"records", "text", "object"} {
		for how, open := range both {
			var file *encoding.FileError
			if _, err := open("testdata/" + name + ".npy"); !errors.Is(err, npy.ErrDType) || !errors.As(err, &file) {
				t.Errorf("%s %s: %v", how, name, err)
			}
		}
	}
}

func TestArchive_ReadsThoseOfNumpy(t *testing.T) {
	for name, want := range map[string]string{"stored": "[x y]", "compressed": "[x zeros]"} {
		all, err := npy.LoadAll("testdata/" + name + ".npz")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for n := range all {
			names = append(names, n)
		}
		if len(names) != 2 || !strings.Contains(want, names[0]) || !strings.Contains(want, names[1]) {
			t.Errorf("%s has %v", name, names)
		}
		if !tensor.Equal(all["x"], tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3)) {
			t.Errorf("%s: %v", name, all["x"])
		}
	}
}

// What is written is what numpy writes.
func TestSave_WritesNumpysBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	for name, x := range map[string]*tensor.Tensor{
		"v1": tensor.Arange(tensor.Float32, 0, 6, 1).Reshape(2, 3), "scalar": tensor.Scalar(tensor.Int64, 5),
		"empty": tensor.New(tensor.Float32, 0, 3),
	} {
		if err := npy.Save(path, x); err != nil {
			t.Fatal(err)
		}
		got, _ := os.ReadFile(path)
		want, err := os.ReadFile("testdata/" + name + ".npy")
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is %q, not %q: %v", name, got, want, err)
		}
	}
}

func TestSave_IsLoaded(t *testing.T) {
	dir := t.TempDir()
	all := map[string]*tensor.Tensor{"a/b": tensor.Arange(tensor.Int32, 0, 6, 1).Reshape(2, 3).T()}
	for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
		x, path := tensor.Ones(dt, 2, 1, 3), filepath.Join(dir, "x.npy")
		err := npy.Save(path, x)
		if dt == tensor.BFloat16 {
			if !errors.Is(err, npy.ErrDType) {
				t.Errorf("bfloat16: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for how, open := range both {
			if got, err := open(path); err != nil || got.DType() != dt || !tensor.Equal(got, x) {
				t.Errorf("%s %v: %v, %v", how, dt, got, err)
			}
		}
		all[dt.String()] = x
	}
	path := filepath.Join(dir, "all.npz")
	if err := npy.Save(path, all); err != nil {
		t.Fatal(err)
	}
	got, err := npy.LoadAll(path)
	if err != nil || len(got) != len(all) {
		t.Fatalf("%d of %d: %v", len(got), len(all), err)
	}
	for name, x := range all {
		if !tensor.Equal(got[name], x) {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("left: %v", entries)
	}
}

func TestMap_IsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := npy.Save(path, tensor.Ones(tensor.Float32, 1<<20)); err != nil {
		t.Fatal(err)
	}
	x, err := npy.Map(path)
	if err != nil {
		t.Fatal(err)
	}
	y, err := npy.Map(path)
	if err != nil {
		t.Fatal(err)
	}
	x.Fill(2)
	if got := y.Sum(); got != 1<<20 {
		t.Errorf("a write went to the file: %v", got)
	}
	if err := npy.Save(path, tensor.Ones(tensor.Float32, 1)); err != nil {
		t.Fatal(err)
	}
	if got := y.Sum(); got != 1<<20 {
		t.Errorf("after it was replaced: %v", got)
	}
	if z, err := npy.Map(path); err != nil || z.Sum() != 1 {
		t.Errorf("the new file: %v, %v", z, err)
	}
	if err := npy.Save(path, x); err != nil {
		t.Fatal(err)
	}
	z, err := npy.Map(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	if err := tensor.Catch(func() { z.Sum() }); !errors.Is(err, tensor.ErrFile) {
		t.Errorf("cut short: %v", err)
	}
}

// file is a .npy with a header of ours.
func file(version byte, text string, body int) []byte {
	b := append([]byte("\x93NUMPY"), version, 0)
	if version == 1 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(text)))
	} else {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	}
	return append(append(b, text...), make([]byte, body)...)
}

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad_RefusesHostileArrays(t *testing.T) {
	shape := func(s string) []byte {
		return file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': "+s+", }", 24)
	}
	for name, b := range map[string][]byte{
		"empty": nil, "magic": []byte("\x93NUMPY"), "text": []byte("hello, hello, hello"),
		"version 4": file(4, "{}", 0), "version 0": file(0, "{}", 0),
		"cut in the header": shape("(6,)")[:40], "cut in the elements": shape("(7,)"),
		"negative": shape("(-6,)"), "huge": shape("(4294967296, 4294967296)"),
		"huge beside nothing": shape("(0, 4294967296, 4294967296)"),
		"beyond int":          shape("(99999999999999999999,)"), "a float": shape("(1.5,)"),
		"no tuple": shape("6"), "text in it": shape("('a',)"), "nested": shape(strings.Repeat("(", 1000)),
		"not closed": shape("(6,"), "many": shape("(" + strings.Repeat("1,", 100) + ")"),
		"no dict": file(1, "[]", 0), "no shape": file(1, "{'descr': '<f4', 'fortran_order': False}", 0),
		"twice":         file(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4),
		"more keys":     file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", 4),
		"after it":      file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4),
		"a long header": append([]byte("\x93NUMPY\x02\x00"), 255, 255, 255, 255),
	} {
		for how, open := range both {
			path := write(t, "x.npy", b)
			_, err := open(path)
			var file *encoding.FileError
			if !errors.Is(err, npy.ErrFormat) || !errors.As(err, &file) || file.Path != path {
				t.Errorf("%s %s: %v", how, name, err)
			}
		}
	}
	if _, err := npy.Load(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestOpenArchive_RefusesHostileArchives(t *testing.T) {
	var z bytes.Buffer
	w := zip.NewWriter(&z)
	e, _ := w.Create("x.npy")
	e.Write(file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }", 4))
	w.Close()
	good, err := os.ReadFile("testdata/stored.npz")
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(good)
	bad[200]++
	for name, b := range map[string][]byte{"shape beyond the entry": z.Bytes(), "half": good[:len(good)/2],
		"a wrong bit": bad, "text": []byte("PK")} {
		var file *encoding.FileError
		if _, err := npy.LoadAll(write(t, "x.npz", b)); !errors.Is(err, npy.ErrFormat) || !errors.As(err, &file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// typed tells whether a damaged file may end in err.
func typed(err error) bool {
	return errors.Is(err, npy.ErrFormat) || errors.Is(err, npy.ErrDType) || errors.Is(err, npy.ErrLimit)
}

// FuzzLoad wants a tensor or a typed error of any file, and the tensor saved and loaded again.
func FuzzLoad(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.np?")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		path := write(t, "x", b)
		all := map[string]*tensor.Tensor{}
		for how, open := range both {
			x, err := open(path)
			if err == nil {
				all[how] = x
			} else if !typed(err) {
				t.Fatal(err)
			}
		}
		more, err := npy.LoadAll(path)
		if err != nil && !typed(err) {
			t.Fatal(err)
		}
		for name, x := range more {
			all["all "+name] = x
		}
		if err := npy.Save(path+"z", all); err != nil {
			t.Fatal(err)
		}
		if again, err := npy.LoadAll(path + "z"); err != nil || len(again) != len(all) {
			t.Fatalf("%d of %d: %v", len(again), len(all), err)
		}
	})
}

// A header that claims more than comes takes memory for what comes, however much is allowed.
func TestDecode_TakesNoMoreThanComes(t *testing.T) {
	for _, claim := range []int{16 << 30, 1 << 40} {
		for _, most := range []int64{0, math.MaxInt64} {
			text := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }\n", claim)
			b := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), 0)
			b = append(append(b, text...), "ten bytes."...)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := npy.Decode(bytes.NewReader(b), npy.Options{MaxBytes: most})
			runtime.ReadMemStats(&after)
			if !errors.Is(err, io.ErrUnexpectedEOF) && !(most == 0 && errors.Is(err, npy.ErrLimit)) {
				t.Errorf("%d bytes are claimed, %d allowed: %v", claim, most, err)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
				t.Errorf("%d bytes are claimed, and ten come: they took %d", claim, took)
			}
		}
	}
}

// FuzzDecode: a stream is the array that a file of the same bytes is, or an error of a type.
func FuzzDecode(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.npy")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := npy.Decode(bytes.NewReader(b), npy.Options{MaxBytes: 1 << 40})
		if err != nil {
			if _, ok := errors.AsType[*encoding.FileError](err); !ok {
				t.Fatalf("error is %v, want a FileError", err)
			}
			return
		}
		defer x.Close()
		if x.Nbytes() > len(b) {
			t.Fatalf("%d bytes, of %d", x.Nbytes(), len(b))
		}
		y, err := npy.Load(write(t, "x.npy", b))
		if err != nil || !bytes.Equal(tensor.Bytes(x.Contiguous()), tensor.Bytes(y.Contiguous())) {
			t.Fatalf("the file is %v, %v", y, err)
		}
		y.Close()
	})
}
