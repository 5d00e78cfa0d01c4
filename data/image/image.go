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

// DefaultMaxPixels is how many pixels an image may have if MaxPixels is 0: Pillow's limit.
const DefaultMaxPixels = 1 << 30 / 4 / 3

// An Image has planes of pixels, and the memory that steps need. Decode into the zero Image, and
// into the same Image again to use its memory. One goroutine at a time may use it.
type Image struct {
	C, H, W   int
	Pix       []uint8   // C planes of H rows of W pixels; nil after Normalize
	Numbers   []float32 // C planes of H rows of W numbers after Normalize; nil before
	MaxPixels int       // largest image that Decode takes; 0 means DefaultMaxPixels
	// If DraftH and DraftW are not 0, Decode decodes a JPEG at an eighth, a quarter or half of its
	// size, as long as it has at least DraftH rows and DraftW columns. This is faster, and the
	// pixels are those of Pillow's draft. Other files are always decoded at their size.
	DraftH, DraftW int

	own, spare     []uint8 // take turns to be Pix
	floats         []float32
	row            []uint8 // of a batch, where the last step is to write
	numbers        []float32
	last           bool
	wholeH, wholeW int // pixels of a JPEG that may have been decoded smaller for the Resize that comes now; 0 otherwise
	jpeg           jpeg.Decoder
	png            png.Decoder
	across, down   weights
	lines, padding []uint8
	tables         []table
	columns, rows  []int32
}

// Decode decodes a JPEG, PNG, WEBP, TIFF, BMP, PPM or PGM file into planes: one for grey, or three
// for red, green and blue, as channels says. The content says of which kind the file is. It
// converts other kinds of images as Pillow's convert("L") and convert("RGB") do. The error is an
// [*encoding.FileError], and then the image is empty.
func (im *Image) Decode(data []byte, channels int) error {
	if im.DraftH <= 0 || im.DraftW <= 0 {
		return im.decode(data, channels, nil)
	}
	return im.decode(data, channels, func(fromH, fromW int) int {
		return timesSmaller(fromH, fromW, float64(im.DraftH), float64(im.DraftW))
	})
}

// timesSmaller returns how many times smaller h×w pixels are decoded to be at least leastH×leastW.
func timesSmaller(h, w int, leastH, leastW float64) int {
	for times := 8; times > 1; times /= 2 {
		if float64(h) >= leastH*float64(times) && float64(w) >= leastW*float64(times) {
			return times
		}
	}
	return 1
}

// decode is Decode, of a JPEG as many times smaller as draft says, which may be nil.
func (im *Image) decode(data []byte, channels int, draft func(h, w int) int) error {
	if channels != 1 && channels != 3 {
		panic(fmt.Sprintf("image: Decode to %d channels, not 1 or 3", channels))
	}
	im.C, im.H, im.W, im.Pix, im.Numbers = 0, 0, 0, nil, nil
	im.wholeH, im.wholeW, im.jpeg.Scale = 0, 0, nil
	if draft != nil {
		im.jpeg.Scale = func(h, w int) (int, error) { return draft(h, w), im.fits(h, w) }
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
	err := decode(data, channels, im.place)
	if err != nil {
		im.C, im.H, im.W, im.Pix = 0, 0, 0, nil
	}
	return err
}

// place is where a decoder writes.
func (im *Image) place(c, h, w int) ([]uint8, error) {
	if err := im.fits(h, w); err != nil {
		return nil, err
	}
	im.become(c, h, w)
	return im.Pix, nil
}

// fits returns an error if a file has too many pixels.
func (im *Image) fits(h, w int) error {
	most := im.MaxPixels
	if most == 0 {
		most = DefaultMaxPixels
	}
	if h > most/w {
		return fmt.Errorf("%w: %d×%d pixels, where %d are", ErrTooLarge, h, w, most)
	}
	return nil
}

// become makes the image c planes of h×w pixels of any value, in other memory than before, which it
// returns. Of the last step it is the row of the batch.
func (im *Image) become(c, h, w int) (before []uint8) {
	before = im.Pix
	n := c * h * w
	im.own, im.spare = im.spare, im.own
	if im.C, im.H, im.W = c, h, w; im.last && len(im.row) == n {
		im.Pix = im.row
		return before
	}
	im.own = sized(im.own, n)
	im.Pix = im.own
	return before
}

// plane returns plane c of H×W pixels.
func (im *Image) plane(c int) []uint8 { return im.Pix[c*im.H*im.W:][:im.H*im.W] }

// sized returns s with n elements of any value.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Packed writes the pixels to dst as (H, W, C), the form of most other programs. dst has C·H·W
// bytes.
func (im *Image) Packed(dst []uint8) {
	if im.C == 3 {
		pixel.Merge(dst, im.plane(0), im.plane(1), im.plane(2))
		return
	}
	copy(dst, im.Pix)
}

// SetPacked sets the image to the pixels of src, which are (h, w, c). It copies them.
func (im *Image) SetPacked(src []uint8, c, h, w int) {
	im.Numbers = nil
	im.become(c, h, w)
	if c == 3 {
		pixel.Split(im.plane(0), im.plane(1), im.plane(2), src)
		return
	}
	copy(im.Pix, src[:c*h*w])
}
