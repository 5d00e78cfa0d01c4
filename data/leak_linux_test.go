package data_test

import (
	"bytes"
	"fmt"
	stdimage "image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/datasets"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// held is what a process has that does not come back by itself.
type held struct {
	files  int   // open ones
	mapped int   // mappings of files and of shared memory
	blocks int   // of shared memory in use
	bytes  int64 // of these
}

func holding(t *testing.T) (h held, mappings int) {
	t.Helper()
	runtime.GC() // whose finalizers are not waited for
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	d, err := arena.Default()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		mappings++
		if f := strings.Fields(line); len(f) > 5 && !strings.HasPrefix(f[5], "[") {
			h.mapped++
		}
	}
	s := d.Stats()
	h.files, h.blocks, h.bytes = len(files), s.Blocks, s.Bytes
	return h, mappings
}

func (h held) within(o held) bool {
	return h.files <= o.files && h.mapped <= o.mapped && h.blocks <= o.blocks && h.bytes <= o.bytes
}

// folderOf writes images of 28×28 pixels as an image folder.
func folderOf(t *testing.T, sets ...*data.TensorDataset) string {
	root := t.TempDir()
	for c := range 10 {
		if err := os.Mkdir(filepath.Join(root, fmt.Sprint(c)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	var b bytes.Buffer
	for _, set := range sets {
		pixels, labels := tensor.Data[uint8](set.Tensors[0]), tensor.Data[int64](set.Tensors[1])
		for i, label := range labels {
			b.Reset()
			im := &stdimage.Gray{Pix: pixels[i*784:][:784], Stride: 28, Rect: stdimage.Rect(0, 0, 28, 28)}
			if err := png.Encode(&b, im); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, fmt.Sprint(label), fmt.Sprintf("%05d.png", n)),
				b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return root
}

// TestLoader_LeavesNothingOfTenEpochsOfAnImageFolder reads digits that are drawn, or the 70,000 of
// MNIST where SHOAL_MNIST names the directory of its files.
func TestLoader_LeavesNothingOfTenEpochsOfAnImageFolder(t *testing.T) {
	sets := []*data.TensorDataset{datasets.Digits(640, 1)}
	if dir := os.Getenv("SHOAL_MNIST"); dir != "" {
		sets = nil
		for _, train := range []bool{true, false} {
			set, err := datasets.MNIST(dir, train)
			if err != nil {
				t.Fatal(err)
			}
			sets = append(sets, set)
		}
	}
	n, sum := 0, 0
	for _, set := range sets {
		n += set.Len()
		for _, v := range tensor.Data[uint8](set.Tensors[0]) {
			sum += int(v)
		}
	}
	d, err := datasets.NewImageFolder(folderOf(t, sets...), image.RandomHorizontalFlip(0.5))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	d.Channels = 1
	if err := d.Paths.Share(); err != nil { // or the first process would do it
		t.Fatal(err)
	}
	if err := d.Labels.Share(); err != nil {
		t.Fatal(err)
	}
	var first held
	var mappings int
	for epoch := range 10 {
		samples, pixels := drain(t, d, data.Kind(epoch%2))
		if samples != n || pixels != sum {
			t.Fatalf("epoch %d has %d samples and %d in their pixels, want %d and %d", epoch, samples, pixels, n, sum)
		}
		if epoch == 1 { // both kinds of workers have been here
			first, mappings = holding(t)
			continue
		}
		now, all := holding(t)
		// Processes have ended when the loop has, but who watched them may still be closing its
		// files.
		testutil.EventuallyNoError(t, func() error {
			if epoch > 1 && !now.within(first) {
				err := fmt.Errorf("after epoch %d: %+v, and after the second one %+v", epoch, now, first)
				now, all = holding(t)
				return err
			}
			return nil
		})
		if epoch > 1 && all > mappings+100 { // the heap has some more or fewer
			t.Fatalf("after epoch %d there are %d mappings, and after the second one %d", epoch, all, mappings)
		}
	}
}

// drain reads an epoch of batches in shared memory, and returns how many samples it has and the sum
// of their pixels.
func drain(t *testing.T, d data.Dataset, kind data.Kind) (samples, sum int) {
	l := data.NewLoader(d, data.Options{BatchSize: 32, Shuffle: true, Workers: 2, Kind: kind, Shared: true})
	defer l.Close()
	for b, err := range l.Batches(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		samples += b[0].Dim(0)
		for _, v := range tensor.Data[uint8](b[0]) {
			sum += int(v)
		}
		for _, f := range b {
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return samples, sum
}
