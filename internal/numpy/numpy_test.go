package numpy_test

import (
	"bytes"
	"testing"

	"github.com/shoal-mp/shoal/internal/numpy"
)

func TestParse_IsTheInverseOfDescr(t *testing.T) {
	for descr, want := range map[string]string{"<f4": "float32", "|b1": "bool", "|u1": "uint8", "<c16": "complex128"} {
		if name, swapped := numpy.Parse(descr); name != want || swapped || numpy.Descr(name) != descr {
			t.Errorf("%s is %s, swapped %v, and that is %s", descr, name, swapped, numpy.Descr(name))
		}
	}
	if name, swapped := numpy.Parse(">i8"); name != "int64" || !swapped {
		t.Errorf(">i8 is %s, swapped %v", name, swapped)
	}
	for _, descr := range []string{"", "<", "f4", "float32", "<V8", "?f4"} {
		if name, _ := numpy.Parse(descr); numpy.Descr(name) != "" {
			t.Errorf("%q is %s", descr, name)
		}
	}
	if descr := numpy.Descr("bfloat16"); descr != "" {
		t.Errorf("numpy has no bfloat16, and it is called %s", descr)
	}
}

func TestSwap_TurnsEachNumberAround(t *testing.T) {
	for name, want := range map[string][]byte{
		"uint8": {1, 2, 3, 4, 5, 6, 7, 8}, "int16": {2, 1, 4, 3, 6, 5, 8, 7}, "bfloat16": {2, 1, 4, 3, 6, 5, 8, 7},
		"complex64": {4, 3, 2, 1, 8, 7, 6, 5}, "float64": {8, 7, 6, 5, 4, 3, 2, 1},
	} {
		b := []byte{1, 2, 3, 4, 5, 6, 7, 8}
		if numpy.Swap(name, b); !bytes.Equal(b, want) {
			t.Errorf("%s: %v, want %v", name, b, want)
		}
	}
}

func TestClean_LeavesNoBoolThatIsNone(t *testing.T) {
	b := []byte{0, 1, 2, 255}
	if numpy.Clean("uint8", b); !bytes.Equal(b, []byte{0, 1, 2, 255}) {
		t.Error(b)
	}
	if numpy.Clean("bool", b); !bytes.Equal(b, []byte{0, 1, 1, 1}) {
		t.Error(b)
	}
}
