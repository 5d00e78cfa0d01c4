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

// size is the number of samples that Python's data set says.
func size(w torch.Worker) int {
	n, _ := w.Args.Get("n")
	i, _ := n.(int64)
	return int(i)
}

// light has 1,000 images of 3×32×32 again and again, every other one flipped.
type light struct {
	n      int
	images []float32
}

const lightImage = 3 * 32 * 32

func openLight(_ context.Context, w torch.Worker) (data.Dataset, error) {
	images := make([]float32, 1000*lightImage)
	for i := range images {
		images[i] = float32(i)
	}
	return &light{size(w), images}, nil
}

func (l *light) Len() int { return l.n }

func (l *light) Get(_ context.Context, i int) (data.Sample, error) {
	from := l.images[i%1000*lightImage:][:lightImage]
	if i%2 == 1 {
		flipped := make([]float32, lightImage)
		for row := 0; row < lightImage; row += 32 {
			for x := range 32 {
				flipped[row+x] = from[row+31-x]
			}
		}
		from = flipped
	}
	return data.Sample{tensor.FromSlice(from, 3, 32, 32), tensor.Scalar(tensor.Int64, float64(i))}, nil
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
