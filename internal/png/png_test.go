package png_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/pixel"
	"github.com/shoal-mp/shoal/internal/png"
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
	names, err := filepath.Glob("testdata/*.png")
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
	z, err := gzip.NewReader(bytes.NewReader(read(t, strings.TrimSuffix(name, ".png")+"."+mode+".gz")))
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
		var d png.Decoder // one for all: what an image leaves behind must not matter to the next
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

func TestATruncatedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := read(t, name)
		var d png.Decoder
		for n := range len(data) {
			var p picture
			err := d.Decode(data[:n], 3, p.place)
			var at *pixel.DecodeError
			if !errors.As(err, &at) || at.Offset > n {
				t.Fatalf("%s: %d bytes of %d: %v", name, n, len(data), err)
			}
		}
	}
}

func TestADamagedFileIsAnError(t *testing.T) {
	for _, name := range files(t) {
		data := read(t, name)
		var d png.Decoder
		for i := range data {
			data[i] ^= 0x10
			var p picture
			if err := d.Decode(data, 3, p.place); err == nil {
				t.Fatalf("%s: byte %d of %d changed: no error", name, i, len(data))
			}
			data[i] ^= 0x10
		}
	}
}

// resum corrects the checksums of the chunks of a file.
func resum(data []byte) []byte {
	data = bytes.Clone(data)
	for at := 8; at+12 <= len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		if n > len(data)-at-12 {
			break
		}
		binary.BigEndian.PutUint32(data[at+8+n:], crc32.ChecksumIEEE(data[at+4:at+8+n]))
		at += 12 + n
	}
	return data
}

func FuzzDecode(f *testing.F) {
	for _, name := range files(f) {
		f.Add(read(f, name), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, color bool) {
		channels := 1
		if color {
			channels = 3
		}
		var d png.Decoder
		var p picture
		var at *pixel.DecodeError
		data = resum(data) // or nothing would get past them
		if err := d.Decode(data, channels, p.place); err != nil && (!errors.As(err, &at) || at.Offset < 0 || at.Offset > len(data)) {
			t.Errorf("%v is no DecodeError within %d bytes", err, len(data))
		}
	})
}
