package torch

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/tensor"
)

// fileLibraries is an interpreter that has the libraries of the other formats: SHOAL_FILES_PYTHON,
// or one of the interpreters with PyTorch.
func fileLibraries(t *testing.T) peerPython {
	t.Helper()
	candidates := torchPythons()
	if path := os.Getenv("SHOAL_FILES_PYTHON"); path != "" {
		candidates = []peerPython{{path: path}}
	}
	for _, py := range candidates {
		if exec.Command(py.path, "-c", "import h5py, safetensors, msgpack, msgpack_numpy").Run() == nil {
			return py
		}
	}
	if interop {
		t.Fatal("no interpreter has h5py, safetensors, msgpack and msgpack_numpy; SHOAL_FILES_PYTHON names one")
	}
	t.Skip("files were not tested against Python's libraries: no interpreter has h5py, safetensors, msgpack and " +
		"msgpack_numpy (make interop installs them)")
	return peerPython{}
}

type tensors = map[string]*tensor.Tensor

// A fileFormat is a format that Python's libraries have as well.
type fileFormat struct {
	save func(path string, all tensors) error
	load func(path string) (tensors, error)
	lack tensor.DType // a dtype that it lacks, besides bfloat16 if Python has none
}

var fileFormats = map[string]fileFormat{
	"npz": {npy.Save[tensors], npy.LoadAll, tensor.BFloat16},
	"npy": {func(path string, all tensors) error { return npy.Save(path, all["tensor"]) },
		func(path string) (tensors, error) {
			x, err := npy.Load(path)
			return tensors{"tensor": x}, err
		}, tensor.BFloat16},
	"h5": {func(path string, all tensors) error {
		return hdf5.SaveWith(path, all, hdf5.Options{Shuffle: true, Gzip: 4})
	}, hdf5.Load, tensor.BFloat16},
	"msgpack": {msgpack.Save, loadMsgpack, tensor.BFloat16},
	"safetensors": {func(path string, all tensors) error { return safetensors.Save(path, all) },
		func(path string) (tensors, error) {
			f, err := safetensors.Open(path)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return f.Tensors()
		}, tensor.Complex128},
}

// describe returns what formats.py prints of an array.
func describe(x *tensor.Tensor) string {
	var shape, numbers []string
	for _, n := range x.Shape() {
		shape = append(shape, fmt.Sprint(n))
	}
	for _, v := range elements(x) {
		numbers = append(numbers, fmt.Sprintf("%.1f", v))
	}
	return fmt.Sprintf("%s[%s][%s]", strings.TrimLeft(numpy.Descr(x.DType().String()), "<|"), strings.Join(shape, ", "),
		strings.Join(numbers, ", "))
}

// TestFormats_CrossBothWays wants Python's libraries to read the saved files, and Go to read
// theirs.
func TestFormats_CrossBothWays(t *testing.T) {
	py := fileLibraries(t)
	for name, format := range fileFormats {
		path := filepath.Join(t.TempDir(), "x."+name)
		ask := func(t *testing.T, task string) (said map[string]string) {
			t.Helper()
			c := exec.CommandContext(testContext(t), py.path, "testdata/formats.py", task, name, path)
			c.Env, c.Stderr = pythonEnv(), os.Stderr
			out, err := c.Output()
			if err == nil {
				err = json.Unmarshal(out, &said)
			}
			if err != nil {
				t.Fatal(err)
			}
			return said
		}
		compare := func(t *testing.T, all tensors, said map[string]string) {
			t.Helper()
			for key, x := range all {
				if said[key] != describe(x) {
					t.Errorf("%s is %s in Python and %s here", key, said[key], describe(x))
				}
			}
			if len(said) != len(all) {
				t.Errorf("%d arrays in Python, %d here", len(said), len(all))
			}
		}
		cell(t, name+" to Python", func(t *testing.T) {
			x := tensor.Arange(tensor.Float32, 0, 24, 1).Reshape(2, 3, 4)
			all := tensors{"tensor": x}
			if name != "npy" {
				all["view"], all["empty"], all["scalar"] = x.Permute(2, 0, 1),
					tensor.New(tensor.Float32, 0, 3), tensor.Scalar(tensor.Int64, 5)
				for dt := tensor.Bool; dt <= tensor.Uint64; dt++ {
					if dt != format.lack && numpy.Descr(dt.String()) != "" {
						all[dt.String()] = tensor.Full(dt, 1, 3)
					}
				}
			}
			if name == "h5" {
				all["group/deep/x"], all["group/long"] = x, tensor.Arange(tensor.Int32, 0, 1000, 1)
			}
			if err := format.save(path, all); err != nil {
				t.Fatal(err)
			}
			compare(t, all, ask(t, "reads"))
			if name == "h5" {
				again, err := hdf5.Load(path)
				if err != nil || again["appended/by/h5py"] == nil || again["appended/by/h5py"].Sum() != 3 ||
					len(again) != len(all)+1 {
					t.Errorf("after h5py wrote to the file: %v, %v", again["appended/by/h5py"], err)
				}
			}
		})
		cell(t, name+" from Python", func(t *testing.T) {
			said := ask(t, "writes")
			all, err := format.load(path)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, all, said)
		})
	}
}

