package tensor_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
	"github.com/shoal-mp/shoal/test/testutil"
)

// Strides along dimensions of one element say nothing.
func TestResult_LiesAsInPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/layout.txt") // operands, and what PyTorch 2.15 makes of them
	testutil.NoError(t, err)
	turned := 0
	for line := range strings.Lines(string(b)) {
		operands, result, ok := strings.Cut(line, "|")
		if !ok {
			continue
		}
		var in ts
		for f := strings.Fields(operands); len(f) > 0; f = f[2:] {
			all := tensor.New(tensor.Float32, 1<<16)
			if len(f) == 6 { // of where
				all = all.To(tensor.Bool)
			}
			in = append(in, all.AsStrided(numbers(t, f[0]), numbers(t, f[1]), 0))
		}
		var got *tt
		switch len(in) {
		case 1:
			got = tensor.Neg(in[0])
		case 2:
			got = tensor.Add(in[0], in[1])
		case 3:
			got = tensor.Where(in[0], in[1], in[2])
		}
		want := strings.Fields(result)
		shape, strides := numbers(t, want[0]), numbers(t, want[1])
		if !slices.Equal(got.Shape(), shape) {
			t.Fatalf("%s: shape %v", line, got.Shape())
		}
		for d, n := range shape {
			if n > 1 && got.Strides()[d] != strides[d] {
				t.Errorf("%s: strides %v", line, got.Strides())
				break
			}
		}
		if !got.IsContiguous() {
			turned++
		}
	}
	if turned < 100 {
		t.Errorf("only %d results are not row-major", turned)
	}
}

// elementwise are all operations whose results lie as their operands do, of one, two or three.
func elementwise() map[string]func(in ...*tt) *tt {
	all := map[string]func(in ...*tt) *tt{
		"And":     func(in ...*tt) *tt { return tensor.And(in[0], in[1]) },
		"Or":      func(in ...*tt) *tt { return tensor.Or(in[0], in[1]) },
		"Xor":     func(in ...*tt) *tt { return tensor.Xor(in[0], in[1]) },
		"Not":     func(in ...*tt) *tt { return tensor.Not(in[0]) },
		"Clamp":   func(in ...*tt) *tt { return tensor.Clamp(in[0], -1, 1) },
		"Pow":     func(in ...*tt) *tt { return tensor.Pow(in[0], 2.5) },
		"Number":  func(in ...*tt) *tt { return tensor.Mul(in[0], in[0].Number(3)) },
		"Where":   func(in ...*tt) *tt { return tensor.Where(tensor.Gt(in[0], in[1]), in[0], in[1]) },
		"Float64": func(in ...*tt) *tt { return in[0].To(tensor.Float64) },
		"Int32":   func(in ...*tt) *tt { return in[0].To(tensor.Int32) },
		"Float16": func(in ...*tt) *tt { return in[0].To(tensor.Float16) },
		"Bool":    func(in ...*tt) *tt { return in[0].To(tensor.Bool) },
	}
	for _, o := range device.Ops() {
		all[o.Name] = devicetest.Apply(o)
	}
	return all
}

// equal reports whether two tensors have equal elements, NaN too.
func equal(a, b *tt) bool {
	of := func(t *tt) []float64 { return tensor.Data[float64](t.To(tensor.Float64).Contiguous()) }
	return slices.Equal(a.Shape(), b.Shape()) && a.DType() == b.DType() &&
		slices.EqualFunc(of(a), of(b), func(x, y float64) bool { return x == y || x != x && y != y })
}

// Of operands whose dimensions are in another order in memory, an operation makes the same elements
// in that order, on the host and on a device, and all that takes a tensor takes the result.
func TestResult_HasTheOrderOfItsOperands(t *testing.T) {
	local(t)
	dev := devicetest.New("test:0")
	for name, f := range elementwise() {
		t.Run(name, func(t *testing.T) {
			for _, c := range [][2][]int{{{3, 5}, {1, 0}}, {{70, 17}, {1, 0}}, {{80, 90}, {1, 0}}, {{1, 4}, {1, 0}},
				{{2, 3, 5}, {2, 0, 1}}, {{4, 6, 70}, {0, 2, 1}}, {{2, 17, 5}, {1, 0, 2}}, {{3, 1, 2}, {2, 1, 0}}} {
				shape, order := c[0], c[1]
				g := tensor.NewGenerator(uint64(len(name)))
				var plain, turned, far ts
				for range 2 {
					x := tensor.RandN(tensor.Float32, g, shape...)
					plain, turned = append(plain, x.Permute(order...).Clone()), append(turned, x.Permute(order...))
					far = append(far, devicetest.On(t, dev, x).Permute(order...))
				}
				want, got, there := f(plain...), f(turned...), f(far...)
				if !equal(got, want) || !want.IsContiguous() {
					t.Fatalf("%v of strides %v, want %v", got, turned[0].Strides(), want)
				}
				devicetest.Same(t, there, want, 1e-6)
				for _, y := range []*tt{got, there} {
					for d, n := range y.Shape() {
						if n > 1 && y.Strides()[d] != turned[0].Strides()[d] {
							t.Fatalf("strides %v of operands of strides %v on %v", y.Strides(), turned[0].Strides(),
								y.Device())
						}
					}
				}
				taken(t, got, want)
			}
		})
	}
}

