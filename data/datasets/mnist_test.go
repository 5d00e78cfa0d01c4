package datasets_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/tensor"
)

// images and labels are a set of three images.
var (
	images = idx(0x08, []uint32{3, 28, 28}, slices.Repeat([]uint8{0, 7, 255}, 28*28))
	labels = idx(0x08, []uint32{3}, []uint8{5, 0, 9})
)

func TestMNIST_KnowsTheUsualNames(t *testing.T) {
	for _, c := range []struct {
		train          bool
		images, labels string
	}{
		{true, "train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
		{true, "train-images.idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"},
		{false, "t10k-images-idx3-ubyte.gz", "t10k-labels.idx1-ubyte"},
		{false, "MNIST/raw/t10k-images-idx3-ubyte", "MNIST/raw/t10k-labels-idx1-ubyte"},
	} {
		dir := t.TempDir()
		for name, file := range map[string][]byte{c.images: images, c.labels: labels} {
			if strings.HasSuffix(name, ".gz") {
				file = zip(file)
			}
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, name), file)
		}
		set, err := datasets.MNIST(dir, c.train)
		if err != nil {
			t.Errorf("%s: %v", c.images, err)
			continue
		}
		if got := tensor.Data[int64](set.Tensors[1]); !slices.Equal(got, []int64{5, 0, 9}) || set.Len() != 3 {
			t.Errorf("%s: %d samples, labels %v", c.images, set.Len(), got)
		}
		if got := tensor.At[uint8](set.Tensors[0], 0, 0, 1); got != 7 {
			t.Errorf("%s: pixel %d, want 7", c.images, got)
		}
	}
}

func TestMNIST_SaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		images, labels []byte
		want           error
	}{
		"labels of another set": {images, idx(0x08, []uint32{2}, []uint8{5, 0}), data.ErrShape},
		"labels beyond 9":       {images, idx(0x08, []uint32{3}, []uint8{5, 0, 10}), data.ErrShape},
		"labels for images":     {labels, labels, data.ErrShape},
		"images of other size":  {idx(0x08, []uint32{1, 2, 2}, []uint8{1, 2, 3, 4}), labels, data.ErrShape},
		"images cut off":        {zip(images[:100]), labels, data.ErrTruncated},
		"no labels":             {images, nil, fs.ErrNotExist},
		"no images":             {nil, labels, fs.ErrNotExist},
	} {
		dir := t.TempDir()
		if c.images != nil {
			write(t, filepath.Join(dir, "train-images-idx3-ubyte"), c.images)
		}
		if c.labels != nil {
			write(t, filepath.Join(dir, "train-labels-idx1-ubyte"), c.labels)
		}
		if _, err := datasets.MNIST(dir, true); !errors.Is(err, c.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %v with the place", name, err, c.want)
		} else if name == "labels beyond 9" && !strings.Contains(err.Error(), "label of image 2 is 10") {
			t.Errorf("%v, want the label and its image", err)
		}
	}
}

func TestMNIST_ReadsTheRealOne(t *testing.T) {
	const dir = "../../shared/data/mnist"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("MNIST is not at " + dir + "; package data/download fetches it")
	}
	for train, want := range map[bool]struct{ n, ones int }{true: {60_000, 6742}, false: {10_000, 1135}} {
		set, err := datasets.MNIST(dir, train)
		if err != nil {
			t.Fatal(err)
		}
		ones := 0
		for _, l := range tensor.Data[int64](set.Tensors[1]) {
			if l == 1 {
				ones++
			}
		}
		if set.Len() != want.n || ones != want.ones {
			t.Errorf("train %v: %d images, %d ones; want %d, %d", train, set.Len(), ones, want.n, want.ones)
		}
	}
}
