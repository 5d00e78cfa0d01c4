package safetensors_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// A tensor that is closed, or none, is an error before anything takes the place of a file.
func TestSave_LeavesTheFileForATensorThatIsClosed(t *testing.T) {
	closed, open := tensor.New(tensor.Float32, 3), tensor.New(tensor.Float32, 3)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]*tensor.Tensor{"closed": closed, "zero": new(tensor.Tensor), "no": nil} {
		for kind, save := range map[string]func(path string) error{
			"one file": func(path string) error {
				return safetensors.Save(path, map[string]*tensor.Tensor{"a": open, "b": x}, nil)
			},
			"shards": func(path string) error {
				return safetensors.SaveSharded(path, 12, map[string]*tensor.Tensor{"a": open, "b": x}, nil)
			},
		} {
			path := filepath.Join(t.TempDir(), "old.safetensors.index.json")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := save(path); !errors.Is(err, tensor.ErrClosed) {
				t.Errorf("%s, %s tensor: %v", kind, name, err)
			}
			if b, err := os.ReadFile(path); string(b) != "old" {
				t.Errorf("%s, %s tensor: the file has %q, %v", kind, name, b, err)
			}
			if all, err := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
				t.Errorf("%s, %s tensor: %v, %v", kind, name, all, err)
			}
		}
	}
}
