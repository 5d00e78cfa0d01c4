package image

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Crop reduces the image to the h×w pixels that begin in row y and column x. Pixels outside of
// the image are black. The image must not have been converted by [Normalize].
func (im *Image) Crop(y, x, h, w int) {
	if y == 0 && x == 0 && h == im.H && w == im.W {
		return
	}
	srcH, srcW := im.H, im.W
	before := im.setSize(im.C, h, w)
	left, right := min(w, max(0, -x)), max(0, min(w, srcW-x))
	for c := range im.C {
		src, dst := before[c*srcH*srcW:][:srcH*srcW], im.plane(c)
		for i := range h {
			row := dst[i*w:][:w]
			if y+i < 0 || y+i >= srcH || right <= left {
				clear(row)
				continue
			}
			clear(row[:left])
			copy(row[left:right], src[(y+i)*srcW+x+left:])
			clear(row[right:])
		}
	}
}

// A PadMode defines the values of the pixels around an image.
type PadMode uint8

const (
	Constant  PadMode = iota // the value Fill
	Edge                     // the value of the nearest pixel
	Reflect                  // the mirrored image, without repeating its outermost pixels
	Symmetric                // the mirrored image
)

// Pad adds pixels at each side of an image. With the Mode [Constant] their value is Fill, which
// must have one byte for all planes or one for each; nil is black.
type Pad struct {
	Top, Left, Bottom, Right int // must not be negative
	Mode                     PadMode
	Fill                     []uint8
}

// Apply pads im. The error wraps [ErrSize] if im has no pixels, if a field is out of range, or
// if the result is too large.
func (s Pad) Apply(im *Image, _ *rand.Rand) error {
	if err := s.check(im); err != nil {
		return err
	}
	srcH, srcW := im.H, im.W
	before := im.setSize(im.C, s.Top+srcH+s.Bottom, s.Left+srcW+s.Right)
	for c := range im.C {
		var paint uint8
		if len(s.Fill) > 0 {
			paint = s.Fill[min(c, len(s.Fill)-1)]
		}
		src, dst := before[c*srcH*srcW:][:srcH*srcW], im.plane(c)
		for y := range im.H {
			row := dst[y*im.W:][:im.W]
			from, inside := s.Mode.mapPosition(y-s.Top, srcH)
			if !inside {
				fill(row, paint)
				continue
			}
			s.padRow(row, src[from*srcW:][:srcW], paint)
		}
	}
	return nil
}

// padRow copies src, a row of the image, to dst and pads it on both sides. dst has the padded
// length. paint is the value of constant pixels.
func (s Pad) padRow(dst, src []uint8, paint uint8) {
	copy(dst[s.Left:], src)
	side := func(from, to int) {
		for x := from; x < to; x++ {
			dst[x] = paint
			if at, inside := s.Mode.mapPosition(x-s.Left, len(src)); inside {
				dst[x] = src[at]
			}
		}
	}
	side(0, s.Left)
	side(s.Left+len(src), len(dst))
}

func (s Pad) check(im *Image) error {
	if err := checkCropSize(im, 1, 1); err != nil {
		return err
	}
	for _, n := range []int{s.Top, s.Left, s.Bottom, s.Right} {
		beyond := n < 0 || n > DefaultMaxPixels || s.Mode == Reflect && n >= min(im.H, im.W) ||
			s.Mode == Symmetric && n > min(im.H, im.W)
		if beyond {
			return fmt.Errorf("%w: %d pixels around %d×%d", ErrSize, n, im.H, im.W)
		}
	}
	if n := len(s.Fill); n > 1 && n != im.C {
		return fmt.Errorf("%w: got a colour of %d bytes, want %d for the planes", ErrSize, n, im.C)
	}
	return checkPixelLimit(im.H+s.Top+s.Bottom, im.W+s.Left+s.Right)
}

// mapPosition maps position i, which may be outside, to one of n pixels. inside is false if the
// pixel has the constant value; at is then 0.
func (m PadMode) mapPosition(i, n int) (at int, inside bool) {
	switch {
	case i >= 0 && i < n:
		return i, true
	case m == Edge:
		return max(0, min(n-1, i)), true
	case m == Reflect && i < 0:
		return -i, true
	case m == Reflect:
		return 2*(n-1) - i, true
	case m == Symmetric && i < 0:
		return -i - 1, true
	case m == Symmetric:
		return 2*n - 1 - i, true
	}
	return 0, false
}

// CenterCrop returns a [Step] that reduces an image to the h×w pixels at its center. If the image
// is smaller, the remaining pixels are black.
func CenterCrop(h, w int) Step { return centerCrop{h, w} }

type centerCrop struct{ H, W int }

