package datasets_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/tensor"
)

// saveHDF5 writes rows of numbers that say where they are, and labels.
func saveHDF5(t *testing.T, n int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "train.h5")
	x := tensor.Arange(tensor.Float32, 0, float64(6*n), 1).Reshape(n, 2, 3)
	err := hdf5.SaveWith(path, map[string]*tensor.Tensor{"train/x": x,
		"train/y": tensor.Arange(tensor.Int64, 0, float64(n), 1), "one": tensor.Scalar(tensor.Int64, 1),
		"short": tensor.New(tensor.Int64, n-1)}, hdf5.Options{Chunk: nil, Gzip: 1})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// An HDF5 file is a data set of any loader: workers on goroutines and workers that are processes
// read the same rows, each once.
func TestOpenHDF5_IsADataSet(t *testing.T) {
	const n = 50
	set, err := datasets.OpenHDF5(saveHDF5(t, n), "train/x", "train/y")
	if err != nil {
		t.Fatal(err)
	}
	if s, err := set.Get(t.Context(), 7); err != nil || set.Len() != n || s[0].Dims() != 2 ||
		tensor.At[float32](s[0], 1, 2) != 47 || s[1].Item() != 7 {
		t.Fatalf("%v, %v", s, err)
	}
	for name, o := range map[string]data.Options{
		"no workers": {BatchSize: 8}, "goroutines": {BatchSize: 8, Workers: 2, Shuffle: true},
		"processes": {BatchSize: 8, Workers: 2, Kind: data.Processes, Shuffle: true},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[int64]bool{}
			l := data.NewLoader(set, o)
			defer l.Close()
			for b, err := range l.Batches(t.Context()) {
				if err != nil {
					t.Fatal(err)
				}
				for k := range b[1].Dim(0) {
					row := tensor.At[int64](b[1], k)
					if at := tensor.At[float32](b[0], k, 1, 0); at != float32(6*row+3) || seen[row] {
						t.Errorf("row %d has %v", row, at)
					}
					seen[row] = true
				}
			}
			if len(seen) != n {
				t.Errorf("%d of %d rows", len(seen), n)
			}
		})
	}
}

func TestOpenHDF5_SaysWhatIsWrong(t *testing.T) {
	path := saveHDF5(t, 5)
	for what, c := range map[string]struct {
		path  string
		names []string
		want  error
	}{
		"no such name":   {path, []string{"train/z"}, hdf5.ErrName},
		"no rows":        {path, []string{"one"}, data.ErrShape},
		"fewer rows":     {path, []string{"train/x", "short"}, data.ErrShape},
		"not the format": {"hdf5_linux_test.go", []string{"x"}, hdf5.ErrFormat},
	} {
		_, err := datasets.OpenHDF5(c.path, c.names...)
		var file *encoding.FileError
		if !errors.Is(err, c.want) || !errors.As(err, &file) || file.Path != c.path {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func ExampleOpenHDF5() {
	set, err := datasets.OpenHDF5("train.h5", "train/x", "train/y")
	if err != nil {
		fmt.Println("there is no such file here")
		return
	}
	loader := data.NewLoader(set, data.Options{BatchSize: 64, Shuffle: true, Workers: 4})
	defer loader.Close()
	// Output: there is no such file here
}
