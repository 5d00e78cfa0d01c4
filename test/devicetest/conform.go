package devicetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
)

// needed are the dtypes that a device must compute with. allDTypes are the dtypes that it must move
// and convert.
var (
	needed    = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Bool}
	allDTypes = []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128}
	floats = []tensor.DType{tensor.Float32, tensor.Float64}
)

// Conform checks in subtests that operations on tensors of dev have the same results as on the
// host. A device may lack kernels for dtypes that are not in needed. Conform fails t if dev is
// nil or computes nothing.
func Conform(t *testing.T, dev tensor.Device) {
	if dev == nil {
		t.Fatal("no device")
	}
	if _, ok := device.EngineOf(dev).(device.Computer[tensor.DType]); !ok {
		t.Fatalf("%v has no kernels", dev)
	}
	t.Run("elementwise", func(t *testing.T) { elementwise(t, dev) })
	t.Run("conversions", func(t *testing.T) { conversions(t, dev) })
	t.Run("in place", func(t *testing.T) { inPlace(t, dev) })
	t.Run("reductions", func(t *testing.T) { reductions(t, dev) })
	t.Run("products", func(t *testing.T) { products(t, dev) })
	t.Run("indices", func(t *testing.T) { indices(t, dev) })
	t.Run("sequences", func(t *testing.T) { sequences(t, dev) })
	t.Run("rows", func(t *testing.T) { rows(t, dev) })
	t.Run("windows", func(t *testing.T) { windows(t, dev) })
	t.Run("everything", func(t *testing.T) { everything(t, dev) })
	t.Run("optimizers", func(t *testing.T) { optimizers(t, dev) })
}

// A form derives an operand from the elements of x, such as a transposed one.
type form struct {
	name string
	of   func(x *tensor.Tensor) *tensor.Tensor
}

// forms are layouts of a tensor of shape (6, 10).
var forms = []form{
	{"contiguous", func(x *tensor.Tensor) *tensor.Tensor { return x }},
	{"turned", func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1) }},
	{"every other", func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(1, 1, 9, 2) }},
	{"an inner part", func(x *tensor.Tensor) *tensor.Tensor { return x.Slice(0, 1, 6, 2).Narrow(1, 3, 5) }},
	{"some of a row", func(x *tensor.Tensor) *tensor.Tensor { return x.View(60).Narrow(0, 4, 7) }},
	{"some of a row, from an odd one on", func(x *tensor.Tensor) *tensor.Tensor { return x.View(60).Narrow(0, 5, 7) }},
	{"expanded", func(x *tensor.Tensor) *tensor.Tensor { return x.Narrow(0, 2, 1).Expand(4, 3, 10) }},
	{"one", func(x *tensor.Tensor) *tensor.Tensor { return x.Select(0, 3).Select(0, 7) }},
	{"none", func(x *tensor.Tensor) *tensor.Tensor { return x.Narrow(0, 2, 0) }},
	{"all in four dimensions", func(x *tensor.Tensor) *tensor.Tensor { return x.View(2, 3, 2, 5).Permute(3, 0, 2, 1) }},
}

// numbersOf returns a tensor of shape (6, 10) with positive and negative elements. Some are equal,
// infinite or NaN.
func numbersOf(dt tensor.DType, seed uint64) *tensor.Tensor {
	x := tensor.RandN(tensor.Float64, tensor.NewGenerator(seed), 6, 10).MulScalarInPlace(3)
	switch dt {
	case tensor.Bool:
		return tensor.Gt(x, x.Number(0))
	case tensor.Uint8:
		return x.AbsInPlace().To(dt)
	case tensor.Float32, tensor.Float64:
		for i, special := range []string{"NaN", "+Inf", "-Inf"} {
			var v float64
			fmt.Sscan(special, &v)
			tensor.SetAt(x, v, 5, int(seed+uint64(i))%10)
		}
		tensor.SetAt(x, 0.0, 4, 1)
	}
	return x.To(dt)
}

