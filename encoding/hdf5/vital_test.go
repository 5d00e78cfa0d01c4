package hdf5

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// A message of a kind that nobody here knows ends the reading of its object where it says so, and
// of nothing else.
func TestRegression_S4_4_AVitalMessageIsNotIgnored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.h5")
	if err := Save(path, map[string]*tensor.Tensor{"x": tensor.Ones(tensor.Float32, 2),
		"y": tensor.Ones(tensor.Float32, 3)}); err != nil {
		t.Fatal(err)
	}
	for flags, want := range map[byte]error{0: nil, flagVital: ErrUnsupported} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		at := f.datasets["y"]
		f.Close()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const head = 4 + 1 + 1 + 4
		end := at + head + uint64(binary.LittleEndian.Uint32(b[at+6:]))
		for m := at + head; m < end; m += 4 + uint64(binary.LittleEndian.Uint16(b[m+1:])) {
			if b[m] == msgFill || b[m] == 0x30 {
				b[m], b[m+3] = 0x30, flags
			}
		}
		binary.LittleEndian.PutUint32(b[end:], lookup3(b[at:end]))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if f, err = Open(path); err != nil {
			t.Fatal(err)
		}
		_, err = f.Dataset("y")
		if !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), "kind 48") {
			t.Errorf("flags %#x: %v, want %v", flags, err, want)
		}
		if _, err := f.Dataset("x"); err != nil {
			t.Error(err)
		}
		f.Close()
	}
}
