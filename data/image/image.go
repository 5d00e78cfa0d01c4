package image

import (
	"fmt"

	"github.com/shoal-mp/shoal/data/image/internal/jpeg"
	"github.com/shoal-mp/shoal/data/image/internal/other"
	"github.com/shoal-mp/shoal/data/image/internal/pixel"
	"github.com/shoal-mp/shoal/data/image/internal/png"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/internal/safefile"
)

// DefaultMaxPixels is the maximum number of pixels of an image if MaxPixels is 0. It is Pillow's
// limit.
const DefaultMaxPixels = 1 << 30 / 4 / 3

// An Image holds planes of pixels and the reusable memory of decoders and steps. Decode into the
// zero Image, and into the same Image again to reuse its memory. It must not be used from several
// goroutines at the same time.
type Image struct {
	C, H, W   int
	Pix       []uint8   // C planes of H rows of W pixels; nil after Normalize
	Numbers   []float32 // C planes of H rows of W numbers after Normalize; nil before
	MaxPixels int       // largest image that Decode accepts; 0 means DefaultMaxPixels
	// If DraftH and DraftW are not 0, Decode may decode a JPEG at an eighth, a quarter or half of
	// its size, with at least DraftH rows and DraftW columns. This is faster, and the pixels equal
	// those from Pillow's draft. Other formats are always decoded at full size.
	DraftH, DraftW int
	Finished       bool // all steps of the latest [Pipeline.Write] have been applied

	own, spare     []uint8 // buffers for Pix, used alternately
	floats         []float32
	row            []uint8 // of a batch, to which the last step may write
	numbers        []float32
	last           bool
	wholeH, wholeW int // full size of a JPEG that was decoded smaller for a Resize; 0 otherwise
	jpeg           jpeg.Decoder
	png            png.Decoder
	across, down   weights
	lines, padding []uint8
	tables         []table
	columns, rows  []int32
}

// Decode decodes a JPEG, PNG, WEBP, TIFF, BMP, PPM or PGM file into planes: one for grey, or three
// for red, green and blue. channels must be 1 or 3; otherwise Decode panics. The format is detected
// from the content. Other color modes are converted as Pillow's convert("L") and convert("RGB") do.
// The error is an [*encoding.FileError], and then the image is empty.
func (im *Image) Decode(data []byte, channels int) error {
	if im.DraftH <= 0 || im.DraftW <= 0 {
		return im.decode(data, channels, nil, nil)
	}
	return im.decode(data, channels, nil, func(fromH, fromW int) int {
		return reductionFactor(fromH, fromW, float64(im.DraftH), float64(im.DraftW))
	})
}

// reductionFactor returns the largest reduction factor, 8, 4, 2 or 1, that leaves at least
// leastH×leastW of h×w pixels.
func reductionFactor(h, w int, leastH, leastW float64) int {
	for times := 8; times > 1; times /= 2 {
		if float64(h) >= leastH*float64(times) && float64(w) >= leastW*float64(times) {
			return times
		}
	}
	return 1
}

// decode is Decode with callbacks for a JPEG: draft returns the reduction factor, and window the
// part of the image that is needed. Both may be nil. Only the pixels of the window are then
// defined. Errors are as with Decode.
func (im *Image) decode(data []byte, channels int, window func(h, w int) jpeg.Window,
	draft func(h, w int) int) error {
	if channels != 1 && channels != 3 {
		panic(fmt.Sprintf("image: Decode: got %d channels, want 1 or 3", channels))
	}
	im.C, im.H, im.W, im.Pix, im.Numbers = 0, 0, 0, nil, nil
	im.wholeH, im.wholeW, im.jpeg.Scale, im.jpeg.Window = 0, 0, nil, window
	if draft != nil {
		im.jpeg.Scale = func(h, w int) (int, error) { return draft(h, w), im.checkLimit(h, w) }
	}
	if safefile.IsPointer(data) {
		return &encoding.FileError{Err: fmt.Errorf("%w: %w", ErrFormat, safefile.ErrPointer)}
	}
	decode := im.jpeg.Decode
	switch {
	case len(data) > 0 && data[0] == 0x89:
		decode = im.png.Decode
	case other.Knows(data):
		decode = other.Decode
	}
	err := decode(data, channels, im.allocatePixels)
	if err != nil {
		im.C, im.H, im.W, im.Pix = 0, 0, 0, nil
	}
	return err
}

// allocatePixels sets the size of im and returns its pixels, for a decoder to fill. The error
// wraps [ErrTooLarge] if there are more pixels than im.MaxPixels allows.
func (im *Image) allocatePixels(c, h, w int) ([]uint8, error) {
	if err := im.checkLimit(h, w); err != nil {
		return nil, err
	}
	im.setSize(c, h, w)
	return im.Pix, nil
}

// checkLimit returns an error that wraps [ErrTooLarge] if h×w pixels exceed the limit.
func (im *Image) checkLimit(h, w int) error {
	most := im.MaxPixels
	if most == 0 {
		most = DefaultMaxPixels
	}
	if h > most/w {
		return fmt.Errorf("%w: %d×%d pixels exceed the limit %d", ErrTooLarge, h, w, most)
	}
	return nil
}

// setSize sets the size to c planes of h×w pixels with undefined values. It returns the previous
// pixels, which remain valid until the next call. In the last step the new pixels are the row of
// the batch, if the size fits.
func (im *Image) setSize(c, h, w int) (before []uint8) {
	before = im.Pix
	n := c * h * w
	im.own, im.spare = im.spare, im.own
	if im.C, im.H, im.W = c, h, w; im.last && len(im.row) == n {
		im.Pix = im.row
		return before
	}
	im.own = resizeSlice(im.own, n)
	im.Pix = im.own
	return before
}

// plane returns plane c, of H×W pixels.
func (im *Image) plane(c int) []uint8 { return im.Pix[c*im.H*im.W:][:im.H*im.W] }

// resizeSlice returns a slice of n elements with undefined values, in the memory of s if it is
// large enough.
func resizeSlice[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Packed writes the pixels to dst in the layout (H, W, C), which most other programs use. dst must
// have C·H·W bytes.
func (im *Image) Packed(dst []uint8) {
	if im.C == 3 {
		pixel.Merge(dst, im.plane(0), im.plane(1), im.plane(2))
		return
	}
	copy(dst, im.Pix)
}

// SetPacked sets the image to a copy of the pixels of src, which must have the layout (h, w, c)
// and at least c·h·w bytes.
func (im *Image) SetPacked(src []uint8, c, h, w int) {
	im.Numbers = nil
	im.setSize(c, h, w)
	if c == 3 {
		pixel.Split(im.plane(0), im.plane(1), im.plane(2), src)
		return
	}
	copy(im.Pix, src[:c*h*w])
}
