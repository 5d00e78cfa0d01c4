package image

import (
	"math/rand/v2"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// blendPixels interpolates between the pixels of another image (factor 0) and p (factor 1), in
// place. A factor above 1 extrapolates. of returns the other image's pixel i.
func blendPixels(p []uint8, factor float64, of func(i int) uint8) {
	f := float32(factor)
	for i, v := range p {
		o := of(i)
		p[i] = uint8(max(0, min(255, float32(o)+float32(f*float32(int(v)-int(o))))))
	}
}

// lumaPlane returns the luma of all pixels, which must not be modified. For one plane it is the
// plane itself; for three planes the result is valid until the next use of im.lines.
func (im *Image) lumaPlane() []uint8 {
	if im.C == 1 {
		return im.plane(0)
	}
	im.lines = resizeSlice(im.lines, im.H*im.W)
	pixel.Gray(im.lines, im.plane(0), im.plane(1), im.plane(2))
	return im.lines
}

// blendAll blends all pixels with the value other: factor 0 gives other, factor 1 changes nothing.
func (im *Image) blendAll(factor float64, other uint8) {
	var table [256]uint8
	for i := range table {
		table[i] = uint8(i)
	}
	blendPixels(table[:], factor, func(int) uint8 { return other })
	for i, v := range im.Pix {
		im.Pix[i] = table[v]
	}
}

// adjustBrightness scales the brightness: 0 is black, 1 changes nothing.
func (im *Image) adjustBrightness(factor float64) { im.blendAll(factor, 0) }

// adjustContrast scales the contrast: 0 is the mean brightness, 1 changes nothing.
func (im *Image) adjustContrast(factor float64) {
	sum, gray := 0, im.lumaPlane()
	for _, v := range gray {
		sum += int(v)
	}
	im.blendAll(factor, uint8(float64(sum)/float64(len(gray))+0.5))
}

// adjustSaturation scales the saturation: 0 is grey, 1 changes nothing. An image with one plane is
// unchanged.
func (im *Image) adjustSaturation(factor float64) {
	if im.C == 1 {
		return
	}
	gray := im.lumaPlane()
	for c := range im.C {
		blendPixels(im.plane(c), factor, func(i int) uint8 { return gray[i] })
	}
}

// ColorJitter multiplies brightness, contrast and saturation each by a random factor, and rotates
// the hue by up to Hue of its circle in either direction, in random order. Zero fields change
// nothing.
type ColorJitter struct {
	Brightness, Contrast, Saturation float64 // factors of 1-x to 1+x, but not below 0
	Hue                              float64 // up to 0.5
}

// Apply changes the colors of im in place by amounts that it draws from r. The error wraps
// [ErrSize] if im has no pixels, for example after [Normalize].
func (s ColorJitter) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	for _, i := range r.Perm(4) {
		switch {
		case i == 0 && s.Brightness > 0:
			im.adjustBrightness(drawUniform(r, max(0, 1-s.Brightness), 1+s.Brightness))
		case i == 1 && s.Contrast > 0:
			im.adjustContrast(drawUniform(r, max(0, 1-s.Contrast), 1+s.Contrast))
		case i == 2 && s.Saturation > 0:
			im.adjustSaturation(drawUniform(r, max(0, 1-s.Saturation), 1+s.Saturation))
		case i == 3 && s.Hue > 0:
			im.adjustHue(drawUniform(r, -s.Hue, s.Hue))
		}
	}
	return nil
}

// Grayscale returns a [Step] that reduces an image to luma, in one plane or in three equal planes.
func Grayscale(channels int) Step { return grayscale{channels} }

type grayscale struct{ Channels int }

// Apply replaces im by its luma, in s.Channels equal planes. It returns an error that wraps
// [ErrSize] if im has no pixels, for example after [Normalize].
func (s grayscale) Apply(im *Image, _ *rand.Rand) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	gray := im.lumaPlane()
	before := im.setSize(max(1, s.Channels), im.H, im.W)
	if len(gray) == len(before) {
		gray = before
	}
	for c := range im.C {
		copy(im.plane(c), gray)
	}
	return nil
}
