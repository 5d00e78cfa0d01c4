package tensor_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// printed are the tensors of testdata/print.txt, which PyTorch 2.9.1 has written: "-- name
// expression", and the text.
var printed = map[string]func() *tensor.Tensor{
	"scalar":        func() *tensor.Tensor { return tensor.Scalar(tensor.Float32, 3.5) },
	"whole":         func() *tensor.Tensor { return floats(1, 2, 3) },
	"float":         func() *tensor.Tensor { return floats(1.5, -2.25, 0.125, 100).View(2, 2) },
	"scientific":    func() *tensor.Tensor { return floats(1e-5, 1, 2.5) },
	"large":         func() *tensor.Tensor { return floats(1e9, 1) },
	"wholeWide":     func() *tensor.Tensor { return floats(1, 2000) },
	"special":       func() *tensor.Tensor { return floats(1.5, nan, inf, -inf) },
	"specialWhole":  func() *tensor.Tensor { return floats(1, nan, -inf) },
	"nanOnly":       func() *tensor.Tensor { return floats(nan, 0) },
	"int64":         func() *tensor.Tensor { return tensor.FromSlice([]int64{1, -20, 300, 4}, 2, 2) },
	"int32":         func() *tensor.Tensor { return tensor.FromSlice([]int32{1, 2}, 2) },
	"uint8":         func() *tensor.Tensor { return tensor.FromSlice([]uint8{1, 255}, 2) },
	"bool":          func() *tensor.Tensor { return tensor.Eye(tensor.Bool, 2) },
	"half":          func() *tensor.Tensor { return floats(0.1, 2).To(tensor.Float16) },
	"bfloat16":      func() *tensor.Tensor { return floats(0.1, 2).To(tensor.BFloat16) },
	"float64":       func() *tensor.Tensor { return tensor.FromSlice([]float64{0.1, 2}, 2) },
	"complex64":     func() *tensor.Tensor { return tensor.FromSlice([]complex64{1 + 2i, -0.5 - 1.25i}, 2) },
	"complex128":    func() *tensor.Tensor { return tensor.FromSlice([]complex128{1 + 2i, 3 - 4i}, 2) },
	"complexScalar": func() *tensor.Tensor { return tensor.FromSlice([]complex64{1.5 - 2i}) },
	"empty":         func() *tensor.Tensor { return tensor.New(tensor.Float32, 0) },
	"empty2":        func() *tensor.Tensor { return tensor.New(tensor.Float32, 2, 0) },
	"emptyInt":      func() *tensor.Tensor { return tensor.New(tensor.Int64, 0) },
	"range30":       func() *tensor.Tensor { return count(tensor.Float32, 30) },
	"range40i":      func() *tensor.Tensor { return count(tensor.Int64, 40).MulScalarInPlace(1000) },
	"cube":          func() *tensor.Tensor { return count(tensor.Float32, 2, 3, 4).MulScalarInPlace(0.25) },
	"four":          func() *tensor.Tensor { return count(tensor.Int64, 2, 2, 2, 2) },
	"big":           func() *tensor.Tensor { return count(tensor.Float32, 1001) },
	"bigMatrix":     func() *tensor.Tensor { return count(tensor.Float32, 40, 50) },
	"bigCube":       func() *tensor.Tensor { return count(tensor.Int32, 20, 20, 20) },
	"bigNarrow":     func() *tensor.Tensor { return count(tensor.Int64, 600, 2) },
	"bigHalf":       func() *tensor.Tensor { return count(tensor.Float64, 1500).MulScalarInPlace(1. / 16) },
	"transposed":    func() *tensor.Tensor { return count(tensor.Float32, 2, 3).T() },
	"scalarInt":     func() *tensor.Tensor { return tensor.Scalar(tensor.Int16, 7) },
	"negZero":       func() *tensor.Tensor { return floats(float32(math.Copysign(0, -1)), 0) },
	"small":         func() *tensor.Tensor { return floats(0.001, 0.5) },
	"complexMany": func() *tensor.Tensor {
		return count(tensor.Complex64, 20).MulInPlace(tensor.FromSlice([]complex64{1 + 0.5i}))
	},
	"doubleMany": func() *tensor.Tensor { return count(tensor.Float64, 13) },
	"negative":   func() *tensor.Tensor { return floats(-1.5, 2.5) },
}

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
)

func floats(v ...float32) *tensor.Tensor { return tensor.FromSlice(v, len(v)) }

// count returns 0, 1, 2 and so on.
func count(dt tensor.DType, shape ...int) *tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	numbers := tensor.Arange(tensor.Float64, 0, float64(n), 1)
	defer numbers.Close()
	row := numbers.To(dt)
	defer row.Close()
	return row.View(shape...)
}

func TestTensorString_IsThatOfPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/print.txt")
	if err != nil {
		t.Fatal(err)
	}
	records := strings.Split("\n"+string(b), "\n-- ")[1:]
	if len(records) != len(printed) {
		t.Errorf("%d records for %d tensors", len(records), len(printed))
	}
	for _, r := range records {
		title, want, _ := strings.Cut(r, "\n")
		name, _, _ := strings.Cut(title, " ")
		make, ok := printed[name]
		if !ok {
			t.Errorf("no tensor for record %s", name)
			continue
		}
		if got := make().String(); got != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s:\n%s\nwant:\n%s", title, got, want)
		}
	}
}
