package image_test

import (
	"bytes"
	"errors"
	"fmt"
	stdimage "image"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image"
)

// slopes is a JPEG of h×w pixels.
func slopes(t testing.TB, h, w int) []byte {
	im := stdimage.NewRGBA(stdimage.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			at := im.Pix[im.PixOffset(x, y):][:4]
			for c := range 3 {
				at[c] = uint8(127 + 60*math.Sin(float64(x)/float64(7+c)+float64(y)/23) + 50*math.Sin(float64(x*y)/900))
			}
			at[3] = 255
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, im, &jpeg.Options{Quality: 90}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestImage_DraftIsAsSmallAsItMayBe(t *testing.T) {
	file := slopes(t, 205, 330)
	for _, c := range []struct{ h, w, times int }{{25, 41, 8}, {26, 41, 4}, {25, 42, 4}, {51, 82, 4},
		{52, 80, 2}, {102, 165, 2}, {103, 1, 1}, {205, 330, 1}, {300, 300, 1}, {1, 1, 8}} {
		im := &image.Image{DraftH: c.h, DraftW: c.w}
		if err := im.Decode(file, 3); err != nil {
			t.Fatal(err)
		}
		if h, w := (205+c.times-1)/c.times, (330+c.times-1)/c.times; im.H != h || im.W != w {
			t.Errorf("for %d×%d it is %d×%d, want %d×%d", c.h, c.w, im.H, im.W, h, w)
		}
	}
	picture, err := os.ReadFile("testdata/picture.png")
	if err != nil {
		t.Fatal(err)
	}
	im := &image.Image{DraftH: 1, DraftW: 1}
	if err := im.Decode(picture, 3); err != nil || im.H != 47 || im.W != 61 {
		t.Errorf("a PNG is %d×%d, %v", im.H, im.W, err)
	}
	im.MaxPixels = 205*330 - 1
	if err := im.Decode(file, 3); !errors.Is(err, image.ErrTooLarge) {
		t.Errorf("more pixels than MaxPixels: %v", err)
	}
}

func TestResize_GapDecodesADraft(t *testing.T) {
	file := slopes(t, 205, 330)
	for _, c := range []struct {
		step           image.Resize
		h, w           int // of the result
		leastH, leastW int
	}{
		{image.Resize{H: 20, W: 30, Gap: 1}, 20, 30, 20, 30},
		{image.Resize{H: 20, W: 30, Gap: 2.5}, 20, 30, 50, 75},
		{image.Resize{H: 20, Gap: 1}, 20, 32, 20, 32}, // of 26×42 it would be 32 as well, but of 103×165 no more
		{image.Resize{H: 90, Gap: 1}, 90, 144, 90, 144},
	} {
		for _, steps := range []image.Pipeline{{c.step}, {image.Pipeline{c.step}, image.RandomHorizontalFlip(0)}} {
			got, want := new(image.Image), &image.Image{DraftH: c.leastH, DraftW: c.leastW}
			if err := errors.Join(steps.Make(got, file, 3, rand.New(rand.NewPCG(1, 1))),
				want.Decode(file, 3)); err != nil {
				t.Fatal(err)
			}
			if want.H == 205 {
				t.Fatalf("%+v: all of the image is decoded", c.step)
			}
			if err := (image.Resize{H: c.h, W: c.w, Filter: c.step.Filter}).Apply(want, nil); err != nil {
				t.Fatal(err)
			}
			if got.H != c.h || got.W != c.w || !slices.Equal(got.Pix, want.Pix) {
				t.Errorf("%+v: %d×%d pixels are not those of the draft, %d×%d", c.step, got.H, got.W, c.h, c.w)
			}
		}
	}
	// Behind another step a Gap means nothing.
	late, whole := new(image.Image), new(image.Image)
	crop := image.CenterCrop(200, 300)
	err := errors.Join(image.Pipeline{crop, image.Resize{H: 20, W: 30, Gap: 1}}.Make(late, file, 3,
		rand.New(rand.NewPCG(1, 1))),
		image.Pipeline{crop, image.Resize{H: 20, W: 30}}.Make(whole, file, 3, rand.New(rand.NewPCG(1, 1))))
	if err != nil || !slices.Equal(late.Pix, whole.Pix) {
		t.Errorf("a Resize with a Gap behind a crop: %v", err)
	}
}

func BenchmarkResizeOfAPhotograph(b *testing.B) {
	file := slopes(b, 1536, 2048)
	for _, gap := range []float64{0, 1} {
		b.Run(fmt.Sprint("gap=", gap), func(b *testing.B) {
			im, steps := new(image.Image), image.Pipeline{image.Resize{H: 224, W: 224, Gap: gap}}
			for b.Loop() {
				if err := steps.Make(im, file, 3, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