// TestFormats_LatestHDF5 reads the files that h5py writes with libver="latest", with structures of
// several levels. The other way round it writes forms that h5py's tests do not: text, attributes
// and lzf.
func TestFormats_LatestHDF5(t *testing.T) {
	py := fileLibraries(t)
	run := func(t *testing.T, task, path string) string {
		t.Helper()
		c := exec.CommandContext(testContext(t), py.path, "testdata/latest.py", task, path)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	cell(t, "latest from Python", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "latest.h5")
		run(t, "write", path)
		all, err := hdf5.Load(path)
		if err != nil || len(all) != 603 {
			t.Fatalf("%d data sets: %v", len(all), err)
		}
		for name, n := range map[string]int{"extensible": 20_000, "fixed": 5_000, "tree": 10_000} {
			if x := all[name]; !tensor.Equal(x.View(-1), tensor.Arange(tensor.Int32, 0, float64(n), 1)) {
				t.Errorf("%s is %v", name, x)
			}
		}
		for i := range 600 {
			if x := all[fmt.Sprintf("many/member with a long name %05d", i)]; x == nil || x.Item() != float64(i) {
				t.Fatalf("member %d is %v", i, x)
			}
		}
		f, err := hdf5.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if attrs, err := f.Attrs("many"); err != nil || len(attrs) != 300 ||
			attrs["attribute 00299"].(*tensor.Tensor).Item() != 299 {
			t.Errorf("%d attributes: %v", len(attrs), err)
		}
	})
	cell(t, "text, attributes and lzf to Python", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "text.h5")
		w, err := hdf5.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		all := tensors{"lzf": tensor.Arange(tensor.Int64, 0, 10_000, 1),
			"noise": tensor.RandN(tensor.Float64, tensor.NewGenerator(1), 100)}
		if err := w.Save(all, hdf5.Options{LZF: true, Shuffle: true}); err != nil {
			t.Fatal(err)
		}
		for key, v := range map[string]any{"text": "été", "list": []string{"a", ""},
			"number": tensor.Scalar(tensor.Uint16, 7)} {
			if err := w.Attr("group", key, v); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Strings("group/labels", []string{"a", "", "é", "bc"}, 2, 2); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := run(t, "read", path),
			"49995000 lzf True 100 [['a', ''], ['é', 'bc']] été ['a', ''] 7 uint16"; got != want {
			t.Errorf("h5py reads %s, not %s", got, want)
		}
	})
}

// TestFormats_SlabsOfH5py writes a data set slab by slab with many chunks, and wants h5py to have
// the same sum.
func TestFormats_SlabsOfH5py(t *testing.T) {
	py := fileLibraries(t)
	cell(t, "slabs", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "slabs.h5")
		w, err := hdf5.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard()
		d, err := w.Dataset("train/x", tensor.Float32, []int{1000, 33},
			hdf5.Options{Chunk: []int{3, 10}, Shuffle: true, Gzip: 1})
		if err != nil {
			t.Fatal(err)
		}
		for from := 0; from < 1000; from += 100 { // not whole chunks
			if err := d.WriteSlab(tensor.Full(tensor.Float32, float64(from), 100, 33), from, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(testContext(t), py.path, "-c", `import h5py, sys
d = h5py.File(sys.argv[1])["train/x"]
print(d.chunks, d.compression, d.compression_opts, d.shuffle, d.dtype, int(d[()].sum()), d[299:302, 5].tolist())`, path)
		out, err := c.CombinedOutput()
		if want := "(3, 10) gzip 1 True float32 14850000 [200.0, 300.0, 300.0]\n"; err != nil || string(out) != want {
			t.Errorf("h5py says %s, %v", out, err)
		}
	})
}

// loadMsgpack reads the tensors of a file of MessagePack.
func loadMsgpack(path string) (tensors, error) {
	all, _, err := msgpack.Load(path, msgpack.Options{})
	return all, err
}
