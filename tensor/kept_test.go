package tensor_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/shoal-mp/shoal/internal/numpy"
	"github.com/shoal-mp/shoal/tensor"
)

// kept are the dtypes that are not computed with.
var kept = []tensor.DType{tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Float8E4M3FN, tensor.Float8E5M2}

// Every byte is the number that PyTorch says, and is that byte again.
func TestDType_FloatsOfEightBits(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for dt, want := range map[tensor.DType]map[byte]float64{
		tensor.Float8E4M3FN: {0: 0, 1: 0x1p-9, 7: 7 * 0x1p-9, 8: 0x1p-6, 0x38: 1, 0x3f: 1.875, 0x7e: 448,
			0x7f: nan, 0x81: -0x1p-9, 0xfe: -448, 0xff: nan},
		tensor.Float8E5M2: {0: 0, 1: 0x1p-16, 3: 3 * 0x1p-16, 4: 0x1p-14, 0x3c: 1, 0x3f: 1.75, 0x7b: 57344,
			0x7c: inf, 0x7d: nan, 0x7f: nan, 0xfb: -57344, 0xfc: -inf},
	} {
		all := tensor.New(dt, 256)
		for i := range tensor.Bytes(all) {
			tensor.Bytes(all)[i] = byte(i)
		}
		numbers := all.To(tensor.Float64)
		for b, v := range want {
			if got := tensor.At[float64](numbers, int(b)); got != v && !(math.IsNaN(got) && math.IsNaN(v)) {
				t.Errorf("%v %#02x is %v, not %v", dt, b, got, v)
			}
		}
		again := numbers.To(dt)
		for i, b := range tensor.Bytes(again) {
			if v := tensor.At[float64](numbers, i); int(b) != i && !math.IsNaN(v) {
				t.Errorf("%v %#02x is %v, which is %#02x", dt, i, v, b)
			}
		}
		// Between two neighbours is the even one, and what is a little to a side is that side's.
		for i := range 0x7a {
			low, high := tensor.At[float64](numbers, i), tensor.At[float64](numbers, i+1)
			middle := (low + high) / 2
			for v, want := range map[float64]int{middle: i + i&1,
				math.Nextafter(float64(float32(middle)), 0) - (high-low)/64: i, middle + (high-low)/64: i + 1,
				-middle: 0x80 | (i + i&1)} {
				if got := int(tensor.Bytes(tensor.Scalar(dt, v))[0]); got != want {
					t.Errorf("%v: %v between %#02x and the next is %#02x, not %#02x", dt, v, i, got, want)
				}
			}
		}
	}
	for _, c := range []struct {
		dt   tensor.DType
		v    float64
		want byte
	}{{tensor.Float8E4M3FN, 463, 0x7e}, {tensor.Float8E4M3FN, 465, 0x7e}, {tensor.Float8E4M3FN, inf, 0x7e},
		{tensor.Float8E4M3FN, -inf, 0xfe}, {tensor.Float8E4M3FN, nan, 0x7f}, {tensor.Float8E5M2, 61439, 0x7b},
		{tensor.Float8E5M2, 61440, 0x7c}, {tensor.Float8E5M2, -1e9, 0xfc}, {tensor.Float8E5M2, nan, 0x7f}} {
		if got := tensor.Bytes(tensor.Scalar(c.dt, c.v))[0]; got != c.want {
			t.Errorf("%v of %v is %#02x, not %#02x", c.dt, c.v, got, c.want)
		}
	}
}

func TestDType_Unsigned(t *testing.T) {
	large := tensor.FromSlice([]uint64{0, 1, 1 << 63, math.MaxUint64}, 4)
	if got := fmt.Sprint(
		large); got != "tensor([                   0,                    1,  9223372036854775808,\n        "+
		"18446744073709551615], dtype=torch.uint64)" {
		t.Errorf("%s", got)
	}
	if got := fmt.Sprint(large.ToNested()); got != "[0 1 9223372036854775808 18446744073709551615]" {
		t.Errorf("%s", got)
	}
	if got := tensor.Data[uint64](tensor.FromSlice([]float64{-1, 3.9, 0x1p63},
		3).To(tensor.Uint64)); got[0] != math.MaxUint64 || got[1] != 3 || got[2] != 1<<63 {
		t.Errorf("%v", got)
	}
	if got := tensor.Data[uint16](tensor.FromSlice([]int32{-1, 70_000, 7},
		3).To(tensor.Uint16)); fmt.Sprint(got) != "[65535 4464 7]" {
		t.Errorf("%v", got)
	}
	if got := tensor.FromSlice([]uint32{math.MaxUint32}, 1).To(tensor.Float64).Item(); got != math.MaxUint32 {
		t.Errorf("%v", got)
	}
}

// What is only kept is moved and converted like the rest, and computed with by nobody.
func TestDType_KeptIsMovedAndConvertedOnly(t *testing.T) {
	for _, dt := range kept {
		if again, err := tensor.ParseDType(dt.String()); err != nil || again != dt {
			t.Errorf("%v: %v, %v", dt, again, err)
		}
		if name := numpy.Descr(dt.String()); name != "" {
			if again, swapped := numpy.Parse(name); again != dt.String() || swapped {
				t.Errorf("%v: %v, swapped %v", name, again, swapped)
			}
		}
		x := tensor.Arange(tensor.Float32, 0, 6, 1).To(dt).Reshape(2, 3)
		if got := x.T().Clone().To(tensor.Int64); !tensor.Equal(got,
			tensor.Arange(tensor.Int64, 0, 6, 1).Reshape(2, 3).T()) {
			t.Errorf("%v: %v", dt, got)
		}
		if got := tensor.Full(dt, 3, 2); got.Select(0, 1).Item() != 3 {
			t.Errorf("%v: %v", dt, got)
		}
		panics(t, func() { tensor.Add(x, x) })
		panics(t, func() { tensor.Mul(x, tensor.Ones(tensor.Float32, 1)) })
		panics(t, func() { x.Sum() })
		panics(t, func() { tensor.MatMul(x, x.T()) })
	}
}
