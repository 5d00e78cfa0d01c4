package vision

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/tensor"
)

// pictures is a data set of images of one size in memory. A sample consists of the transformed
// image and its class index. [fields.openInMemory] makes it. Its methods may be called from
// several goroutines, except Close.
type pictures struct {
	pixels   *tensor.Tensor // (n, h, w) or (n, h, w, 3) of uint8
	labels   []int64
	channels int
	steps    image.Pipeline
}

var _ data.Gatherer = (*pictures)(nil)

// readImages reads the images from the attribute data into d.pixels. It refuses images that are
// not uint8 or do not match d.labels in number: see [fields.refuse].
func (d *pictures) readImages(f *fields) {
	switch v := f.get("data").(type) {
	case *tensor.Tensor:
		d.pixels = v
	case *pickle.Array:
		d.pixels = arrayOf(v)
	}
	if d.pixels == nil {
		f.refuse("data is %s, want a tensor or array of bytes", showValue(f.optionalAttr("data")))
		return
	}
	want := 3
	if d.channels == 3 {
		want = 4
	}
	shape := d.pixels.Shape()
	if d.pixels.DType() != tensor.Uint8 || len(shape) != want || want == 4 && shape[3] != 3 ||
		d.pixels.Device() != nil {
		f.refuse("data has shape %v and dtype %v, want images of uint8", shape, d.pixels.DType())
		return
	}
	if shape[0] != len(d.labels) || shape[1] < 1 || shape[2] < 1 {
		f.refuse("got %d classes for data of shape %v, want one per image", len(d.labels), shape)
		return
	}
	if !d.pixels.IsContiguous() {
		d.pixels = d.pixels.Clone()
	}
}

// arrayOf returns a tensor that shares the memory of a C-ordered numpy array of uint8, or nil for
// any other array.
func arrayOf(a *pickle.Array) *tensor.Tensor {
	if a.DType != "|u1" || a.Fortran {
		return nil
	}
	if n, err := tensor.Uint8.SizeOf(a.Shape...); err != nil || n != len(a.Data) {
		return nil
	}
	return tensor.FromSlice(a.Data, a.Shape...)
}

// Len returns the number of images.
func (d *pictures) Len() int { return len(d.labels) }

// imageBuffer is the reusable buffer and random generator for one image. An imageBuffer must not be
// used by two goroutines at once.
type imageBuffer struct {
	image image.Image
	pcg   rand.PCG
	rng   *rand.Rand
}

var imageBuffers = sync.Pool{New: func() any { e := new(imageBuffer); e.rng = rand.New(&e.pcg); return e }}

// draw seeds the generator for sample i, as [data.SampleSeed] says, and returns it. It is valid
// until the next call.
func (e *imageBuffer) draw(ctx context.Context, i int) *rand.Rand {
	s := data.SampleSeed(ctx, i)
	e.pcg.Seed(s, s^0x9e3779b97f4a7c15)
	return e.rng
}

// Get returns the transformed image i, a tensor with shape (c, h, w), and its class index. i
// must be from 0 to Len-1; otherwise Get returns an error.
func (d *pictures) Get(ctx context.Context, i int) (data.Sample, error) {
	if i < 0 || i >= d.Len() {
		return nil, rangeError(i, d.Len())
	}
	e := imageBuffers.Get().(*imageBuffer)
	defer imageBuffers.Put(e)
	h, w := d.pixels.Dim(1), d.pixels.Dim(2)
	im := &e.image
	im.SetPacked(d.imagePixels(i), d.channels, h, w)
	if err := d.steps.Apply(im, e.draw(ctx, i)); err != nil {
		return nil, fmt.Errorf("image %d: %w", i, err)
	}
	label := tensor.FromSlice([]int64{d.labels[i]})
	if im.Numbers != nil {
		return data.Sample{tensor.FromSlice(slices.Clone(im.Numbers), im.C, im.H, im.W), label}, nil
	}
	return data.Sample{tensor.FromSlice(slices.Clone(im.Pix), im.C, im.H, im.W), label}, nil
}

// imagePixels returns the pixels of image i, row by row with the channels of a pixel together.
// They are the data set's own memory and must not be modified.
func (d *pictures) imagePixels(i int) []uint8 {
	n := d.pixels.Dim(1) * d.pixels.Dim(2) * d.channels
	return tensor.Data[uint8](d.pixels)[i*n:][:n]
}

// rangeError returns the error for the index i of a data set of n samples, which is out of
// range.
func rangeError(i, n int) error { return fmt.Errorf("sample %d out of range, want less than %d", i, n) }

// Gather writes the transformed images with the given indices to the rows of into[0], and their
// class indices to into[1]. It returns an error if an index is out of range or the images do not
// fit.
func (d *pictures) Gather(ctx context.Context, indices []int, into data.Batch) error {
	e := imageBuffers.Get().(*imageBuffer)
	defer imageBuffers.Put(e)
	labels := tensor.Data[int64](into[1])
	for k, i := range indices {
		if i < 0 || i >= d.Len() {
			return rangeError(i, d.Len())
		}
		if err := d.writeRow(ctx, e, i, into[0], k); err != nil {
			return fmt.Errorf("image %d: %w", i, err)
		}
		labels[k] = d.labels[i]
	}
	into[0].Touch()
	into[1].Touch()
	return nil
}

// writeRow writes the transformed image i to row k of into, a tensor of uint8 or float32. e must
// not be in use.
func (d *pictures) writeRow(ctx context.Context, e *imageBuffer, i int, into *tensor.Tensor, k int) error {
	n := into.Numel() / max(1, into.Dim(0))
	var pixels []uint8
	var numbers []float32
	if into.DType() == tensor.Uint8 {
		pixels = tensor.Data[uint8](into)[k*n:][:n]
	} else {
		numbers = tensor.Data[float32](into)[k*n:][:n]
	}
	e.image.SetPacked(d.imagePixels(i), d.channels, d.pixels.Dim(1), d.pixels.Dim(2))
	return d.steps.Write(pixels, numbers, &e.image, nil, d.channels, e.draw(ctx, i))
}

// Close releases the images. No other call may be in progress.
func (d *pictures) Close() error { return d.pixels.Close() }
