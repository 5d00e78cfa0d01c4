package image_test

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image"
)

// bytesAll makes an image of all bytes, in three planes.
func bytesAll(im *image.Image) {
	packed := make([]uint8, 0, 3*256)
	for i := range 256 {
		packed = append(packed, uint8(i), uint8(i), uint8(i))
	}
	im.SetPacked(packed, 3, 16, 16)
}

// The checksums are those of the bytes that torchvision 0.29 and PyTorch 2.15 make of the same
// image.
func TestNumbersAreThoseOfTorchvision(t *testing.T) {
	im := new(image.Image)
	for _, c := range []struct {
		as         image.Arithmetic
		plain, sum uint32
	}{
		{image.Divided, 0x1a0f4edf, 0xbd18b1b8}, {image.Scaled, 0xafde3608, 0x1cc110bd},
		{image.Unscaled, 0x5845b812, 0x0e086ff5},
	} {
		first, normal := image.Normalize{As: c.as},
			image.Normalize{As: c.as, Mean: image.MeanOfImageNet, Std: image.StdOfImageNet}
		for _, made := range []struct {
			steps image.Pipeline
			want  uint32
		}{{image.Pipeline{first}, c.plain}, {image.Pipeline{normal}, c.sum}, {image.Pipeline{first, normal}, c.sum}} {
			bytesAll(im)
			if err := made.steps.Apply(im, nil); err != nil {
				t.Fatal(err)
			}
			b, _ := binary.Append(nil, binary.LittleEndian, im.Numbers)
			if got := crc32.ChecksumIEEE(b); got != made.want {
				t.Errorf("%+v: %#08x, not %#08x", made.steps, got, made.want)
			}
		}
	}
}

func TestPipeline_WritesWhatItMakesOfPackedPixels(t *testing.T) {
	packed := make([]uint8, 3*7*5)
	for i := range packed {
		packed[i] = uint8(i * 5)
	}
	for _, p := range []image.Pipeline{{}, {image.RandomCrop{H: 4, W: 4}},
		{image.Pad{Top: 1}, image.ToTensor},
		{image.RandomApply(0.5, image.Resize{H: 7, W: 5}, image.RandomVerticalFlip(1))}} {
		for seed := range uint64(4) {
			r := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
			one, other := new(image.Image), new(image.Image)
			one.SetPacked(packed, 3, 7, 5)
			if err := p.Apply(one, r()); err != nil {
				t.Fatal(err)
			}
			pixels, numbers := make([]uint8, len(one.Pix)), make([]float32, len(one.Numbers))
			other.SetPacked(packed, 3, 7, 5)
			if err := p.Write(pixels, numbers, other, nil, 3, r()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(pixels, one.Pix) || !slices.Equal(numbers, one.Numbers) {
				t.Errorf("%+v writes something else", p)
			}
			other.SetPacked(packed, 3, 7, 5)
			if err := p.Write(make([]uint8, 1), nil, other, nil, 3, r()); !errors.Is(err, image.ErrSize) {
				t.Errorf("to a row of one byte: %v", err)
			}
		}
	}
}

// TestRegression_HugeStepsAreErrors wants no memory for what no image may be.
func TestRegression_HugeStepsAreErrors(t *testing.T) {
	const huge = 1 << 28
	for _, s := range []image.Step{
		image.Resize{H: huge}, image.Resize{H: huge, W: huge}, image.CenterCrop(huge, 1),
		image.RandomResizedCrop{H: 1 << 20, W: 1 << 20},
		image.Pad{Left: huge}, image.Pad{Left: 1 << 14, Top: 1 << 14}, image.Pad{Top: -1},
		image.Pad{Top: 16, Mode: image.Reflect}, image.Pad{Left: 17, Mode: image.Symmetric},
		image.Pad{Fill: []uint8{1, 2}},
	} {
		im := new(image.Image)
		bytesAll(im)
		if err := s.Apply(im, rand.New(rand.NewPCG(1, 1))); !errors.Is(err, image.ErrSize) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
