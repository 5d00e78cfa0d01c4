package hdf5_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// grown copies a file of h5py's whose data sets grow: "x" of float32 (2, 3) in chunks of (4, 2)
// with gzip and shuffle, "group/n" of int64 (5), which are 0 to 4, "empty" of uint8 (0) by lzf, and
// beside them what Append refuses.
func grown(t testing.TB) string { return copied(t, "testdata/grows.h5") }

func copied(t testing.TB, name string) string {
	b, err := os.ReadFile(name)
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
func lengthen(a *hdf5.Writer) error {
	x, err := a.Open("x")
	if err != nil {
		return err
	}
	n, err := a.Open("group/n")
	if err != nil {
		return err
	}
	empty, err := a.Open("empty")
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
		n, err := a.Open("group/n")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(n.WriteSlab(tensor.Full(tensor.Int64, -1, 2), 3), n.Resize(4), n.Resize(6),
			a.Close()); err != nil {
			t.Fatal(err)
		}
		if got := read(t, open(t, path), "group/n"); !tensor.Equal(got,
			tensor.FromSlice([]int64{0, 1, 2, -1, 0, 0}, 6)) {
			t.Fatalf("%v", got)
		}
	}
	readByH5py(t, path)
}

// readByH5py reads, where there is an h5py, what Append has left, by the dimension scale as well,
// which is known by the address of its header, and makes it larger.
func readByH5py(t *testing.T, path string) {
	t.Helper()
	if !runH5py(t, path, `
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
    assert f["x"][3999, 2] == 5 and f["x"][8, 2] == 26 and f["new"][9] == 9 and f["empty"][299] == 7`) {
		return
	}
	a, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	x, err := a.Open("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(x.Append(rows(0, 1)), a.Close()); err != nil {
		t.Fatal(err)
	}
	if x := read(t, open(t, path), "x"); x.Dim(0) != 4001 || tensor.At[float32](x, 3999, 1) != 5 ||
		tensor.At[float32](x, 4000, 2) != 2 {
		t.Errorf("%v", x)
	}
}

// What libver="latest" has written, with chunks in each of its indices, grows too.
func TestRegression_S3_5_AppendToWhatLibverLatestHasWritten(t *testing.T) {
	for _, file := range []string{"v110", "latest"} {
		t.Run(file, func(t *testing.T) {
			path := copied(t, "testdata/"+file+".h5")
			for round := range 2 {
				appendToLatest(t, path, 3*round)
			}
			latestByH5py(t, path)
		})
	}
}

