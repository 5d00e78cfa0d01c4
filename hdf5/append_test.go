package hdf5_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// grown copies a file of h5py's whose data sets grow: "x" of float32 (2, 3) in chunks of (4, 2) with
// gzip and shuffle, "group/n" of int64 (5), which are 0 to 4, "empty" of uint8 (0) by lzf, and beside
// them what Append refuses.
func grown(t testing.TB) string {
	b, err := os.ReadFile("testdata/grows.h5")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x.h5")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lengthen appends to all data sets of grown.
func lengthen(a *hdf5.Appender) error {
	x, err := a.Dataset("x")
	if err != nil {
		return err
	}
	n, err := a.Dataset("group/n")
	if err != nil {
		return err
	}
	empty, err := a.Dataset("empty")
	if err != nil {
		return err
	}
	return errors.Join(x.Append(rows(2, 1)), x.Append(rows(3, 6)), n.Append(tensor.Arange(tensor.Int64, 5, 500, 1)),
		empty.Append(tensor.Full(tensor.Uint8, 7, 300)))
}

// isLong checks that a file has what lengthen has appended.
func isLong(t *testing.T, path string) {
	t.Helper()
	f := open(t, path)
	defer f.Close()
	if x := read(t, f, "x"); !tensor.Equal(x, rows(0, 9)) {
		t.Errorf("%v", x)
	}
	if n := read(t, f, "group/n"); !tensor.Equal(n, tensor.Arange(tensor.Int64, 0, 500, 1)) {
		t.Errorf("%v", n)
	}
	if e := read(t, f, "empty"); e.Dim(0) != 300 || e.Sum() != 2100 {
		t.Errorf("%v", e)
	}
	if attrs, err := f.Attrs("x"); err != nil || attrs["unit"] != "m" {
		t.Errorf("%v, %v", attrs, err)
	}
}

func TestRegression_S3_5_AppendToAFileThatIsThere(t *testing.T) {
	path := grown(t)
	a, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lengthen(a), a.Close(), a.Discard()); err != nil {
		t.Fatal(err)
	}
	isLong(t, path)
	for range 3 { // what has been appended may be changed, and made shorter
		a, err = hdf5.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := a.Dataset("group/n")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(n.WriteSlab(tensor.Full(tensor.Int64, -1, 2), 3), n.Resize(4), n.Resize(6), a.Close()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, path), "group/n"); !tensor.Equal(got, tensor.FromSlice([]int64{0, 1, 2, -1, 0, 0}, 6)) {
			t.Fatalf("%v", got)
		}
	}
	readByH5py(t, path)
}

// readByH5py reads, where there is an h5py, what Append has left, by the dimension scale, too, which
// is known by the address of its header, and makes it larger.
func readByH5py(t *testing.T, path string) {
	t.Helper()
	for _, py := range filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS")) {
		if exec.Command(py, "-c", "import h5py").Run() != nil {
			continue
		}
		out, err := exec.Command(py, "-c", `
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "a") as f:
    assert (f["x"][()] == np.arange(27).reshape(9, 3)).all(), f["x"][()]
    assert f["x"].attrs["unit"] == "m" and f["x"].dims[0][0].name == "/group/n", f["x"].dims[0][0]
    assert list(f["group/n"][()]) == [0, 1, 2, -1, 0, 0] and (f["soft"][()] == f["x"][()]).all()
    assert f["empty"].shape == (300,) and (f["empty"][()] == 7).all()
    f["x"].resize((4000, 3))
    f["x"][9:] = 5
    f["new"] = np.arange(10)
with h5py.File(sys.argv[1]) as f:
    assert f["x"][3999, 2] == 5 and f["x"][8, 2] == 26 and f["new"][9] == 9 and f["empty"][299] == 7`, path).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", py, err, out)
		}
		a, err := hdf5.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := a.Dataset("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(x.Append(rows(0, 1)), a.Close()); err != nil {
			t.Fatal(err)
		}
		if x := read(t, open(t, path), "x"); x.Dim(0) != 4001 || tensor.At[float32](x, 3999, 1) != 5 || tensor.At[float32](x, 4000, 2) != 2 {
			t.Errorf("%v", x)
		}
		return
	}
}

