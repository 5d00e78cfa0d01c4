package hdf5_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

func open(t testing.TB, path string) *hdf5.File {
	t.Helper()
	f, err := hdf5.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func dataset(t testing.TB, f *hdf5.File, name string) *hdf5.Dataset {
	t.Helper()
	d, err := f.Dataset(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func read(t testing.TB, f *hdf5.File, name string) *tensor.Tensor {
	t.Helper()
	x, err := dataset(t, f, name).Read()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// x is what most data sets of testdata/record.py are.
func x() *tensor.Tensor { return tensor.Arange(tensor.Float32, 0, 60, 1).Reshape(3, 4, 5) }

func TestOpen_ReadsFilesOfH5py(t *testing.T) {
	f := open(t, "testdata/h5py.h5")
	sparse := tensor.Full(tensor.Int32, 7, 10, 10)
	tensor.SetAt[int32](sparse, 1, 4, 4)
	for name, want := range map[string]*tensor.Tensor{
		"plain": x(), "group/gzip": x(), "group/deep/gzip": x(), "group/shuffle": x().To(tensor.Float64),
		"big": x(), "bool": tensor.Gt(x(), tensor.Scalar(tensor.Float32, 7)),
		"half": x().To(tensor.Float16), "scalar": tensor.Scalar(tensor.Int64, -5),
		"empty": tensor.New(tensor.Float32, 0, 4, 5), "bytes": x().To(tensor.Uint8),
		"big16": x().To(tensor.Int16), "sparse": sparse, "unwritten": tensor.New(tensor.Int32, 4),
		"growing": tensor.Arange(tensor.Int64, 0, 5000, 1), "many/39": tensor.Scalar(tensor.Float32, 39),
	} {
		got := read(t, f, name)
		if got.DType() != want.DType() || fmt.Sprint(got.Shape()) != fmt.Sprint(want.Shape()) ||
			!tensor.Equal(got, want) {
			t.Errorf("%s is %v", name, got)
		}
	}
	if u := read(t, open(t, "testdata/odd.h5"), "unsigned"); u.DType() != tensor.Uint32 ||
		!tensor.Equal(u.To(tensor.Float32), x()) {
		t.Errorf("unsigned: %v", u)
	}
	if c := read(t, f, "complex"); tensor.At[complex64](c, 2, 3, 4) != 59+1i {
		t.Errorf("%v", c)
	}
	names := strings.Join(f.Names(), " ")
	if len(f.Names()) != 58 || strings.Contains(names, "soft") ||
		!strings.HasPrefix(names, "again/deep/gzip again/gzip again/shuffle big big16 ") {
		t.Errorf("%d: %v", len(f.Names()), names)
	}
	if _, err := f.Dataset("none"); !errors.Is(err, hdf5.ErrName) {
		t.Errorf("%v", err)
	}
	if d := dataset(t, f, "group/gzip"); fmt.Sprint(d.Chunk(), d.Shape(), d.DType()) != "[2 3 2] [3 4 5] float32" {
		t.Errorf("%v %v", d.Chunk(), d.Shape())
	}
}

// What is not read is named, and stands in nobody's way.
func TestOpen_NamesWhatIsNotRead(t *testing.T) {
	f := open(t, "testdata/odd.h5")
	for name, want := range map[string]string{
		"records": "records", "lists": "lists of any length",
		"scaled": "the filter scale-offset", "none": "without a shape",
	} {
		if _, err := f.Dataset(name); !errors.Is(err, hdf5.ErrUnsupported) || errors.Is(err, hdf5.ErrText) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// options are ways to store.
var options = map[string]hdf5.Options{
	"plain": {}, "chunks": {Chunk: []int{2, 3, 2}}, "gzip": {Gzip: 4},
	"all": {Chunk: []int{1, 4, 3}, Shuffle: true, Gzip: 9}, "shuffle": {Shuffle: true},
	"lzf": {LZF: true, Shuffle: true, Chunk: []int{2, 5, 3}},
}

// Slabs of any place and size, written and read, in any way of storing.
func TestDataset_ReadsSlabs(t *testing.T) {
	for name, o := range options {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.h5")
			w, err := hdf5.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Discard()
			shape := []int{7, 5, 6}
			d, err := w.Dataset("a/b/x", tensor.Int32, shape, o)
			if err != nil {
				t.Fatal(err)
			}
			want, random := tensor.New(tensor.Int32, shape...), rand.New(rand.NewPCG(1, 2)).IntN
			slab := func() (start, size []int) {
				for _, n := range shape {
					from := random(n)
					start, size = append(start, from), append(size, 1+random(n-from))
				}
				return start, size
			}
			part := func(start, size []int) *tensor.Tensor {
				p := want
				for i := range start {
					p = p.Narrow(i, start[i], size[i])
				}
				return p
			}
			for i := range 30 {
				start, size := slab()
				p := part(start, size)
				p.CopyFrom(tensor.Arange(tensor.Int32, float64(1000*i), float64(1000*i+p.Numel()), 1).Reshape(size...))
				if err := d.WriteSlab(p, start...); err != nil {
					t.Fatal(err)
				}
				start, size = slab()
				got := tensor.Ones(tensor.Int32, size...)
				if err := d.ReadSlab(got, start...); err != nil || !tensor.Equal(got, part(start, size)) {
					t.Fatalf("after slab %d: %v, %v", i, got, err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			f := open(t, path)
			if got := read(t, f, "a/b/x"); !tensor.Equal(got, want) {
				t.Errorf("%v, not %v", got, want)
			}
			for range 30 {
				start, size := slab()
				got := tensor.Ones(tensor.Int32, size...)
				if err := dataset(t, f, "a/b/x").ReadSlab(got, start...); err != nil ||
					!tensor.Equal(got, part(start, size)) {
					t.Fatalf("%v at %v: %v, %v", size, start, got, err)
				}
			}
		})
	}
}

func TestSave_IsLoaded(t *testing.T) {
	all := map[string]*tensor.Tensor{"scalar": tensor.Scalar(tensor.Float32, 2),
		"empty": tensor.New(tensor.Float32, 0, 3), "t": x().Permute(2, 0, 1), "conv1.weight": x(),
		"group/a": x(), "group/b": x()}
	for dt := tensor.Bool; dt <= tensor.Complex128; dt++ {
		all["types/"+dt.String()] = tensor.Ones(dt, 3, 1)
	}
	all["long"] = tensor.Arange(tensor.Int64, 0, 10_000, 1) // a tree of two levels, with chunks of one
	for name, o := range map[string]hdf5.Options{"plain": {}, "gzip": {Gzip: 1, Shuffle: true}, "lzf": {LZF: true}} {
		path := filepath.Join(t.TempDir(), "x.h5")
		if err := hdf5.SaveWith(path, all, o); err != nil {
			t.Fatal(err)
		}
		got, err := hdf5.Load(path)
		if err != nil || len(got) != len(all) {
			t.Fatalf("%s: %d of %d, %v", name, len(got), len(all), err)
		}
		for n, want := range all {
			if got[n].DType() != want.DType() || !tensor.Equal(got[n], want) {
				t.Errorf("%s: %s is %v", name, n, got[n])
			}
		}
	}
}

// 5000 chunks need a tree of three levels.
func TestWriter_WritesManyChunks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	d, err := w.Dataset("x", tensor.Int32, []int{5000}, hdf5.Options{Chunk: []int{1}})
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.Arange(tensor.Int32, 0, 5000, 1)
	if err := errors.Join(d.WriteSlab(want, 0), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, open(t, path), "x"); !tensor.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestWriter_RefusesMisuse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	w, err := hdf5.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Dataset("a/b", tensor.Float32, []int{4}, hdf5.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "/", "a", "a/b", "a/b/c", "x//y", ".", "x/"} {
		if _, err := w.Dataset(name, tensor.Float32, []int{4}, hdf5.Options{}); !errors.Is(err, hdf5.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, c := range []struct {
		shape []int
		o     hdf5.Options
		want  error
	}{
		{[]int{-1}, hdf5.Options{}, hdf5.ErrShape}, {[]int{1 << 40, 1 << 40}, hdf5.Options{}, hdf5.ErrShape},
		{[]int{4}, hdf5.Options{Chunk: []int{0}}, hdf5.ErrShape},
		{[]int{4}, hdf5.Options{Chunk: []int{1, 1}}, hdf5.ErrShape},
		{nil, hdf5.Options{Gzip: 1}, hdf5.ErrShape}, {[]int{4}, hdf5.Options{Gzip: 10}, hdf5.ErrUnsupported},
		{[]int{4}, hdf5.Options{Gzip: 1, LZF: true}, hdf5.ErrUnsupported},
	} {
		if _, err := w.Dataset("bad", tensor.Float32, c.shape, c.o); !errors.Is(err, c.want) {
			t.Errorf("%v %v: %v", c.shape, c.o, err)
		}
	}
	d, err := w.Dataset("x", tensor.Float32, []int{4, 4}, hdf5.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		slab  *tensor.Tensor
		start []int
	}{{tensor.New(tensor.Int32, 1, 1), []int{0, 0}}, {tensor.New(tensor.Float32, 1), []int{0, 0}},
		{tensor.New(tensor.Float32, 1, 1), []int{0}}, {tensor.New(tensor.Float32, 1, 5), []int{0, 0}},
		{tensor.New(tensor.Float32, 1, 1), []int{4, 0}}, {tensor.New(tensor.Float32, 1, 1), []int{-1, 0}}} {
		if err := d.WriteSlab(c.slab, c.start...); !errors.Is(err, hdf5.ErrShape) {
			t.Errorf("write %v at %v: %v", c.slab.Shape(), c.start, err)
		}
		if err := d.ReadSlab(c.slab, c.start...); !errors.Is(err, hdf5.ErrShape) {
			t.Errorf("read %v at %v: %v", c.slab.Shape(), c.start, err)
		}
	}
	if err := w.Discard(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := hdf5.Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// damaged reads everything in a file, and wants a typed error or nothing.
func damaged(t *testing.T, path string) {
	f, err := hdf5.Open(path)
	typed := func(err error) {
		if err != nil && !errors.Is(err, hdf5.ErrFormat) && !errors.Is(err, hdf5.ErrUnsupported) &&
			!errors.Is(err, hdf5.ErrLimit) {
			t.Fatal(err)
		}
	}
	if typed(err); err != nil {
		return
	}
	defer f.Close()
	_, err = f.Attrs("")
	typed(err)
	for _, name := range f.Names() {
		_, err := f.Attrs(name)
		typed(err)
		d, err := f.Dataset(name)
		if errors.Is(err, hdf5.ErrText) {
			_, _, err = f.Strings(name)
			typed(err)
			continue
		}
		if typed(err); err != nil {
			continue
		}
		_, err = d.Read()
		typed(err)
	}
}

// A file that is cut anywhere, or of which any byte is another, is read or is an error.
func TestOpen_DamageIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	for _, name := range []string{"h5py", "v110", "latest", "text"} {
		b, err := os.ReadFile("testdata/" + name + ".h5")
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < len(b); n += 1 + len(b)/60 {
			if err := os.WriteFile(path, b[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			damaged(t, path)
			b[n] ^= 0xff
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			damaged(t, path)
			b[n] ^= 0xff
		}
	}
	for _, b := range [][]byte{nil, []byte("\x89HDF"), []byte("\x89HDF\r\n\x1a\n"), []byte(strings.Repeat("x", 1000))} {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := hdf5.Open(path); !errors.Is(err, hdf5.ErrFormat) {
			t.Errorf("%q: %v", b, err)
		}
	}
}

// FuzzOpen wants what TestOpen_DamageIsAnError wants of any file.
func FuzzOpen(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.h5")
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	path := filepath.Join(f.TempDir(), "x.h5")
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged(t, path)
	})
}
