package other_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/other"
	"github.com/shoal-mp/shoal/data/image/internal/pixel"
	"github.com/shoal-mp/shoal/data/image/internal/pixel/pixeltest"
	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/test/testutil"
)

// decoder is the package as a pixeltest.Decoder.
type decoder struct{}

func (decoder) Decode(data []byte, channels int, place pixel.Place) error {
	return other.Decode(data, channels, place)
}

func files(t testing.TB) (all []string) {
	for pattern, least := range map[string]int{"*.webp": 10, "*.bmp": 4, "*.tif": 8, "*.p?m": 2} {
		all = append(all, pixeltest.Files(t, pattern, least)...)
	}
	return all
}

func TestPixelsAreThoseOfPillow(t *testing.T) { pixeltest.ComparePillow(t, decoder{}, files(t)) }

// A file that is cut is an error, or has all pixels: TIFF and WEBP may end with what is not needed.
func TestATruncatedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		whole := pixeltest.Picture{}
		testutil.NoError(t, other.Decode(data, 3, whole.Place))
		for n := range len(data) {
			if !other.Knows(data[:n]) {
				continue
			}
			var p pixeltest.Picture
			err := other.Decode(data[:n], 3, p.Place)
			at := (*encoding.FileError)(nil)
			if !errors.As(err, &at) && (err != nil || !slices.Equal(p.Pix, whole.Pix)) {
				t.Fatalf("%s: %d bytes of %d: %v", name, n, len(data), err)
			}
		}
	}
}

// Damaged files do not end the program.
func TestADamagedFileDoesNotPanic(t *testing.T) {
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		for i := range min(len(data), 600) {
			data[i] ^= 0x10
			p := small{}
			if err := other.Decode(data, 3, p.place); other.Knows(data) && err != nil {
				if at := (*encoding.FileError)(nil); !errors.As(err, &at) {
					t.Fatalf("%s: byte %d changed: %v, want a FileError", name, i, err)
				}
			}
			data[i] ^= 0x10
		}
	}
}

// small refuses large pictures.
type small struct{}

func (small) place(c, h, w int) ([]uint8, error) {
	if w < 1 || h > 1<<16/w {
		return nil, pixel.ErrTooLarge
	}
	return make([]uint8, c*h*w), nil
}

func TestOtherFormatsAreNamed(t *testing.T) {
	for start, want := range map[string]string{
		"GIF89a": "GIF", "\x00\x00\x00\x20ftypavif": "AVIF", "8BPS": "Photoshop", "P3\n1 1\n255\n": "P3",
		"P5 1 1 65535\n": "65535",
	} {
		err := other.Decode([]byte(start+"        "), 3, small{}.place)
		testutil.ErrorIs(t, err, pixel.ErrUnsupported)
		testutil.ErrorContains(t, err, want)
	}
	if other.Knows([]byte("\xff\xd8\xff\xe0")) || other.Knows([]byte("BADTEXT")) || other.Knows(nil) {
		t.Error("other files are taken for images")
	}
}