// appendToLatest adds 3 pages to those that were added before, where there is room, and 100
// numbers.
func appendToLatest(t *testing.T, path string, before int) {
	t.Helper()
	a, err := hdf5.Append(path)
	if err != nil {
		t.Fatal(err)
	}
	page, long := x(), []string{"extensible", "tree"}
	if before == 0 {
		long = append(long, "fixed_room") // for 6 in all
	}
	for _, name := range long {
		if err := appendTo(a, name, page); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := appendTo(a, "extensible_blocks", tensor.Arange(tensor.Int64, 0, 100, 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"single", "single_gzip", "implicit", "extensible_last"} { // written, where they are
		d, err := a.Open(name)
		if err == nil {
			err = d.WriteSlab(tensor.Full(tensor.Float32, float64(-before), 1, 1, 1), 2, 3, 4)
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, path)
	defer f.Close()
	for _, name := range long {
		got := read(t, f, name)
		if got.Dim(0) != before+6 {
			t.Fatalf("%s is of shape %v", name, got.Shape())
		}
		for i := 0; i < got.Dim(0); i += 3 {
			if !tensor.Equal(got.Narrow(0, i, 3), page) {
				t.Errorf("%s is %v", name, got)
			}
		}
	}
	if got := read(t, f, "extensible_blocks"); got.Dim(0) != 500+100*(before/3) ||
		tensor.At[int64](got, 399) != 399 || tensor.At[int64](got, 499) != 99 {
		t.Errorf("%v", got)
	}
	want := page.Clone()
	tensor.SetAt(want, float32(-before), 2, 3, 4)
	for _, name := range []string{"single", "single_gzip", "implicit", "extensible_last"} {
		if got := read(t, f, name); !tensor.Equal(got, want) {
			t.Errorf("%s is %v", name, got)
		}
	}
	if attrs, err := f.Attrs("many"); err != nil || len(attrs) != 40 {
		t.Errorf("%d attributes, %v", len(attrs), err)
	}
}

func appendTo(a *hdf5.Writer, name string, t *tensor.Tensor) error {
	d, err := a.Open(name)
	if err != nil {
		return err
	}
	return d.Append(t)
}

// latestByH5py reads, and makes larger, what appendToLatest has left, where there is an h5py.
func latestByH5py(t *testing.T, path string) {
	t.Helper()
	runH5py(t, path, `
import sys, h5py, numpy as np
x = np.arange(60, dtype="<f4").reshape(3, 4, 5)
with h5py.File(sys.argv[1], "a", libver="latest") as f:
    for name in ("extensible", "tree"):
        assert (f[name][()] == np.concatenate([x, x, x])).all(), name
        f[name].resize((40, 4, 5))
        f[name][9:] = 5
    assert (f["fixed_room"][()] == np.concatenate([x, x])).all()
    assert (f["extensible_blocks"][()] == np.concatenate([np.arange(400), np.arange(100), np.arange(100)])).all()
    assert f["single_gzip"][2, 3, 4] == -3 and f["implicit"][2, 3, 3] == x[2, 3, 3]
    f["extensible"].attrs["new"] = "attribute"
    f.create_dataset("new", data=x, maxshape=(None, 4, 5), chunks=True)
with h5py.File(sys.argv[1]) as f:
    assert f["tree"][39, 3, 4] == 5 and (f["tree"][6:9] == x).all() and f["extensible"].attrs["new"] == "attribute"`)
}

// runH5py runs a program on a file by the first Python that has h5py, and reports whether there was
// one.
func runH5py(t *testing.T, path, program string) bool {
	t.Helper()
	for _, py := range filepath.SplitList(os.Getenv("SHOAL_TORCH_PYTHONS")) {
		if exec.Command(py, "-c", "import h5py").Run() != nil {
			continue
		}
		if out, err := exec.Command(py, "-c", program, path).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", py, err, out)
		}
		return true
	}
	t.Log("h5py did not try the file: no Python of SHOAL_TORCH_PYTHONS has it (make interop has one)")
	return false
}

func TestAppend_RefusesWhatItCannotWrite(t *testing.T) {
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
		"nothing": hdf5.ErrName, "group": hdf5.ErrName, "fixed": hdf5.ErrUnsupported, "text": hdf5.ErrText,
		"big": hdf5.ErrUnsupported, "summed": hdf5.ErrUnsupported,
	} {
		if _, err := a.Open(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	x, err := a.Open("x")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{x.Append(rows(0, 1).Narrow(1, 0, 2)), x.Append(rows(0, 1).To(tensor.Float64)),
		x.Resize(2, 4), x.WriteSlab(rows(0, 1), 2, 0)} {
		if !errors.Is(err, hdf5.ErrShape) {
			t.Errorf("%v, want ErrShape", err)
		}
	}
	for name, want := range map[string]error{"testdata/latest.h5": nil, "testdata/record.py": hdf5.ErrFormat,
		"nowhere.h5": os.ErrNotExist} {
		if a, err := hdf5.Append(name); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		} else if err == nil {
			a.Discard()
		}
	}
}

func TestAppend_DiscardedLeavesTheFile(t *testing.T) {
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
func TestAppend_SurvivesDeathAtAnyWrite(t *testing.T) {
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
			if !slices.ContainsFunc([]*tensor.Tensor{old[i], long[i]},
				func(w *tensor.Tensor) bool { return tensor.Equal(got, w) }) {
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

// The header of what libver="latest" has written moves, in one write.
func TestAppend_ToLatestSurvivesDeathAtAnyWrite(t *testing.T) {
	names, twice := []string{"extensible", "tree", "fixed_room"}, tensor.Cat(0, x(), x())
	for writes := 0; ; writes++ {
		path := copied(t, "testdata/latest.h5")
		a, err := hdf5.Append(path)
		if err != nil {
			t.Fatal(err)
		}
		died := hdf5.DieAfter(a, writes)
		for _, name := range names {
			err = errors.Join(err, appendTo(a, name, x()))
		}
		err = errors.Join(err, a.Close())
		f, grown := open(t, path), 0
		for _, name := range names {
			switch got := read(t, f, name); {
			case tensor.Equal(got, twice):
				grown++
			case !tensor.Equal(got, x()):
				t.Fatalf("after %d writes %s is %v", writes, name, got)
			}
		}
		f.Close()
		if !died() {
			if err != nil || grown != len(names) {
				t.Errorf("%d have grown, %v", grown, err)
			}
			return
		}
	}
}

func FuzzAppend(f *testing.F) {
	for _, name := range []string{"testdata/grows.h5", "testdata/h5py.h5", "testdata/v110.h5", "testdata/latest.h5"} {
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
		f, err := hdf5.Open(path)
		if err != nil {
			return
		}
		names, groups := f.Names(), f.Groups()
		f.Close()
		a, err := hdf5.Append(path)
		if err != nil {
			return
		}
		defer a.Discard()
		longer := map[string][]int{}
		for _, name := range names {
			d, err := a.Open(name)
			if err != nil || d.DType().Size()*product(d.Shape()) > 1<<20 || product(d.Chunk()) > 1<<20 {
				continue
			}
			shape := d.Shape()
			if shape[0] = 1; product(shape) < 1<<16 && d.Append(tensor.New(d.DType(), shape...)) == nil {
				longer[name] = d.Shape()
			}
		}
		made := ""
		for _, group := range append(groups, "") { // the last one is the file itself
			name := strings.TrimPrefix(group+"/made here", "/")
			if d, err := a.Dataset(name, tensor.Uint8, []int{3}, hdf5.Options{}); err == nil && len(group) < 100 {
				if err := d.WriteSlab(tensor.Ones(tensor.Uint8, 3), 0); err != nil {
					t.Fatal(err)
				}
				made = name
				break
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
		if d, err := again.Dataset(made); made != "" && (err != nil || d.Shape()[0] != 3) {
			t.Errorf("%q: %v", made, err)
		}
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
