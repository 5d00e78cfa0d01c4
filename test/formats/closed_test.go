package encoding_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/autograd"
	"github.com/shoal-mp/shoal/encoding/hdf5"
	"github.com/shoal-mp/shoal/encoding/msgpack"
	"github.com/shoal-mp/shoal/encoding/npy"
	"github.com/shoal-mp/shoal/encoding/pt"
	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// A tensor that is closed, or none, is an error before anything takes the place of a file.
func TestSave_LeavesTheFileForATensorThatIsClosed(t *testing.T) {
	closed, open := tensor.New(tensor.Float32, 3), tensor.New(tensor.Float32, 3)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	several := func(x *tensor.Tensor) map[string]*tensor.Tensor { return map[string]*tensor.Tensor{"a": open, "b": x} }
	for _, c := range []struct {
		name, file string
		save       func(path string, x *tensor.Tensor) error
		none       bool // nil is None there
	}{
		{"hdf5", "old.h5", func(path string, x *tensor.Tensor) error {
			return hdf5.Save(path, several(x))
		}, false},
		{"msgpack", "old.msgpack", func(path string, x *tensor.Tensor) error {
			return msgpack.Save(path, several(x))
		}, false},
		{"npy", "old.npy", func(path string, x *tensor.Tensor) error { return npy.Save(path, x) }, false},
		{"npz", "old.npz", func(path string, x *tensor.Tensor) error { return npy.Save(path, several(x)) }, false},
		{"pt", "old.pt", func(path string, x *tensor.Tensor) error { return pt.Save(path, x) }, true},
		{"pt of several", "old.pt", func(path string, x *tensor.Tensor) error {
			return pt.Save(path, several(x))
		}, true},
		{"pt of a parameter", "old.pt", func(path string, x *tensor.Tensor) error {
			return pt.Save(path, autograd.NewParam("w", x))
		}, true},
		{"safetensors", "old.safetensors", func(path string, x *tensor.Tensor) error {
			return safetensors.Save(path, several(x))
		}, false},
		{"safetensors in shards", "old.safetensors.index.json", func(path string, x *tensor.Tensor) error {
			return safetensors.SaveWith(path, several(x), safetensors.SaveOptions{ShardBytes: 12})
		}, false},
	} {
		for name, x := range map[string]*tensor.Tensor{"closed": closed, "zero": new(tensor.Tensor), "no": nil} {
			if x == nil && c.none {
				continue
			}
			path := filepath.Join(t.TempDir(), c.file)
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.save(path, x); !errors.Is(err, tensor.ErrClosed) {
				t.Errorf("%s, %s tensor: %v", c.name, name, err)
			}
			if b, err := os.ReadFile(path); string(b) != "old" {
				t.Errorf("%s, %s tensor: the file has %q, %v", c.name, name, b, err)
			}
			if all, err := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
				t.Errorf("%s, %s tensor: %v, %v", c.name, name, all, err)
			}
		}
	}
}