func TestWhatAppendRefuses(t *testing.T) {
	path := grown(t)
	a, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Discard()
	if _, err := hdf5.Append(path); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("two at once: %v", err)
	}
	for name, want := range map[string]error{
		"nothing": hdf5.ErrName, "group": hdf5.ErrName, "fixed": hdf5.ErrUnsupported, "text": hdf5.ErrText, "big": hdf5.ErrUnsupported, "summed": hdf5.ErrUnsupported,
	} {
		if _, err := a.Dataset(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	x, err := a.Dataset("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{x.Append(rows(0, 1).Narrow(1, 0, 2)), x.Append(rows(0, 1).To(tensor.Float64)), x.Resize(2, 4), x.WriteSlab(rows(0, 1), 2, 0)} {
		if !errors.Is(err, hdf5.ErrShape) {
			t.Errorf("%v, want ErrShape", err)
		}
	}
	for name, want := range map[string]error{"testdata/latest.h5": nil, "testdata/record.py": hdf5.ErrFormat, "nowhere.h5": os.ErrNotExist} {
		if a, err := hdf5.Append(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		} else if err == nil {
			a.Discard()
		}
	}
}

func TestADiscardedAppendLeavesTheFile(t *testing.T) {
	path := grown(t)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	a, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lengthen(a), a.Discard(), a.Discard()); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("%d bytes are %d, %v", len(before), len(after), err)
	}
}

// A process that dies at any of its writes leaves the file as it was, or as it is afterwards, each
// data set for itself.
func TestADeathInAnAppend(t *testing.T) {
	old := []*tensor.Tensor{rows(0, 2), tensor.Arange(tensor.Int64, 0, 5, 1), tensor.New(tensor.Uint8, 0)}
	long := []*tensor.Tensor{rows(0, 9), tensor.Arange(tensor.Int64, 0, 500, 1), tensor.Full(tensor.Uint8, 7, 300)}
	for writes := 0; ; writes++ {
		path := grown(t)
		a, err := hdf5.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		died := hdf5.DieAfter(a, writes)
		err = errors.Join(lengthen(a), a.Close())
		f := open(t, path)
		for i, name := range []string{"x", "group/n", "empty"} {
			got := read(t, f, name)
			if !slices.ContainsFunc([]*tensor.Tensor{old[i], long[i]}, func(w *tensor.Tensor) bool { return tensor.Equal(got, w) }) {
				t.Fatalf("after %d writes %s is %v", writes, name, got)
			}
		}
		f.Close()
		if !died() {
			if err != nil || writes < 10 {
				t.Errorf("%d writes, %v", writes, err)
			}
			isLong(t, path)
			return
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, name := range []string{"testdata/grows.h5", "testdata/h5py.h5"} {
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
		a, err := hdf5.Append(path)
		if err != nil {
			return
		}
		defer a.Discard()
		longer := map[string][]int{}
		for _, name := range a.Names() {
			d, err := a.Dataset(name)
			if err != nil || d.DType().Size()*product(d.Shape()) > 1<<20 || product(d.Chunk()) > 1<<20 {
				continue
			}
			shape := d.Shape()
			if shape[0] = 1; product(shape) < 1<<16 && d.Append(tensor.New(d.DType(), shape...)) == nil {
				longer[name] = d.Shape()
			}
		}
		if a.Close() != nil {
			return
		}
		again, err := hdf5.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		for name, shape := range longer {
			if d, err := again.Dataset(name); err != nil || !slices.Equal(d.Shape(), shape) {
				t.Errorf("%s: %v, want %v", name, err, shape)
			}
		}
	})
}

func product(shape []int) int {
	n := 1
	for _, k := range shape {
		n = min(n*k, 1<<40)
	}
	return n
}
