package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/shoal-mp/shoal/data"
	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/torch"
)

// size is the number of samples that Python's data set says.
func size(w torch.Worker) int {
	n, _ := w.Args.Get("n")
	i, _ := n.(int64)
	return int(i)
}

// light has 1,000 images of 3×32×32 again and again, every other one flipped.
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

func (l *light) Get(_ context.Context, i int) (data.Sample, error) {
	image := l.images.Select(0, i%1000)
	if i%2 == 1 {
		flipped := tensor.New(tensor.Float32, image.Shape()...)
		to, from := tensor.Data[float32](flipped), tensor.Data[float32](image)
		copy(to, from)
		for row := range slices.Chunk(to, lightRow) {
			slices.Reverse(row)
		}
		image = flipped
	}
	return data.Sample{image, tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// photographs are 100 files of JPEG, 224×224, again and again.
type photographs struct {
	n   int
	dir string
}

func openJPEG(_ context.Context, w torch.Worker) (data.Dataset, error) {
	dir, _ := w.Args.Get("path")
	path, ok := dir.(string)
	if !ok {
		return nil, fmt.Errorf("the directory of photographs is %v", dir)
	}
	return &photographs{size(w), path}, nil
}

func (p *photographs) Len() int { return p.n }

func (p *photographs) Get(_ context.Context, i int) (data.Sample, error) {
	path := filepath.Join(p.dir, fmt.Sprintf("%d.jpg", i%100))
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var im image.Image
	if err := im.Decode(file, 3); err != nil {
		return nil, fmt.Errorf("decode %s: %w", path, err)
	}
	x := tensor.New(tensor.Uint8, im.H, im.W, 3)
	im.Packed(tensor.Data[uint8](x))
	return data.Sample{x, tensor.Scalar(tensor.Int64, float64(i))}, nil
}
