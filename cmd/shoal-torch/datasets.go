package main

import (
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"os"
	"path/filepath"

	"github.com/shoal-mp/shoal/data"
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

const photographSide = 224

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
	f, err := os.Open(filepath.Join(p.dir, fmt.Sprintf("%d.jpg", i%100)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := jpeg.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", f.Name(), err)
	}
	return data.Sample{pixels(img), tensor.Scalar(tensor.Int64, float64(i))}, nil
}

// pixels is the image in rows of red, green and blue.
func pixels(img image.Image) *tensor.Tensor {
	out := make([]uint8, 0, 3*photographSide*photographSide)
	ycc, ok := img.(*image.YCbCr)
	for y := range photographSide {
		for x := range photographSide {
			if ok {
				at, c := ycc.YOffset(x, y), ycc.COffset(x, y)
				r, g, b := color.YCbCrToRGB(ycc.Y[at], ycc.Cb[c], ycc.Cr[c])
				out = append(out, r, g, b)
				continue
			}
			r, g, b, _ := img.At(x, y).RGBA()
			out = append(out, uint8(r>>8), uint8(g>>8), uint8(b>>8))
		}
	}
	return tensor.FromSlice(out, photographSide, photographSide, 3)
}