// Apply crops im. The error wraps [ErrSize] if im has no pixels, or if s.H or s.W is less than 1
// or too large.
func (s centerCrop) Apply(im *Image, _ *rand.Rand) error {
	if err := checkCropSize(im, s.H, s.W); err != nil {
		return err
	}
	padH, padW := max(0, (s.H-im.H)/2), max(0, (s.W-im.W)/2) // padded first, rounding down
	if s.H > im.H || s.W > im.W {
		im.Crop(-padH, -padW, max(s.H, im.H), max(s.W, im.W))
	}
	im.Crop(halfToEven(im.H-s.H), halfToEven(im.W-s.W), s.H, s.W)
	return nil
}

// halfToEven returns half of n, rounded to even as in Python.
func halfToEven(n int) int { return int(math.RoundToEven(float64(n) / 2)) }

func checkCropSize(im *Image, h, w int) error {
	if im.Pix == nil {
		return fmt.Errorf("%w: no pixels: this step must precede Normalize", ErrSize)
	}
	if h < 1 || w < 1 {
		return fmt.Errorf("%w: got a crop of %d×%d, want at least 1×1", ErrSize, h, w)
	}
	return checkPixelLimit(h, w)
}

// checkPixelLimit returns an error that wraps [ErrSize] if a step would make more than
// DefaultMaxPixels pixels.
func checkPixelLimit(h, w int) error {
	if h > DefaultMaxPixels/w {
		return fmt.Errorf("%w: result of %d×%d pixels exceeds the limit %d", ErrSize, h, w, DefaultMaxPixels)
	}
	return nil
}

// RandomCrop adds Padding black pixels to each side of an image, and crops it to H×W pixels at a
// random position.
type RandomCrop struct{ H, W, Padding int }

// Apply crops im at a position that it draws from r. The error wraps [ErrSize] if im has no
// pixels, if s.H or s.W is less than 1, or if im with its padding is smaller than the crop.
func (s RandomCrop) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, s.H, s.W); err != nil {
		return err
	}
	spareH, spareW := im.H+2*s.Padding-s.H, im.W+2*s.Padding-s.W
	if spareH < 0 || spareW < 0 {
		return fmt.Errorf("%w: got a crop of %d×%d, want at least 1×1 of %d×%d pixels and %d around them",
			ErrSize, s.H, s.W, im.H,
			im.W, s.Padding)
	}
	y, x := r.IntN(spareH+1), r.IntN(spareW+1)
	im.Crop(y-s.Padding, x-s.Padding, s.H, s.W)
	return nil
}

// RandomResizedCrop crops a random rectangle of the image and resizes it to H×W pixels. Zero values
// of Scale and Ratio mean torchvision's defaults, 0.08 to 1 and 3/4 to 4/3.
type RandomResizedCrop struct {
	H, W         int        // size in pixels
	Scale, Ratio [2]float64 // ranges of the area as a fraction of the image, and of width/height
	Filter       Filter
}

// Apply crops and resizes im to a rectangle that it draws from r. The error wraps [ErrSize] if
// im has no pixels, or if s.H or s.W is less than 1 or too large.
func (s RandomResizedCrop) Apply(im *Image, r *rand.Rand) error {
	if err := checkCropSize(im, s.H, s.W); err != nil {
		return err
	}
	y, x, h, w := s.drawRect(im.H, im.W, r)
	im.resizePart(y, x, h, w, s.H, s.W, s.Filter)
	return nil
}

// drawRect draws a rectangle of ph×pw pixels that begins in row y and column x, within h×w
// pixels. If ten attempts do not fit, it returns the largest centered rectangle with an allowed
// ratio.
func (s RandomResizedCrop) drawRect(h, w int, r *rand.Rand) (y, x, ph, pw int) {
	scale, ratio := s.Scale, s.Ratio
	if scale == [2]float64{} {
		scale = [2]float64{0.08, 1}
	}
	if ratio == [2]float64{} {
		ratio = [2]float64{3. / 4, 4. / 3}
	}
	for range 10 {
		area := float64(h*w) * drawUniform(r, scale[0], scale[1])
		aspect := math.Exp(drawUniform(r, math.Log(ratio[0]), math.Log(ratio[1])))
		pw, ph = int(math.RoundToEven(math.Sqrt(area*aspect))), int(math.RoundToEven(math.Sqrt(area/aspect)))
		if pw > 0 && pw <= w && ph > 0 && ph <= h {
			return r.IntN(h - ph + 1), r.IntN(w - pw + 1), ph, pw
		}
	}
	ph, pw = h, w
	if whole := float64(w) / float64(h); whole < ratio[0] {
		ph = int(math.RoundToEven(float64(w) / ratio[0]))
	} else if whole > ratio[1] {
		pw = int(math.RoundToEven(float64(h) * ratio[1]))
	}
	ph, pw = max(1, min(h, ph)), max(1, min(w, pw))
	return (h - ph) / 2, (w - pw) / 2, ph, pw
}

// drawUniform draws a number from low to high.
func drawUniform(r *rand.Rand, low, high float64) float64 { return low + r.Float64()*(high-low) }
