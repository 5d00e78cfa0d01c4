package image_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/codec"
)

var steps = image.Pipeline{
	image.Resize{H: 50, W: 60}, image.RandomCrop{H: 40, W: 44, Padding: 3}, image.RandomResizedCrop{H: 20, W: 24},
	image.RandomHorizontalFlip(0.5), image.RandomVerticalFlip(0.5),
	image.RandomAffine{Degrees: 20, Translate: [2]float64{0.1, 0.1}, Scale: [2]float64{0.8, 1.2},
		Shear: [2]float64{5, 5}, Filter: image.Bilinear},
	image.ColorJitter{Brightness: 0.4, Contrast: 0.4, Saturation: 0.4, Hue: 0.1},
	image.CenterCrop(16, 16), image.Grayscale(3),
	image.Normalize{Mean: image.MeanOfImageNet, Std: image.StdOfImageNet}, image.RandomErasing{P: 0.5},
}

// made returns the numbers that a pipeline makes of the picture with a seed.
func made(t *testing.T, p image.Pipeline, im *image.Image, seed uint64) []float32 {
	t.Helper()
	if err := p.Make(im, read(t, "picture.png"), 3, rand.New(rand.NewPCG(seed, seed))); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(im.Numbers)
}

func TestPipeline_MakesOnePictureOfASeed(t *testing.T) {
	used := new(image.Image)
	unlike := 0
	for seed := range uint64(20) {
		one := made(t, steps, new(image.Image), seed)
		if len(one) != 3*16*16 {
			t.Fatalf("%d numbers", len(one))
		}
		if !slices.Equal(one, made(t, steps, used, seed)) {
			t.Errorf("seed %d makes two pictures", seed)
		}
		if !slices.Equal(one, made(t, steps, used, seed+100)) {
			unlike++
		}
	}
	if unlike < 19 {
		t.Errorf("%d of 20 pairs of seeds make two pictures", unlike)
	}
}

func TestPipeline_GoesToProcesses(t *testing.T) {
	type letter struct{ Steps image.Pipeline }
	plan, err := codec.PlanOf[letter]()
	if err != nil {
		t.Fatal(err)
	}
	var e codec.Encoder
	e.Reset(nil)
	if err := plan.Encode(&e, letter{append(image.Pipeline{image.Pipeline{}}, steps...)}); err != nil {
		t.Fatal(err)
	}
	var d codec.Decoder
	d.Reset(e.Message(), nil)
	got, err := plan.Decode(&d)
	if err != nil || len(got.Steps) != len(steps)+1 {
		t.Fatalf("%v, %v", got, err)
	}
	for seed := range uint64(5) {
		if !slices.Equal(made(t, steps, new(image.Image), seed), made(t, got.Steps, new(image.Image), seed)) {
			t.Errorf("the pipeline that arrived makes another picture of seed %d", seed)
		}
	}
}

func TestPipeline_LastStepWritesToTheRow(t *testing.T) {
	for _, p := range []image.Pipeline{
		{}, {image.Resize{H: 20, W: 30}}, {image.RandomResizedCrop{H: 9, W: 8}},
		{image.Resize{H: 20, W: 30}, image.RandomHorizontalFlip(1)},
		{image.CenterCrop(60, 10)}, {image.Grayscale(1)}, {image.Resize{H: 47, W: 61}},
		{image.Pipeline{image.Resize{H: 7, W: 7}}}, {image.ToTensor}, steps,
	} {
		im := new(image.Image)
		if err := p.Make(im, read(t, "picture.png"), 3, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Fatal(err)
		}
		wantPixels, wantNumbers := slices.Clone(im.Pix), slices.Clone(im.Numbers)
		pixels, numbers := make([]uint8, len(wantPixels)), make([]float32, len(wantNumbers))
		for range 2 { // what the image has of the first row must not be written again
			clear(pixels)
			if err := p.Write(pixels, numbers, im, read(t, "picture.png"), 3, rand.New(rand.NewPCG(1, 1))); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(pixels, wantPixels) || !slices.Equal(numbers, wantNumbers) {
				t.Errorf("%v: Write and Make differ", p)
			}
			picture(t, im)
			if !slices.Equal(pixels, wantPixels) {
				t.Errorf("%v: a row is written when it is no longer there", p)
			}
		}
		err := p.Write(append(pixels, 0), numbers, im, read(t, "picture.png"), 3, rand.New(rand.NewPCG(1, 1)))
		if !errors.Is(err, image.ErrSize) {
			t.Errorf("%v to a row of another size: %v", p, err)
		}
	}
}

func TestNormalize_IsThatOfTorch(t *testing.T) {
	im := new(image.Image)
	picture(t, im)
	pix := slices.Clone(im.Pix)
	n := image.Normalize{Mean: []float32{0.5, 0.25, 0.1}, Std: []float32{0.5, 2, 0.1}}
	if err := n.Apply(im, nil); err != nil {
		t.Fatal(err)
	}
	for i, got := range im.Numbers {
		c := i / (im.H * im.W)
		if want := (float64(pix[i])/255 - float64(n.Mean[c])) / float64(n.Std[c]); math.Abs(float64(got)-want) > 1e-5 {
			t.Fatalf("number %d is %v, want %v", i, got, want)
		}
	}
	for _, bad := range []image.Normalize{{Mean: []float32{1, 2}}, {Std: []float32{1, 2}}} {
		picture(t, im)
		if err := bad.Apply(im, nil); !errors.Is(err, image.ErrSize) {
			t.Errorf("%v of three planes: %v", bad, err)
		}
	}
}

