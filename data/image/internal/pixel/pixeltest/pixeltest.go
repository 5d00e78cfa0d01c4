package pixeltest

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/data/image/internal/pixel"
)

// A Picture is a decoded image with planes of bytes.
type Picture struct {
	C, H, W int
	Pix     []uint8
}

// Place is a [pixel.Place] that allocates p.Pix. It returns [pixel.ErrTooLarge] for more than 1<<20
// pixels.
func (p *Picture) Place(c, h, w int) ([]uint8, error) {
	if h*w > 1<<20 {
		return nil, pixel.ErrTooLarge
	}
	*p = Picture{c, h, w, make([]uint8, c*h*w)}
	return p.Pix, nil
}

// OnEachLevel runs a test with the loops of each level that this machine supports, and then
// restores the level. The level is global, so test must not call [testing.T.Parallel].
func OnEachLevel(t *testing.T, test func(t *testing.T)) {
	for _, level := range pixel.Levels() {
		t.Run(level, func(t *testing.T) {
			t.Cleanup(pixel.Use(level))
			test(t)
		})
	}
}

// Files returns the paths of the files in testdata that match pattern, including the folder. The
// test fails if there are fewer than least.
func Files(t testing.TB, pattern string, least int) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) < least {
		t.Fatalf("%d files %s, %v", len(names), pattern, err)
	}
	return names
}

// Read returns the content of a file, such as one of [Files]. The test fails if it cannot be
// read.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Recorded returns the pixels, plane by plane, that Pillow decoded from the file name in the
// given mode. It reads them from a file next to it: for a.png and the mode "RGB" from a.RGB.gz.
// The test fails if there is no such file.
func Recorded(t testing.TB, name, mode string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(Read(t, strings.TrimSuffix(name, filepath.Ext(name))+"."+mode+".gz")))
	if err != nil {
		t.Fatal(err)
	}
	pix, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return pix
}

// A Decoder decodes files of one format.
type Decoder interface {
	Decode(data []byte, channels int, place pixel.Place) error
}

// ComparePillow compares the decoded pixels of files, in RGB and in grey, with Pillow's. They must
// be equal. One decoder is used for all files, so that state left by an image is detected in the
// next.
func ComparePillow(t *testing.T, d Decoder, names []string) {
	t.Helper()
	for _, name := range names {
		for mode, channels := range map[string]int{"RGB": 3, "L": 1} {
			var p Picture
			if err := d.Decode(Read(t, name), channels, p.Place); err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := Recorded(t, name, mode)
			if len(p.Pix) != len(want) {
				t.Errorf("%s as %s: %d bytes, want %d", name, mode, len(p.Pix), len(want))
				continue
			}
			for i := range want {
				if p.Pix[i] != want[i] {
					at := i % (p.H * p.W)
					t.Errorf("%s as %s: plane %d, row %d, column %d is %d, want %d", name, mode, i/(p.H*p.W),
						at/p.W, at%p.W, p.Pix[i], want[i])
					break
				}
			}
		}
	}
}
