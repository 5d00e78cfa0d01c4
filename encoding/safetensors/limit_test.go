package safetensors_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/encoding/safetensors"
	"github.com/shoal-mp/shoal/tensor"
)

// What is read gets no more memory than MaxBytes; what is mapped is the file.
func TestRegression_S4_2_SafetensorsHaveALimit(t *testing.T) {
	const size = 1 << 20
	path, index := filepath.Join(t.TempDir(), "m.safetensors"), filepath.Join(t.TempDir(), "m.safetensors.index.json")
	x := tensor.Ones(tensor.Uint8, size)
	two := map[string]*tensor.Tensor{"a": x, "b": x}
	if err := errors.Join(safetensors.Save(path, two),
		safetensors.SaveWith(index, two, safetensors.SaveOptions{ShardBytes: size})); err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := safetensors.Open(index)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for most, good := range map[int64]struct{ one, all bool }{0: {true, true}, size - 1: {false, false},
		size: {true, false}, 2*size - 1: {true, false}, 2 * size: {true, true}} {
		f.MaxBytes, s.MaxBytes = most, most
		for what, r := range map[string]*safetensors.File{"one file": f, "an index": s} {
			_, one := r.Tensor("b")
			_, all := r.Tensors()
			if (one == nil) != good.one || (all == nil) != good.all {
				t.Errorf("%s %d: %v, %v", what, most, one, all)
			}
			for _, err := range []error{one, all} {
				if err != nil && (!errors.Is(err, safetensors.ErrLimit) ||
					!strings.Contains(err.Error(), "File.MaxBytes")) {
					t.Errorf("%s %d: %v", what, most, err)
				}
			}
			m, err := r.Map("a")
			if err != nil {
				t.Errorf("mapped: %v", err)
				continue
			}
			m.Close()
		}
	}
}