func TestStep_RandomStaysInItsBounds(t *testing.T) {
	im := new(image.Image)
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 300 {
		im.SetPacked(slices.Repeat([]uint8{200}, 3*30*40), 3, 30, 40)
		if err := (image.RandomErasing{P: 0.5, Value: 7}).Apply(im, r); err != nil {
			t.Fatal(err)
		}
		erased := 0
		for _, v := range im.Pix[:30*40] {
			if v == 7 {
				erased++
			}
		}
		seen[fmt.Sprint("erased ", erased > 0)] = true
		if part := float64(erased) / (30 * 40); part > 0.36 || erased > 0 && part < 0.01 {
			t.Errorf("%v of the image is erased", part)
		}
		im.SetPacked(slices.Repeat([]uint8{200}, 3*30*40), 3, 30, 40)
		if err := (image.RandomResizedCrop{H: 30, W: 40, Scale: [2]float64{0.5, 0.6}}).Apply(im, r); err != nil {
			t.Fatal(err)
		}
		if slices.Min(im.Pix) != 200 || slices.Max(im.Pix) != 200 {
			t.Fatal("a part of one colour has another after it was resized")
		}
		if err := (image.ColorJitter{Brightness: 0.5}).Apply(im, r); err != nil {
			t.Fatal(err)
		}
		if v := im.Pix[0]; v < 99 {
			t.Errorf("brightness 200 becomes %d by a factor of 0.5 to 1.5", v)
		}
		seen[fmt.Sprint("brighter ", im.Pix[0] > 200)] = true
	}
	if len(seen) != 4 {
		t.Errorf("of 300 draws: %v", seen)
	}
}

func TestStep_ThatCannotBeDoneIsAnError(t *testing.T) {
	for _, p := range []image.Pipeline{
		{image.RandomCrop{H: 48, W: 10}}, {image.RandomCrop{H: 0, W: 10}}, {image.CenterCrop(0, 0)},
		{image.RandomResizedCrop{}}, {image.Resize{}},
		{image.ToTensor, image.Resize{H: 5, W: 5}}, {image.ToTensor, image.ToTensor},
		{image.ToTensor, image.ColorJitter{}}, {image.ToTensor, image.Grayscale(1)},
		{image.ToTensor, image.RandomAffine{}}, {image.ToTensor, image.CenterCrop(1, 1)},
		{image.ToTensor, image.RandomHorizontalFlip(1)},
	} {
		err := p.Make(new(image.Image), read(t, "picture.png"), 3, rand.New(rand.NewPCG(1, 1)))
		if !errors.Is(err, image.ErrSize) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	im := &image.Image{MaxPixels: 47*61 - 1}
	var at *encoding.FileError
	if err := im.Decode(read(t, "picture.png"), 3); !errors.Is(err, image.ErrTooLarge) ||
		!errors.As(err, &at) || im.Pix != nil {
		t.Errorf("more pixels than MaxPixels: %v", err)
	}
	for _, none := range [][]byte{nil, {0x89}, {0xFF}, []byte("no image")} {
		if err := im.Decode(none, 3); !errors.Is(err, image.ErrFormat) {
			t.Errorf("%q: %v", none, err)
		}
	}
}

func TestImage_PackedIsTheOtherOrder(t *testing.T) {
	im := new(image.Image)
	picture(t, im)
	want := slices.Clone(im.Pix)
	packed := make([]uint8, len(want))
	im.Packed(packed)
	for i, v := range packed {
		if v != want[i%3*47*61+i/3] {
			t.Fatalf("byte %d", i)
		}
	}
	im.SetPacked(packed, 3, 47, 61)
	if !slices.Equal(im.Pix, want) {
		t.Error("SetPacked is not the way back")
	}
}

func FuzzPipeline(f *testing.F) {
	f.Add(uint64(1), uint8(5), uint8(9), uint8(8), uint8(7))
	f.Fuzz(func(t *testing.T, seed uint64, h, w, toH, toW uint8) {
		im, r := new(image.Image), rand.New(rand.NewPCG(seed, 0))
		ih, iw := int(h)+1, int(w)+1
		im.SetPacked(make([]uint8, 3*ih*iw), 3, ih, iw)
		p := image.Pipeline{
			image.Resize{H: int(toH) + 1, W: int(toW), Filter: image.Filter(seed % 5)},
			image.RandomResizedCrop{H: int(toW) + 1, W: int(toH) + 1, Filter: image.Filter(seed / 5 % 5)},
			image.RandomAffine{Degrees: 180, Translate: [2]float64{1, 1}, Filter: image.Filter(seed % 2)},
			image.CenterCrop(int(w)+1, int(h)+1), image.ToTensor, image.RandomErasing{P: 1},
		}
		if err := p.Apply(im, r); err != nil {
			t.Fatal(err)
		}
		if len(im.Numbers) != 3*ih*iw {
			t.Errorf("%d numbers of %d×%d", len(im.Numbers), iw, ih)
		}
	})
}
