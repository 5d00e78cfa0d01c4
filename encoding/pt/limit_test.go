package pt_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/tensor"
)

// A file gets no more memory than Options.MaxBytes, of all its storages together, in each of its
// forms.
func TestRegression_S4_2_AFileOfTorchHasALimit(t *testing.T) {
	const size = 1 << 20
	path := filepath.Join(t.TempDir(), "two.pt")
	x := tensor.Ones(tensor.Uint8, size)
	if err := pt.Save(path, map[string]*tensor.Tensor{"a": x, "b": x.Clone(), "also a": x}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		o    pt.Options
		want error
	}{
		"read":                 {path, pt.Options{MaxBytes: 2*size - 1}, pt.ErrLimit},
		"mapped":               {path, pt.Options{MaxBytes: 2*size - 1, Mmap: true}, pt.ErrLimit},
		"read within it":       {path, pt.Options{MaxBytes: 2 * size}, nil},
		"mapped within it":     {path, pt.Options{MaxBytes: 2 * size, Mmap: true}, nil},
		"legacy":               {"testdata/legacy-1.13.pt", pt.Options{MaxBytes: 1}, pt.ErrLimit},
		"legacy, by default":   {"testdata/legacy-1.13.pt", pt.Options{}, nil},
		"legacy, asked to map": {"testdata/legacy-1.13.pt", pt.Options{MaxBytes: 1, Mmap: true}, pt.ErrLimit},
	} {
		_, err := pt.Load(c.path, c.o)
		var file *encoding.FileError
		if !errors.Is(err, c.want) || err != nil &&
			(!errors.As(err, &file) || !strings.Contains(err.Error(), "Options.MaxBytes")) {
			t.Errorf("%s: %v, not %v", name, err, c.want)
		}
	}
}

// A truncated is a source that ends before the size that it was said to have. If it does not, it
// returns io.EOF with the last bytes, which an io.ReaderAt may.
type truncated struct{ b []byte }

func (r truncated) ReadAt(b []byte, off int64) (n int, err error) {
	if off < int64(len(r.b)) {
		n = copy(b, r.b[off:])
	}
	if off+int64(n) == int64(len(r.b)) {
		err = io.EOF
	}
	return n, err
}

// Decode returns an error instead of elements that it has not read.
func TestDecode_SourceEndsEarly(t *testing.T) {
	whole, err := os.ReadFile("testdata/legacy-1.13.pt")
	if err != nil {
		t.Fatal(err)
	}
	size := int64(len(whole))
	if _, err := pt.Decode(truncated{whole}, size, pt.Options{}); err != nil {
		t.Errorf("a complete source: %v", err)
	}
	for cut := range 32 {
		if _, err := pt.Decode(truncated{whole[:len(whole)-cut-1]}, size, pt.Options{}); err == nil {
			t.Errorf("no error although the last %d bytes are missing", cut+1)
		}
	}
}
