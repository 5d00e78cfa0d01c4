package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// size returns the number of samples that the Python data set requests as n, or 0 if n is missing
// or not an int.
func size(w torch.Worker) int {
	n, _ := w.Args.Get("n")
	i, _ := n.(int64)
	return int(i)
}

// light is a data set of float32 images of shape 3×32×32. It repeats 1,000 images and mirrors every
// odd sample.
type light struct {
	n      int
	images *tensor.Tensor
}

const lightRow = 32

func openLight(_ context.Context, w torch.Worker) (data.Dataset, error) {
	images := tensor.New(tensor.Float32, 1000, 3, lightRow, lightRow)
	pixels := tensor.Data[float32](images)
	for i := range pixels {
		pixels[i] = float32(i)
	}
	return &light{size(w), images}, nil
}

func (l *light) Len() int { return l.n }

func (l *light) Get(ctx context.Context, i int) (data.Sample, error) {
	one := data.Batch{tensor.New(tensor.Float32, 1, 3, lightRow, lightRow), tensor.New(tensor.Int64, 1)}
	err := l.Gather(ctx, []int{i}, one)
	return data.Sample{one[0].Select(0, 0), one[1].Select(0, 0)}, err
}

// Gather writes the images at indices to the rows of the first tensor of a batch, and the
// indices to the second. It always returns nil, and may be called from several goroutines.
func (l *light) Gather(_ context.Context, indices []int, into data.Batch) error {
	const size = 3 * lightRow * lightRow
	from, to, numbers := tensor.Data[float32](l.images), tensor.Data[float32](into[0]), tensor.Data[int64](into[1])
	for k, i := range indices {
		src, dst := from[i%1000*size:][:size], to[k*size:][:size]
		if i%2 == 1 {
			image.Mirror(dst, src, lightRow)
		} else {
			copy(dst, src)
		}
		numbers[k] = int64(i)
	}
	return nil
}

// photographs is a data set that repeats 100 JPEG files of 224×224 pixels. Get and Gather reuse one
// decode buffer, so they must not be called concurrently.
type photographs struct {
	n     int
	dir   string
	image image.Image
}

func openJPEG(_ context.Context, w torch.Worker) (data.Dataset, error) {
	dir, _ := w.Args.Get("path")
	path, ok := dir.(string)
	if !ok {
		return nil, fmt.Errorf("photograph directory: got %v, want a string", dir)
	}
	return &photographs{n: size(w), dir: path}, nil
}

func (p *photographs) Len() int { return p.n }

func (p *photographs) Get(_ context.Context, i int) (data.Sample, error) {
	if err := p.decode(i); err != nil {
		return nil, err
	}
	x := tensor.New(tensor.Uint8, p.image.H, p.image.W, 3)
	p.image.Packed(tensor.Data[uint8](x))
	return data.Sample{x, tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// Gather decodes the photographs at indices into the rows of a batch. It returns an error that
// wraps [data.ErrShape] if a photograph does not have the size of a row.
func (p *photographs) Gather(_ context.Context, indices []int, into data.Batch) error {
	pixels, numbers := tensor.Data[uint8](into[0]), tensor.Data[int64](into[1])
	row := len(pixels) / len(indices)
	for k, i := range indices {
		if err := p.decode(i); err != nil {
			return err
		}
		if n := 3 * p.image.H * p.image.W; n != row {
			return fmt.Errorf("photograph %d: got %d bytes, want %d as in the batch: %w", i, n, row, data.ErrShape)
		}
		p.image.Packed(pixels[k*row:][:row])
		numbers[k] = int64(i)
	}
	return nil
}

func (p *photographs) decode(i int) error {
	path := filepath.Join(p.dir, fmt.Sprintf("%d.jpg", i%100))
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := p.image.Decode(file, 3); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}
