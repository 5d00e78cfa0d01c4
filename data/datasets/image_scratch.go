package datasets

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/seed"
	"github.com/shoal-mp/shoal/tensor"
)

// An imageScratch holds the reusable memory for decoding an image. Only one goroutine may use it
// at a time. It is from the pool imageScratches.
type imageScratch struct {
	image image.Image
	file  []byte
	pcg   rand.PCG
	rng   *rand.Rand
}

var imageScratches = sync.Pool{New: func() any { e := new(imageScratch); e.rng = rand.New(&e.pcg); return e }}

// seedGenerator seeds the generator for a sample and returns it. The next call seeds the same
// generator again.
func (e *imageScratch) seedGenerator(s uint64) *rand.Rand {
	e.pcg.Seed(s, seed.Spread(s))
	return e.rng
}

// read reads a file into e.file, which the next call overwrites.
func (e *imageScratch) read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	e.file = e.file[:0]
	for {
		e.file = slices.Grow(e.file, 4096)
		n, err := f.Read(e.file[len(e.file):cap(e.file)])
		if e.file = e.file[:len(e.file)+n]; n == 0 || err != nil {
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
}

// decodeTensor decodes a file and applies steps, with random numbers from r. channels may be 0
// for 3. The result is (C, H, W) of float32 if steps contain a Normalize, and of uint8
// otherwise. The caller must close it.
func (e *imageScratch) decodeTensor(steps image.Pipeline, file []byte, channels int, r *rand.Rand) (*tensor.Tensor,
	error) {
	if err := steps.Make(&e.image, file, cmp.Or(channels, 3), r); err != nil {
		return nil, err
	}
	return e.copyTensor(), nil
}

// copyTensor returns a copy of the image, (C, H, W), which the caller must close.
func (e *imageScratch) copyTensor() *tensor.Tensor {
	im := &e.image
	if im.Numbers != nil {
		return tensor.FromSlice(slices.Clone(im.Numbers), im.C, im.H, im.W)
	}
	return tensor.FromSlice(slices.Clone(im.Pix), im.C, im.H, im.W)
}

// rowOf returns the memory of row k of a contiguous tensor: pixels for Uint8, numbers for
// Float32. Both are nil for other dtypes.
func rowOf(into *tensor.Tensor, k int) (pixels []uint8, numbers []float32) {
	n := into.Numel() / max(1, into.Dim(0))
	switch into.DType() {
	case tensor.Uint8:
		pixels = tensor.Data[uint8](into)[k*n:][:n]
	case tensor.Float32:
		numbers = tensor.Data[float32](into)[k*n:][:n]
	}
	return pixels, numbers
}

// decodeRow decodes a file into row k of a tensor and applies steps, as decodeTensor does. It
// returns an error that wraps [data.ErrShape] if the image has another size than the row.
func (e *imageScratch) decodeRow(into *tensor.Tensor, k int, steps image.Pipeline, file []byte, channels int,
	r *rand.Rand) error {
	pixels, numbers := rowOf(into, k)
	err := steps.Write(pixels, numbers, &e.image, file, cmp.Or(channels, 3), r)
	if errors.Is(err, image.ErrSize) {
		return fmt.Errorf("%w: %w", data.ErrShape, err)
	}
	return err
}

// decodeNear decodes a file and applies steps, as decodeTensor does. The result is a view of row
// k of into, if the image fits, and otherwise a new tensor. The caller must close it.
func (e *imageScratch) decodeNear(into *tensor.Tensor, k int, steps image.Pipeline, file []byte, channels int,
	r *rand.Rand) (*tensor.Tensor, error) {
	im := &e.image
	pixels, numbers := rowOf(into, k)
	err := steps.Write(pixels, numbers, im, file, cmp.Or(channels, 3), r)
	switch {
	case err != nil && im.Finished: // it has another size or type than the row
		return e.copyTensor(), nil
	case err != nil:
		return nil, err
	case !slices.Equal(into.Shape()[1:], []int{im.C, im.H, im.W}): // but as many pixels
		row := into.Select(0, k)
		defer row.Close()
		return row.Clone().Reshape(im.C, im.H, im.W), nil
	}
	into.Touch()
	return into.Select(0, k), nil
}

// labelTensor returns an Int64 tensor without dimensions, for a label.
func labelTensor(v int64) *tensor.Tensor { return tensor.FromSlice([]int64{v}) }
