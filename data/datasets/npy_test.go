package datasets_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/tensor"
)

func TestOpenNPY_IsADataSet(t *testing.T) {
	dir := t.TempDir()
	x, y := filepath.Join(dir, "x.npy"), filepath.Join(dir, "y.npy")
	if err := errors.Join(npy.Save(x, tensor.FromSlice([]int64{0, 1, 2, 3, 4, 5}, 3, 2)),
		npy.Save(y, tensor.FromSlice([]int64{7, 8, 9}, 3))); err != nil {
		t.Fatal(err)
	}
	for kind, workers := range map[data.Kind]int{data.Goroutines: 0, data.Processes: 1} {
		set, err := datasets.OpenNPY(x, y)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := firsts(t, set, kind, workers), []int64{0, 1, 2, 3, 4, 5, 7, 8, 9}; !slices.Equal(got, want) {
			t.Errorf("%d workers: %v, want %v", workers, got, want)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
	content, err := os.ReadFile(x)
	if err != nil {
		t.Fatal(err)
	}
	short, long, single := filepath.Join(dir, "short.npy"), filepath.Join(dir, "long.npy"),
		filepath.Join(dir, "single.npy")
	put(t, short, content[:len(content)-1])
	if err := errors.Join(npy.Save(long, tensor.FromSlice([]int64{7, 8, 9, 10}, 4)),
		npy.Save(single, tensor.FromSlice([]int64{7}))); err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]error{short: npy.ErrFormat, long: data.ErrShape, single: data.ErrShape,
		filepath.Join(dir, "none"): os.ErrNotExist} {
		_, err := datasets.OpenNPY(x, bad)
		var file *encoding.FileError
		if !errors.As(err, &file) || file.Path != bad || !errors.Is(err, want) {
			t.Errorf("%s: %v, want a FileError that wraps %v", bad, err, want)
		}
	}
}

// firsts returns the first field of all samples, as a Loader with so many workers of a kind makes
// them.
func firsts(t *testing.T, d data.Dataset, kind data.Kind, workers int) (all []int64) {
	t.Helper()
	l := data.NewLoader(d, data.Options{BatchSize: 4, Workers: workers, Kind: kind})
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		for f := range b {
			all = append(all, tensor.Data[int64](b[f])...)
		}
	}
	return all
}
