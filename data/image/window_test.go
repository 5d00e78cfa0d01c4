package image_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image"
)

// TestPipeline_ResizeAndCropComputesTheSamePixels compares a Resize before a center crop, which
// computes only the remaining pixels and decodes only the parts of a JPEG they depend on, with one
// step after the other.
func TestPipeline_ResizeAndCropComputesTheSamePixels(t *testing.T) {
	files, err := filepath.Glob("internal/jpeg/testdata/*.jpg")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	files = append(files, "testdata/picture.png")
	r := rand.New(rand.NewPCG(1, 1))
	smaller := 0
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			resize := image.Resize{H: 1 + r.IntN(60), Filter: []image.Filter{image.Bilinear, image.Nearest, image.Box,
				image.Bicubic, image.Lanczos}[r.IntN(5)], Gap: []float64{0, 0, 1, 2.5}[r.IntN(4)]}
			if r.IntN(2) == 0 {
				resize.W = 1 + r.IntN(60)
			}
			crop, channels := image.CenterCrop(1+r.IntN(60), 1+r.IntN(60)), 1+2*r.IntN(2)
			check(t, fmt.Sprintf("%s: %+v %+v", name, resize, crop), file, resize, crop, channels)
			smaller++
		}
	}
	large := slopes(t, 205, 330)
	for _, size := range []int{205, 300, 151, 150, 149, 77, 20} {
		for _, side := range []int{1, 2, 15, 16, 17, 60, 150} {
			for _, channels := range []int{1, 3} {
				resize, crop := image.Resize{H: size}, image.CenterCrop(side, side+1)
				check(t, fmt.Sprintf("%+v %+v", resize, crop), large, resize, crop, channels)
			}
		}
	}
	if smaller < 500 {
		t.Errorf("got %d cases, want more", smaller)
	}
}

func check(t *testing.T, what string, file []byte, resize image.Resize, crop image.Step, channels int) {
	t.Helper()
	var want, dirty image.Image
	err := image.Pipeline{resize}.Make(&want, file, channels, nil)
	if err == nil {
		err = crop.Apply(&want, nil)
	}
	if err != nil {
		t.Fatal(what, err)
	}
	for _, steps := range []image.Pipeline{{resize, crop}, {image.Pipeline{resize, crop}},
		{resize, crop, image.ToTensor}} {
		if err := steps.Make(&dirty, slopes(t, 90, 80), 3, nil); err != nil { // leaves other pixels in the buffers
			t.Fatal(what, err)
		}
		numbers, pixels := make([]float32, channels*want.H*want.W), make([]uint8, channels*want.H*want.W)
		if len(steps) == 3 {
			pixels = nil
		} else {
			numbers = nil
		}
		if err := steps.Write(pixels, numbers, &dirty, file, channels, nil); err != nil {
			t.Fatal(what, err)
		}
		for i, v := range numbers {
			if v != float32(want.Pix[i])/255 && v != float32(want.Pix[i])*(1./255) {
				t.Fatalf("%s: number %d is %v, want %d / 255", what, i, v, want.Pix[i])
			}
		}
		if len(steps) < 3 && !slices.Equal(pixels, want.Pix) {
			t.Fatalf("%s: the pixels differ", what)
		}
	}
}
