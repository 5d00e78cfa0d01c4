package torch

import (
	"bufio"
	"encoding/base64"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/pickle"
)

// captures are messages that PyTorch wrote.
func captures(t testing.TB) map[string][]byte {
	f, err := os.Open("../internal/pickle/testdata/captures.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string][]byte{}
	for s := bufio.NewScanner(f); s.Scan(); {
		if fields := strings.Fields(s.Text()); len(fields) == 4 {
			b, err := base64.StdEncoding.DecodeString(fields[3])
			if err != nil {
				t.Fatal(err)
			}
			all[strings.Join(fields[:3], " ")] = b
		}
	}
	return all
}

// TestCaptures understands every message of PyTorch's: its memory is gone long since, and whatever has none is a value or an
// error that says why not.
func TestCaptures(t *testing.T) {
	for name, b := range captures(t) {
		i := &importer{ctx: testContext(t), opts: Options{AuthKey: testKey}}
		v, err := i.unmarshal(b)
		switch object := name[strings.LastIndexByte(name, ' ')+1:]; object {
		case "size", "dtype", "device":
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case "sparse", "nested", "meta", "subclass", "quant":
			if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrGlobal) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		case "empty":
			if strings.Contains(name, "file_descriptor") != (err == nil) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		default:
			if !errors.Is(err, ErrGone) {
				t.Errorf("%s: %v, %v", name, v, err)
			}
		}
		CloseAll(v)
	}
}

// FuzzMessage wants a value or an error of any message, and nothing that is fetched from anywhere.
func FuzzMessage(f *testing.F) {
	for _, b := range captures(f) {
		f.Add(b)
	}
	for _, v := range []any{Tuple{1, "x"}, NewDict("a", []int{1}), Size{2}, &Array{DType: "<f4", Shape: []int{1}, Data: make([]byte, 4)}} {
		b, err := Marshal(v, 4)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Unmarshal(b)
		if err != nil {
			return
		}
		again, err := Marshal(v, 4)
		if errors.Is(err, ErrUnsupported) || errors.Is(err, pickle.ErrValue) || errors.Is(err, pickle.ErrLimit) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(again); err != nil {
			t.Fatalf("%v, of what was read and written: %q", err, again)
		}
	})
}
