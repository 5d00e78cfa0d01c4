package image_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func picture(t testing.TB, im *image.Image) {
	t.Helper()
	if err := im.Decode(read(t, "picture.png"), 3); err != nil {
		t.Fatal(err)
	}
}

// recorded returns what torchvision made.
func recorded(t *testing.T, name string) (c, h, w int, pix []byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, name+".gz")))
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(z)
	if _, err := fmt.Fscanf(in, "%d %d %d\n", &c, &h, &w); err != nil {
		t.Fatal(err)
	}
	if pix, err = io.ReadAll(in); err != nil {
		t.Fatal(err)
	}
	return c, h, w, pix
}

// cases are what is recorded.
func cases() map[string]func(im *image.Image) {
	all := map[string]func(im *image.Image){
		"resized_crop":     func(im *image.Image) { image.ResizePart(im, 5, 9, 30, 41, 16, 24, image.Bilinear) },
		"resized_crop_end": func(im *image.Image) { image.ResizePart(im, 17, 20, 30, 41, 33, 35, image.Bicubic) },
		"resize_shorter":   apply(image.Resize{H: 32}),
		"resize_nearest_even": func(im *image.Image) {
			im.Crop(0, 0, 46, 60)
			apply(image.Resize{H: 21, W: 45, Filter: image.Nearest})(im)
		},
		"crop_outside": func(im *image.Image) { im.Crop(-3, 50, 20, 30) },
		"hflip":        image.HorizontalFlip,
		"vflip":        image.VerticalFlip,
		"gray":         apply(image.Grayscale(1)),
		"gray3":        apply(image.Grayscale(3)),
	}
	for name, f := range map[string]image.Filter{"bilinear": image.Bilinear, "nearest": image.Nearest,
		"box": image.Box, "bicubic": image.Bicubic, "lanczos": image.Lanczos} {
		for _, s := range [][2]int{{20, 31}, {94, 122}, {47, 30}, {23, 61}, {1, 1}, {60, 20}} {
			all[fmt.Sprintf("resize_%s_%dx%d", name, s[0], s[1])] = apply(image.Resize{H: s[0], W: s[1], Filter: f})
		}
		if f == image.Nearest || f == image.Bilinear {
			all["affine_"+name] = func(im *image.Image) {
				image.Affine(im, image.Rotation(im.H, im.W, 17, 4, -3, 1.2, 5, -8), f, 9)
			}
			all["rotate_"+name] = func(im *image.Image) {
				image.Affine(im, image.Rotation(im.H, im.W, -30, 0, 0, 1, 0, 0), f, 0)
			}
		}
	}
	for _, s := range [][2]int{{20, 30}, {21, 31}, {60, 30}, {51, 70}, {30, 80}} {
		all[fmt.Sprintf("center_crop_%dx%d", s[0], s[1])] = apply(image.CenterCrop(s[0], s[1]))
	}
	for name, mode := range map[string]image.PadMode{"constant": image.Constant, "edge": image.Edge,
		"reflect": image.Reflect, "symmetric": image.Symmetric} {
		all["pad_"+name] = apply(image.Pad{Left: 3, Top: 5, Right: 7, Bottom: 2, Mode: mode, Fill: []uint8{9, 8, 7}})
	}
	for _, f := range []float64{0, 0.4, 1, 1.7} {
		all[fmt.Sprint("brightness_", f)] = func(im *image.Image) { image.AdjustBrightness(im, f) }
		all[fmt.Sprint("contrast_", f)] = func(im *image.Image) { image.AdjustContrast(im, f) }
		all[fmt.Sprint("saturation_", f)] = func(im *image.Image) { image.AdjustSaturation(im, f) }
	}
	for _, f := range []float64{-0.5, -0.2, 0.1, 0.37} {
		all[fmt.Sprint("hue_", f)] = func(im *image.Image) { image.AdjustHue(im, f) }
	}
	return all
}

func apply(s image.Step) func(im *image.Image) {
	return func(im *image.Image) {
		if err := s.Apply(im, nil); err != nil {
			panic(err)
		}
	}
}

func TestStep_PixelsAreThoseOfTorchvision(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gz")
	if err != nil {
		t.Fatal(err)
	}
	all := cases()
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".gz"); all[name] == nil {
			t.Errorf("%s is recorded and not tested", name)
		}
	}
	for _, level := range pixel.Levels() {
		t.Run(level, func(t *testing.T) {
			t.Cleanup(pixel.Use(level))
			im := new(image.Image) // what a step leaves behind must not matter to the next image
			for name := range maps.Keys(all) {
				picture(t, im)
				all[name](im)
				compare(t, name, im)
			}
		})
	}
}

// compare allows one level where a step computes with fractions that Pillow rounds in its own way.
func compare(t *testing.T, name string, im *image.Image) {
	t.Helper()
	c, h, w, want := recorded(t, name)
	if im.C != c || im.H != h || im.W != w || len(im.Pix) != len(want) {
		t.Errorf("%s: %d×%d×%d, want %d×%d×%d", name, im.C, im.H, im.W, c, h, w)
		return
	}
	far, unlike := 0, 0
	for i, v := range want {
		d := max(int(v)-int(im.Pix[i]), int(im.Pix[i])-int(v))
		far = max(far, d)
		if d > 0 {
			unlike++
		}
	}
	if far > 1 || unlike > 0 && !strings.Contains(name, "bilinear") || unlike > len(want)/100 {
		t.Errorf("%s: %d of %d pixels differ, by up to %d", name, unlike, len(want), far)
	}
}
