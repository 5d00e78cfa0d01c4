package jpeg_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/jpeg"
	"github.com/shoal-mp/shoal/internal/pixel"
)

// A picture is a decoded image.
type picture struct {
	c, h, w int
	pix     []uint8
}

// place makes room for a small picture.
func (p *picture) place(c, h, w int) ([]uint8, error) {
	if h*w > 1<<20 {
		return nil, pixel.ErrTooLarge
	}
	*p = picture{c, h, w, make([]uint8, c*h*w)}
	return p.pix, nil
}

func onEachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range pixel.Levels() {
		t.Run(level, func(t *testing.T) {
			t.Cleanup(pixel.Use(level))
			test(t)
		})
	}
}

func files(t testing.TB) []string {
	names, err := filepath.Glob("testdata/*.jpg")
	if err != nil || len(names) < 20 {
		t.Fatalf("%d images, %v", len(names), err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// recorded returns what Pillow decoded.
func recorded(t testing.TB, name, mode string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(read(t, strings.TrimSuffix(name, ".jpg")+"."+mode+".gz")))
	if err != nil {
		t.Fatal(err)
	}
	pix, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return pix
}

func TestPixelsAreThoseOfPillow(t *testing.T) {
	onEachLevel(t, func(t *testing.T) {
		var d jpeg.Decoder // one for all: what an image leaves behind must not matter to the next
		for _, name := range files(t) {
			for mode, channels := range map[string]int{"RGB": 3, "L": 1} {
				var p picture
				if err := d.Decode(read(t, name), channels, p.place); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				want := recorded(t, name, mode)
				if len(p.pix) != len(want) {
					t.Errorf("%s as %s: %d bytes, want %d", name, mode, len(p.pix), len(want))
					continue
				}
				for i := range want {
					if p.pix[i] != want[i] {
						at := i % (p.h * p.w)
						t.Errorf("%s as %s: plane %d, row %d, column %d is %d, want %d", name, mode, i/(p.h*p.w), at/p.w, at%p.w, p.pix[i], want[i])
						break
					}
				}
			}
		}
	})
}

func TestSmallerImagesAreThoseOfPillow(t *testing.T) {
	drafts, err := filepath.Glob("testdata/*.draft?.gz")
	if err != nil || len(drafts) < 40 {
		t.Fatalf("%d drafts, %v", len(drafts), err)
	}
	onEachLevel(t, func(t *testing.T) {
		var d jpeg.Decoder
		for _, draft := range drafts {
			base, times := draft[:len(draft)-len(".draft0.gz")], int(draft[len(draft)-4]-'0')
			var p picture
			d.Scale = func(_, _ int) (int, error) { return times, nil }
			if err := d.Decode(read(t, base+".jpg"), 3, p.place); err != nil {
				t.Errorf("%s: %v", draft, err)
				continue
			}
			if want := recorded(t, base+".jpg", fmt.Sprint("draft", times)); !bytes.Equal(p.pix, want) {
				t.Errorf("%s: %d×%d pixels differ from %d that Pillow has", draft, p.h, p.w, len(want)/3)
			}
		}
	})
}

func TestATruncatedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := read(t, name)
		var d jpeg.Decoder
		for n := range len(data) - 4 { // the last bits may be padding
			var p picture
			err := d.Decode(data[:n], 3, p.place)
			var at *pixel.DecodeError
			if strings.Contains(name, "progressive") && err == nil {
				continue // the first scans are a picture
			}
			if !errors.As(err, &at) || at.Offset > n {
				t.Fatalf("%s: %d bytes of %d: %v", name, n, len(data), err)
			}
		}
	}
}

func TestMoreScansThanAnybodyNeedsAreAnError(t *testing.T) {
	data := read(t, "testdata/progressive_grey.jpg")
	first := bytes.Index(data, []byte{0xFF, 0xDA})
	end := first + bytes.Index(data[first:], []byte{0xFF, 0xC4}) // the tables of the next one
	all := append(bytes.Clone(data[:end]), bytes.Repeat(data[first:end], 500)...)
	var d jpeg.Decoder
	var p picture
	if err := d.Decode(append(all, data[end:]...), 3, p.place); !errors.Is(err, pixel.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range files(f) {
		f.Add(read(f, name), true, uint8(0))
		f.Add(read(f, name), true, uint8(2))
	}
	f.Fuzz(func(t *testing.T, data []byte, color bool, smaller uint8) {
		channels := 1
		if color {
			channels = 3
		}
		d := jpeg.Decoder{Scale: func(_, _ int) (int, error) { return 1 << (smaller % 4), nil }}
		var p picture
		var at *pixel.DecodeError
		if err := d.Decode(data, channels, p.place); err != nil && (!errors.As(err, &at) || at.Offset < 0 || at.Offset > len(data)) {
			t.Errorf("%v is no DecodeError within %d bytes", err, len(data))
		}
	})
}
