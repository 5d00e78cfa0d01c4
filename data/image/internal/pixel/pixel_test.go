package pixel_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// noise is n random bytes, many of them extreme, with spare ones behind.
func noise(r *rand.Rand, n int) []uint8 {
	b := make([]uint8, n+16)
	for i := range b {
		switch r.IntN(4) {
		case 0:
			b[i] = 0
		case 1:
			b[i] = 255
		default:
			b[i] = uint8(r.Uint32())
		}
	}
	return b[:n]
}

// outputs are what all loops make of rows of n random bytes.
func outputs(n int) map[string]any {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	all := map[string]any{}
	fresh := func(name string, size int) []uint8 {
		b := make([]uint8, size, size+16)
		all[name] = b
		return b
	}
	a, b, c, packed := noise(r, n), noise(r, n), noise(r, n), noise(r, 4*n)
	pixel.Upsample(fresh("upsample", 2*n), a)
	pixel.UpsampleTwo(fresh("upsample two", 2*n), a, b)
	pixel.RGB(fresh("red", n), fresh("green", n), fresh("blue", n), a, b, c)
	pixel.Merge(fresh("merge", 3*n), a, b, c)
	pixel.Split(fresh("split red", n), fresh("split green", n), fresh("split blue", n), packed)
	pixel.Add(fresh("add", n), a, b)
	for step := 1; step <= 8; step++ {
		above := noise(r, n*step)
		pixel.Paeth(fresh(fmt.Sprint("paeth ", step), n*step), noise(r, n*step), above, step)
	}
	floats := make([]float32, n)
	pixel.Float(floats, a, 1.7/255, -0.3)
	all["float"] = floats
	for _, width := range []int{1, 3, n} { // of the last one, a row is two and more registers, or less than one
		pixel.Mirror(fresh(fmt.Sprint("mirror ", width), 3*n), noise(r, 3*n), width)
		mirrored := make([]float32, 3*n)
		pixel.Mirror(mirrored, slices.Repeat(floats, 3), width)
		all[fmt.Sprint("mirror floats ", width)] = mirrored
	}

	weights := make([]int32, 5)
	for i := range weights {
		weights[i] = int32(r.IntN(pixel.One)) - pixel.One/3
	}
	pixel.Column(fresh("column", n), noise(r, 5*(n+3)), n+3, weights)
	w := pixel.Weights{Taps: 16}
	for range n {
		w.First = append(w.First, int32(r.IntN(n)))
		for range w.Taps {
			w.Weight = append(w.Weight, int32(r.IntN(pixel.One/3))-pixel.One/8)
		}
	}
	w.Prepare()
	pixel.Row(fresh("row", n), noise(r, n+16), &w)
	part := w.Part(n/3, n-n/3)
	pixel.Row(fresh("row part", n-n/3), noise(r, n+16), &part)
	return all
}

func TestAllLevelsMakeTheSamePixels(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 7, 15, 16, 17, 18, 31, 33, 34, 35, 64, 100, 224, 1001} {
		var want map[string]any
		for _, level := range pixel.Levels() {
			restore := pixel.Use(level)
			got := outputs(n)
			restore()
			if want == nil {
				want = got
				continue
			}
			for name := range want {
				if fmt.Sprint(got[name]) != fmt.Sprint(want[name]) {
					t.Errorf("%s of %d pixels differs between levels %v", name, n, pixel.Levels())
				}
			}
		}
	}
}

func TestIDCTIsTheSameOnAllLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		var coef [64]int16
		var quant [64]int32
		for i := range coef {
			if r.IntN(3) == 0 {
				coef[i] = int16(r.IntN(2048) - 1024)
			}
			quant[i] = int32(r.IntN(256))
		}
		if r.IntN(10) == 0 { // what overflows is the same as well
			coef[r.IntN(64)], quant[r.IntN(64)] = -1<<15, 65535
		}
		var want []uint8
		for _, level := range pixel.Levels() {
			restore := pixel.Use(level)
			got := make([]uint8, (8+4+2)*20)
			pixel.IDCT(&coef, &quant, got, 20)
			pixel.Reduced(&coef, &quant, got[8*20:], 20, 4)
			pixel.Reduced(&coef, &quant, got[12*20:], 20, 2)
			restore()
			if want == nil {
				want = got
			} else if !slices.Equal(got, want) {
				t.Fatalf("levels %v: %v and %v of %v", pixel.Levels(), want, got, coef)
			}
		}
	}
}

func TestFlatIsTheTransformOfOneCoefficient(t *testing.T) {
	for dc := -1100; dc < 1100; dc += 7 {
		var coef [64]int16
		var quant [64]int32
		coef[0], quant[0] = int16(dc), 3
		want, got := make([]uint8, 64), make([]uint8, 64)
		pixel.IDCT(&coef, &quant, want, 8)
		pixel.Flat(int16(dc), 3, got, 8, 8)
		if !slices.Equal(got, want) {
			t.Fatalf("%d: %v, want %v", dc, got[:8], want[:8])
		}
	}
}

func TestMirrorTurnsEachRow(t *testing.T) {
	for _, level := range pixel.Levels() {
		restore := pixel.Use(level)
		for width := 1; width < 70; width++ {
			const rows = 3
			src, numbers := make([]uint8, rows*width), make([]float32, rows*width)
			for i := range src {
				src[i], numbers[i] = uint8(i), float32(i)
			}
			dst, turned := make([]uint8, rows*width), make([]float32, rows*width)
			pixel.Mirror(dst, src, width)
			pixel.Mirror(turned, numbers, width)
			for i := range dst {
				want := i/width*width + width - 1 - i%width
				if dst[i] != uint8(want) || turned[i] != float32(want) {
					t.Fatalf("%s, rows of %d: element %d is %d and %v, want %d", level, width, i, dst[i],
						turned[i], want)
				}
			}
		}
		restore()
	}
}
