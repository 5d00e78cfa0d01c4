package image

import (
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// flipHorizontal exchanges left and right.
func (im *Image) flipHorizontal() {
	before := im.setSize(im.C, im.H, im.W)
	pixel.Mirror(im.Pix, before, im.W)
}

// Mirror copies rows of width elements from src to dst and reverses each, for data sets with images
// in memory. dst and src must not overlap. Mirror panics unless they have the same length, a
// multiple of width.
func Mirror[T uint8 | float32](dst, src []T, width int) { pixel.Mirror(dst, src, width) }

// flipVertical exchanges top and bottom.
func (im *Image) flipVertical() {
	for c := range im.C {
		p := im.plane(c)
		for y := range im.H / 2 {
			above, below := p[y*im.W:][:im.W], p[(im.H-1-y)*im.W:][:im.W]
			for x, v := range above {
				above[x], below[x] = below[x], v
			}
		}
	}
}

// RandomHorizontalFlip returns a [Step] that exchanges left and right with probability p.
func RandomHorizontalFlip(p float64) Step { return randomHorizontalFlip{p} }

type randomHorizontalFlip struct{ P float64 }

// Apply exchanges left and right of im with probability s.P. The error wraps [ErrSize] if im has
// no pixels, for example after [Normalize].
func (s randomHorizontalFlip) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	if r.Float64() < s.P {
		im.flipHorizontal()
	}
	return nil
}

// RandomVerticalFlip returns a [Step] that exchanges top and bottom with probability p.
func RandomVerticalFlip(p float64) Step { return randomVerticalFlip{p} }

type randomVerticalFlip struct{ P float64 }

// Apply exchanges top and bottom of im with probability s.P. The error wraps [ErrSize] if im has
// no pixels, for example after [Normalize].
func (s randomVerticalFlip) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	if r.Float64() < s.P {
		im.flipVertical()
	}
	return nil
}
