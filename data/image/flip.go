package image

import (
	"math/rand/v2"
	"slices"
)

// FlipHorizontal makes left right.
func (im *Image) FlipHorizontal() {
	for i := range im.C * im.H {
		slices.Reverse(im.Pix[i*im.W:][:im.W])
	}
}

// FlipVertical makes the top the bottom.
func (im *Image) FlipVertical() {
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

// RandomHorizontalFlip makes left right, with probability P.
type RandomHorizontalFlip struct{ P float64 }

// Apply flips the image, or not.
func (s RandomHorizontalFlip) Apply(im *Image, r *rand.Rand) error {
	if err := sane(im, 1, 1); err != nil {
		return err
	}
	if r.Float64() < s.P {
		im.FlipHorizontal()
	}
	return nil
}

// RandomVerticalFlip makes the top the bottom, with probability P.
type RandomVerticalFlip struct{ P float64 }

// Apply flips the image, or not.
func (s RandomVerticalFlip) Apply(im *Image, r *rand.Rand) error {
	if err := sane(im, 1, 1); err != nil {
		return err
	}
	if r.Float64() < s.P {
		im.FlipVertical()
	}
	return nil
}