// taken checks that what takes a tensor makes the same of got, in any order, as of want, which is
// row-major.
func taken(t *testing.T, got, want *tt) {
	same := func(what string, a, b *tt) {
		t.Helper()
		if !equal(a, b) {
			t.Fatalf("%s of strides %v: %v, want %v", what, got.Strides(), a, b)
		}
	}
	near := func(what string, a, b *tt) {
		t.Helper()
		x, y := tensor.Data[float64](a.To(tensor.Float64).Contiguous()), tensor.Data[float64](b.To(tensor.Float64))
		for i := range x {
			if !(math.Abs(x[i]-y[i]) <= 1e-4*(1+math.Abs(y[i]))) && !equal(a, b) && y[i]-y[i] == 0 {
				t.Fatalf("%s of strides %v: %v, want %v", what, got.Strides(), a, b)
			}
		}
	}
	same("Contiguous", got.Contiguous(), want)
	same("a second operation", tensor.Eq(got, want), tensor.Eq(want, want))
	same("a second operation", tensor.Maximum(want, got), want)
	same("one in place", want.Clone().MulInPlace(got), want.Clone().MulInPlace(want))
	same("one in its place", tensor.Maximum(got, got).MulInPlace(want), want.Clone().MulInPlace(want))
	same("Reshape", got.Reshape(-1), want.Reshape(-1))
	same("Cat", tensor.Cat(0, got, want), tensor.Cat(0, want, want))
	same("Stack", tensor.Stack(1, got, got), tensor.Stack(1, want, want))
	same("Flip", tensor.Flip(got, 0), tensor.Flip(want, 0))
	same("Nonzero", tensor.Nonzero(got), tensor.Nonzero(want))
	same("MaskedSelect", tensor.MaskedSelect(got, got.To(tensor.Bool)), tensor.MaskedSelect(want, want.To(tensor.Bool)))
	same("Sort", tensor.Argsort(got, 0, false), tensor.Argsort(want, 0, false))
	same("All", tensor.All(got), tensor.All(want))
	same("Amax", tensor.Amax(got), tensor.Amax(want))
	if want.DType() != tensor.Bool {
		same("Argmax", tensor.Argmax(got, 1), tensor.Argmax(want, 1))
	}
	for d := range got.Dims() {
		near("Sum along a dimension", tensor.Sum(got, d), tensor.Sum(want, d))
		near("Sum along two", tensor.Sum(got, 0, 1), tensor.Sum(want, 0, 1))
		same("Select", got.Select(d, 0), want.Select(d, 0))
	}
	near("Sum", tensor.Sum(got), tensor.Sum(want))
	if dt := want.DType(); dt != tensor.Bool {
		other := tensor.Ones(dt, want.Dim(-1), 3)
		near("MatMul", tensor.MatMul(got, other), tensor.MatMul(want, other))
		near("MatMul", tensor.MatMul(other.T(), got.Transpose(-2, -1)),
			tensor.MatMul(other.T(), want.Transpose(-2, -1)))
	}
	flat := func(x *tt) (v *tt) {
		defer func() { recover() }()
		return x.View(-1)
	}
	if v := flat(got); v == nil == got.IsContiguous() {
		t.Fatalf("View of strides %v: %v", got.Strides(), v)
	}
	shared := tensor.Maximum(got, got)
	if err := shared.Share(); err != nil {
		t.Fatal(err)
	}
	same("Share", shared.Clone(), want)
	if err := shared.Close(); err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(got.ToNested()), fmt.Sprint(want.ToNested()); a != b {
		t.Fatalf("ToNested of strides %v: %s, want %s", got.Strides(), a, b)
	}
}
