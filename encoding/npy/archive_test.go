package npy_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/tensor"
)

// mixed is an archive as numpy.savez makes it of numbers beside objects, records and text, with a
// file that is no array.
func mixed(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"v1", "object", "records", "text", "scalar"} {
		array, err := os.ReadFile("testdata/" + name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		w.Write(array)
	}
	w, err := z.Create("readme.txt")
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("text"))
	z.Close()
	return write(t, "mixed.npz", b.Bytes())
}

func TestRegression_S4_4_AnObjectInAnArchiveLeavesTheOthers(t *testing.T) {
	path := mixed(t)
	all, err := npy.LoadAll(path)
	if len(all) != 2 || all["v1"] == nil || all["scalar"] == nil {
		t.Errorf("%v", all)
	}
	for _, name := range []string{"object", "records", "text", "readme.txt"} {
		if !errors.Is(err, npy.ErrDType) || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%v says nothing of %s", err, name)
		}
	}
	a, err := npy.OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var said []string
	for _, i := range a.List() {
		said = append(said, fmt.Sprint(i.Name, " ", i.Shape, " ", errors.Is(i.Err, npy.ErrDType)))
	}
	if got := strings.Join(said,
		", "); got != "object [] true, readme.txt [] true, records [] true, scalar [] false, text [] true, v1 [2 "+
		"3] false" {
		t.Error(got)
	}
	if x, err := a.Tensor("v1"); err != nil || !tensor.Equal(x, all["v1"]) {
		t.Errorf("%v, %v", x, err)
	}
	var file *encoding.FileError
	if _, err := a.Tensor("none"); !errors.Is(err, npy.ErrName) || !errors.As(err, &file) {
		t.Errorf("%v", err)
	}
	if _, err := a.Tensor("object"); !errors.Is(err, npy.ErrDType) {
		t.Errorf("%v", err)
	}
}

func TestRegression_S4_2_AnArchiveInflatesNoFurtherThanItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "zeros.npz")
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, _ := z.Create("x.npy")
	w.Write(file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000,), }", 4_000_000))
	z.Close()
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil || b.Len() > 8000 {
		t.Fatal(err, b.Len())
	}
	a, err := npy.OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.MaxBytes = 3_999_999
	if _, err := a.Tensor("x"); !errors.Is(err, npy.ErrLimit) ||
		!strings.Contains(err.Error(), "raise Archive.MaxBytes") {
		t.Errorf("%v", err)
	}
	a.MaxBytes++
	if x, err := a.Tensor("x"); err != nil || x.Numel() != 1_000_000 {
		t.Errorf("%v, %v", x, err)
	}
}

// 12 MB that say that they become 12 GiB are refused, whatever memory the machine has, before there
// is memory for those.
func TestArchive_InflatesByDefaultNoFurtherThanALimit(t *testing.T) {
	head := file(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3221225472,), }", 0)
	var packed bytes.Buffer
	f, _ := flate.NewWriter(&packed, flate.NoCompression)
	f.Write(head)
	f.Write(make([]byte, 12<<20))
	f.Close()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "x.npy", Method: zip.Deflate, CompressedSize64: uint64(packed.Len()),
		UncompressedSize64: uint64(len(head)) + 12<<30})
	if err != nil {
		t.Fatal(err)
	}
	w.Write(packed.Bytes())
	z.Close()
	path := write(t, "zeros.npz", b.Bytes())
	a, err := npy.OpenArchive(path)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for what, read := range map[string]func() error{
		"Tensor":  func() error { _, err := a.Tensor("x"); return err },
		"Tensors": func() error { _, err := a.Tensors(); return err },
		"LoadAll": func() error { _, err := npy.LoadAll(path); return err },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		var file *encoding.FileError
		if !errors.Is(err, npy.ErrLimit) || !errors.As(err, &file) ||
			!strings.Contains(err.Error(), "raise Archive.MaxBytes") ||
			!strings.Contains(err.Error(), fmt.Sprint(packed.Len()*100)) {
			t.Errorf("%s: %v", what, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 16<<20 {
			t.Errorf("%s: %d bytes were allocated for it", what, n)
		}
	}
}

func ExampleArchive() {
	dir, err := os.MkdirTemp("", "npy")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "x.npz")
	if err := npy.Save(path, map[string]*tensor.Tensor{"mean": tensor.Ones(tensor.Float32, 3),
		"count": tensor.Scalar(tensor.Int64, 7)}); err != nil {
		panic(err)
	}
	a, err := npy.OpenArchive(path)
	if err != nil {
		panic(err)
	}
	defer a.Close()
	for _, i := range a.List() {
		fmt.Println(i.Name, i.DType, i.Shape, i.Err)
	}
	x, err := a.Tensor("count")
	fmt.Println(x, err)
	// Output:
	// count int64 [] <nil>
	// mean float32 [3] <nil>
	// tensor(7) <nil>
}