// compare applies f to in on the host and to copies on dev, and fails t unless the results are
// equal within tolerance, see [Same]. An unsupported operation is accepted unless the dtype of a
// tensor of in is listed in [needed]. f may change its operands, but no memory around them.
func compare(t *testing.T, dev tensor.Device, tolerance float64, f func(in ...*tensor.Tensor) *tensor.Tensor,
	in ...*tensor.Tensor) {
	t.Helper()
	there := make([]*tensor.Tensor, len(in))
	for i, x := range in {
		there[i] = On(t, dev, x)
	}
	want := f(in...)
	got, err := tried(func() *tensor.Tensor { return f(there...) })
	switch {
	case errors.Is(err, tensor.ErrUnsupported) &&
		!slices.ContainsFunc(in, func(x *tensor.Tensor) bool { return slices.Contains(needed, x.DType()) }):
		return
	case err != nil:
		t.Error(err)
		return
	case got.Device() != dev && got.Numel() > 0:
		t.Errorf("on %v", got.Device())
	}
	Same(t, got, want, tolerance)
	for i, x := range in { // f may modify its operands, but nothing around them
		all := around(x)
		Same(t, there[i].AsStrided(all.Shape(), all.Strides(), 0), all, tolerance)
	}
}

// On returns a copy of x on dev with the same layout in a copy of its whole memory. It fails t
// if dev returns an error. [tensor.Tensor.ToDevice] alone would make the copy contiguous.
func On(t testing.TB, dev tensor.Device, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	there, err := around(x).ToDevice(dev)
	if err != nil {
		t.Fatal(err)
	}
	return there.AsStrided(x.Shape(), x.Strides(), x.Offset())
}

// around returns a view of all elements of the memory of x, which must be on the host.
func around(x *tensor.Tensor) *tensor.Tensor {
	return x.AsStrided([]int{len(x.Storage().Bytes()) / x.DType().Size()}, []int{1}, 0)
}

// tried returns the result of f, or its error if it panics with one. Other panics continue.
func tried(f func() *tensor.Tensor) (got *tensor.Tensor, err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(error)
			if !ok {
				panic(r)
			}
			err = failed
		}
	}()
	return f(), nil
}

// Same fails t unless got, on any device, has the dtype, shape and elements of want, which must
// be on the host. NaN equals NaN. Numbers may differ by tolerance*(1+abs(want)); for Float16 and
// BFloat16, tolerance is at least 0.01.
func Same(t testing.TB, got, want *tensor.Tensor, tolerance float64) {
	t.Helper()
	near, err := got.CPU()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	switch {
	case near.DType() != want.DType() || !slices.Equal(near.Shape(), want.Shape()):
		t.Errorf("%v %v, want %v %v", near.DType(), near.Shape(), want.DType(), want.Shape())
		return
	case want.Numel() == 0:
		return
	}
	if want.DType() == tensor.Float16 || want.DType() == tensor.BFloat16 {
		tolerance = max(tolerance, 1e-2)
	}
	a, b := near, want
	if want.DType() == tensor.Bool {
		a, b = near.To(tensor.Uint8), want.To(tensor.Uint8)
	}
	equal := tensor.Eq(a, b)
	if tolerance > 0 && want.DType() != tensor.Bool {
		limit := tensor.Abs(b).To(tensor.Float64).MulScalarInPlace(tolerance).AddScalarInPlace(tolerance)
		within := tensor.Le(tensor.Abs(tensor.Sub(a, b)).To(tensor.Float64), limit)
		equal = tensor.Or(equal, tensor.And(within, tensor.IsFinite(limit)))
	}
	if real := want.DType(); real != tensor.Complex64 && real != tensor.Complex128 {
		equal = tensor.Or(equal, tensor.And(tensor.IsNaN(a), tensor.IsNaN(b)))
	}
	if tensor.All(equal).Item() == 0 {
		wrong := tensor.Nonzero(tensor.Not(equal))
		t.Errorf("%d of %d elements are wrong, first at %v: %v, want %v", wrong.Dim(0), want.Numel(),
			wrong.Narrow(0, 0, 1),
			tensor.MaskedSelect(a, tensor.Not(equal)), tensor.MaskedSelect(b, tensor.Not(equal)))
	}
}
