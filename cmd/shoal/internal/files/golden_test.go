package files

import (
	stdbytes "bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// testdata/golden has a folder for each version of the writers. A release whose writers write other
// bytes gets a folder of its own, and the old ones stay: what was written once stays readable.
var writeGolden = flag.Bool("golden.write", false, "write the folder of goldenVersion")

// goldenVersion grows when a writer writes other bytes.
const goldenVersion = "1"

var goldenNames = []string{"x.pt", "x.safetensors", "y.safetensors.index.json", "x.npy", "x.npz", "x.h5", "x.msgpack"}

// goldenContent is what a file of that name has in every folder.
func goldenContent(name string) Content {
	if strings.HasSuffix(name, ".npy") {
		return Content{Tensors: Tensors{"x": pattern(tensor.Float32, 2, 3)}}
	}
	lack := lacks["x"+filepath.Ext(name)]
	if strings.HasSuffix(name, ".json") {
		lack = lacks["x.safetensors"]
	}
	all := Tensors{"scalar": pattern(tensor.Int64), "no rows": pattern(tensor.Float32, 0, 3)}
	for dt := tensor.Bool; dt <= tensor.Float8E5M2; dt++ {
		if lack[dt] == nil {
			all["of "+dt.String()] = pattern(dt, 2, 3)
		}
	}
	c := Content{Tensors: all}
	if strings.HasSuffix(name, ".safetensors") {
		c.Meta = map[string]string{"made by": "shoal"}
	}
	return c
}

// pattern returns a tensor whose bytes are known.
func pattern(dt tensor.DType, shape ...int) *tensor.Tensor {
	x := tensor.New(dt, shape...)
	for i := range tensor.Bytes(x) {
		if tensor.Bytes(x)[i] = byte(37 * i); dt == tensor.Bool {
			tensor.Bytes(x)[i] &= 1
		}
	}
	return x
}

func TestGolden_FilesOfEveryVersionAreRead(t *testing.T) {
	newest := filepath.Join("testdata", "golden", goldenVersion)
	if *writeGolden {
		save(t, newest)
		saveRich(t, filepath.Join(newest, "rich.h5"))
	}
	folders, err := filepath.Glob(filepath.Join("testdata", "golden", "*"))
	if err != nil || !slices.Contains(folders, newest) {
		t.Fatalf("%v, %v: no folder of this version; -golden.write makes it", folders, err)
	}
	for _, dir := range folders {
		for _, name := range goldenNames {
			f, err := Of(name)
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.Load(filepath.Join(dir, name), 0)
			if err != nil {
				t.Errorf("%s of version %s: %v", name, dir, err)
				continue
			}
			want := goldenContent(name)
			if len(c.Tensors) != len(want.Tensors) || fmt.Sprint(c.Meta) != fmt.Sprint(want.Meta) {
				t.Errorf("%s of version %s has %v and %v", name, dir, c.Tensors, c.Meta)
			}
			for key, x := range want.Tensors {
				got := c.Tensors[key]
				if got == nil && len(c.Tensors) == 1 {
					for _, got = range c.Tensors { // a .npy has no names
					}
				}
				if got == nil || got.DType() != x.DType() || !slices.Equal(got.Shape(), x.Shape()) ||
					!stdbytes.Equal(tensor.Bytes(got), tensor.Bytes(x)) {
					t.Errorf("%s of version %s: %s is %v", name, dir, key, got)
				}
			}
		}
		readRich(t, filepath.Join(dir, "rich.h5"))
	}
}

// A writer whose bytes change is a new version of its format: the files of the old one must stay,
// and be read.
func TestGolden_WritersWriteTheNewestVersion(t *testing.T) {
	dir := t.TempDir()
	save(t, dir)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		got, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join("testdata", "golden", goldenVersion, e.Name()))
		if err != nil || !stdbytes.Equal(got, want) {
			t.Errorf("%s is written otherwise than in version %s (%v): raise goldenVersion, run this test with "+
				"-golden.write, and keep the old folder",
				e.Name(), goldenVersion, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// save writes the files whose bytes are the same each time.
func save(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range goldenNames {
		f, err := Of(name)
		if err == nil {
			_, err = f.Save(filepath.Join(dir, name), goldenContent(name))
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// saveRich writes what HDF5 has besides whole tensors. What gzip makes of bytes depends on the
// version of Go, so these bytes are not compared.
func saveRich(t *testing.T, path string) {
	t.Helper()
	w, err := hdf5.Create(path)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	for name, o := range richOptions {
		d, err := w.Dataset("packed/"+name, tensor.Int32, []int{64, 3}, o)
		check(err)
		check(d.WriteSlab(pattern(tensor.Int32, 64, 3), 0, 0))
	}
	check(w.Strings("labels", []string{"a", "", "größer"}, 3))
	check(w.Attr("labels", "unit", "m/s"))
	check(w.Close())
	w, err = hdf5.Append(path)
	check(err)
	d, err := w.Dataset("later", tensor.Float32, []int{0, 2}, hdf5.Options{MaxShape: []int{hdf5.Unlimited, 2}})
	check(err)
	check(d.Append(pattern(tensor.Float32, 5, 2)))
	check(w.Close())
}

var richOptions = map[string]hdf5.Options{
	"plain": {Chunk: []int{16, 3}}, "gzip": {Chunk: []int{16, 3}, Gzip: 6},
	"shuffled": {Chunk: []int{16, 3}, Shuffle: true, Gzip: 1}, "lzf": {Chunk: []int{16, 3}, LZF: true},
}

func readRich(t *testing.T, path string) {
	t.Helper()
	f, err := hdf5.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	want := map[string]*tensor.Tensor{"later": pattern(tensor.Float32, 5, 2)}
	for name := range richOptions {
		want["packed/"+name] = pattern(tensor.Int32, 64, 3)
	}
	for name, x := range want {
		d, err := f.Dataset(name)
		if err != nil {
			t.Error(err)
			continue
		}
		got, err := d.Read()
		if err != nil || !stdbytes.Equal(tensor.Bytes(got), tensor.Bytes(x)) {
			t.Errorf("%s of %s: %v, %v", name, path, got, err)
		}
	}
	labels, _, err := f.Strings("labels")
	if err != nil || fmt.Sprintf("%q", labels) != `["a" "" "größer"]` {
		t.Errorf("labels of %s: %q, %v", path, labels, err)
	}
	if attrs, err := f.Attrs("labels"); err != nil || attrs["unit"] != "m/s" {
		t.Errorf("attributes of %s: %v, %v", path, attrs, err)
	}
}
