package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
)

// TestTensorTo_CastsHalvesAsOneByOne compares the casts of whole tensors, which kernels begin and
// Go ends, with those of single numbers: all halves, and floats of all sizes, many of them halfway
// between two halves.
func TestTensorTo_CastsHalvesAsOneByOne(t *testing.T) {
	const all = 1 << 16
	halves, brains := make([]tensor.F16, all+3), make([]tensor.BF16, all+3)
	for i := range halves {
		halves[i], brains[i] = tensor.F16(i), tensor.BF16(i)
	}
	sameFloats(t, "float16", tensor.FromSlice(halves, len(halves)).To(tensor.Float32),
		func(i int) float32 { return halves[i].Float32() })
	sameFloats(t, "bfloat16", tensor.FromSlice(brains, len(brains)).To(tensor.Float32),
		func(i int) float32 { return brains[i].Float32() })

	r := rand.New(rand.NewPCG(1, 2))
	floats := make([]float32, all+5)
	for i := range floats {
		bits := r.Uint32()
		switch i % 4 {
		case 0:
			bits &^= 0xfff // halfway, or none, for float16
		case 1:
			bits = bits&^0xffff | 0x8000 // for bfloat16
		case 2:
			bits = bits&0x80ffffff | uint32(100+i%50)<<23 // not too large for float16, nor too small
		}
		floats[i] = math.Float32frombits(bits)
	}
	x := tensor.FromSlice(floats, len(floats))
	sameFloats(t, "to float16", x.To(tensor.Float16).To(tensor.Float32),
		func(i int) float32 { return tensor.MakeF16(floats[i]).Float32() })
	sameFloats(t, "to bfloat16", x.To(tensor.BFloat16).To(tensor.Float32),
		func(i int) float32 { return tensor.MakeBF16(floats[i]).Float32() })
}

func sameFloats(t *testing.T, name string, x *tensor.Tensor, want func(i int) float32) {
	t.Helper()
	for i, v := range tensor.Data[float32](x) {
		if w := want(i); math.Float32bits(v) != math.Float32bits(w) && (v == v || w == w) {
			t.Fatalf("%s, element %d: %v, want %v", name, i, v, w)
		}
	}
}

// TestTensorTo_CastsViews casts what has gaps, is turned round or stands for many: nothing of that
// is a row for a kernel.
func TestTensorTo_CastsViews(t *testing.T) {
	x := tensor.Arange(tensor.Float32, 0, 6*70, 1).View(6, 70)
	for name, v := range map[string]*tensor.Tensor{
		"transposed": x.T(), "every third": x.Slice(1, 0, 70, 3), "expanded": x.Narrow(1, 5, 1).Expand(6, 70),
		"short rows": x.View(84, 5).Narrow(1, 1, 3),
		"one":        x.Narrow(0, 1, 1).Narrow(1, 2, 1),
	} {
		wide, whole := v.To(tensor.Float64), v.To(tensor.Float16).To(tensor.Int64)
		for i := range v.Dim(0) {
			for j := range v.Dim(1) {
				want := tensor.At[float32](v, i, j)
				if got := tensor.At[float64](wide, i, j); got != float64(want) {
					t.Fatalf("%s, %d, %d: %v, want %v", name, i, j, got, want)
				}
				if got := tensor.At[int64](whole, i, j); float32(got) != want {
					t.Fatalf("%s through float16, %d, %d: %v, want %v", name, i, j, got, want)
				}
			}
		}
	}
}
