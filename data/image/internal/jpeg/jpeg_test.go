package jpeg_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/jpeg"
	"github.com/shoal-mp/shoal/data/image/internal/pixel"
	"github.com/shoal-mp/shoal/data/image/internal/pixel/pixeltest"
	"github.com/shoal-mp/shoal/encoding"
)

func files(t testing.TB) []string { return pixeltest.Files(t, "*.jpg", 20) }

func TestPixelsAreThoseOfPillow(t *testing.T) {
	pixeltest.OnEachLevel(t, func(t *testing.T) { pixeltest.ComparePillow(t, new(jpeg.Decoder), files(t)) })
}

func TestSmallerImagesAreThoseOfPillow(t *testing.T) {
	drafts := pixeltest.Files(t, "*.draft?.gz", 40)
	pixeltest.OnEachLevel(t, func(t *testing.T) {
		var d jpeg.Decoder
		for _, draft := range drafts {
			base, times := draft[:len(draft)-len(".draft0.gz")], int(draft[len(draft)-4]-'0')
			var p pixeltest.Picture
			d.Scale = func(_, _ int) (int, error) { return times, nil }
			if err := d.Decode(pixeltest.Read(t, base+".jpg"), 3, p.Place); err != nil {
				t.Errorf("%s: %v", draft, err)
				continue
			}
			if want := pixeltest.Recorded(t, base+".jpg", fmt.Sprint("draft", times)); !bytes.Equal(p.Pix, want) {
				t.Errorf("%s: %d×%d pixels differ from %d that Pillow has", draft, p.H, p.W, len(want)/3)
			}
		}
	})
}

func TestATruncatedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		var d jpeg.Decoder
		for n := range len(data) - 4 { // the last bits may be padding
			var p pixeltest.Picture
			err := d.Decode(data[:n], 3, p.Place)
			var at *encoding.FileError
			if !errors.As(err, &at) || at.Offset > int64(n) {
				t.Fatalf("%s: %d bytes of %d: %v", name, n, len(data), err)
			}
		}
	}
}

// A progressive image comes in scans. One that ends between two of them, with or without the mark
// of the end, is no picture.
func TestRegression_S4_3_MissingScansAreAnError(t *testing.T) {
	ends := 0
	for _, name := range files(t) {
		data := pixeltest.Read(t, name)
		if !strings.Contains(name, "progressive") {
			continue
		}
		for at := range len(data) - 2 {
			if data[at] != 0xFF || data[at+1] != 0xDA && data[at+1] != 0xC4 ||
				bytes.Count(data[:at], []byte{0xFF, 0xDA}) == 0 {
				continue
			}
			for _, cut := range [][]byte{data[:at], append(bytes.Clone(data[:at]), 0xFF, 0xD9)} {
				var d jpeg.Decoder
				var p pixeltest.Picture
				if err := d.Decode(cut, 3, p.Place); !errors.Is(err, pixel.ErrTruncated) ||
					!strings.Contains(err.Error(), "scans are missing") && !strings.Contains(err.Error(), "component") {
					t.Errorf("%s, the first %d bytes: %v", name, at, err)
				}
			}
			ends++
		}
	}
	if ends < 5 {
		t.Errorf("only %d scans", ends)
	}
}

func TestMoreScansThanAnybodyNeedsAreAnError(t *testing.T) {
	data := pixeltest.Read(t, "testdata/progressive_grey.jpg")
	first := bytes.Index(data, []byte{0xFF, 0xDA})
	end := first + bytes.Index(data[first:], []byte{0xFF, 0xC4}) // the tables of the next one
	all := append(bytes.Clone(data[:end]), bytes.Repeat(data[first:end], 500)...)
	var d jpeg.Decoder
	var p pixeltest.Picture
	if err := d.Decode(append(all, data[end:]...), 3, p.Place); !errors.Is(err, pixel.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range files(f) {
		f.Add(pixeltest.Read(f, name), true, uint8(0))
		f.Add(pixeltest.Read(f, name), true, uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, color bool, smaller uint8) {
		channels := 1
		if color {
			channels = 3
		}
		d := jpeg.Decoder{Scale: func(_, _ int) (int, error) { return 1 << (smaller % 4), nil }}
		var p pixeltest.Picture
		var at *encoding.FileError
		if err := d.Decode(data, channels, p.Place); err != nil &&
			(!errors.As(err, &at) || at.Offset < 0 || at.Offset > int64(len(data))) {
			t.Errorf("%v is no FileError within %d bytes", err, len(data))
		}
	})
}
