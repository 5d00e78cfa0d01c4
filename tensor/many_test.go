package tensor_test

import (
	"bytes"
	"math"
	"testing"

	. "github.com/shoal-mp/shoal/tensor"
)

// awkward has more elements than are converted at a time, and not a multiple of what a register
// has: zeros of both signs, the least and the greatest numbers, infinities and NaN among them.
func awkward(dt DType) *Tensor {
	const n = 2*512 + 77
	numbers := RandN(Float64, NewGenerator(3), n).MulScalarInPlace(40)
	for i, v := range []float64{0, math.Copysign(0, -1), 1, -1, 127, -128, 255, -32768, -1 << 31, 1<<31 - 1, 3, 6, 9} {
		for at := i * 5; at < n; at += 97 {
			SetAt(numbers, v, at)
		}
	}
	switch dt {
	case Float16, BFloat16, Float32, Float64, Complex64, Complex128:
		for at, v := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e-7, -65504, 1e-42} {
			SetAt(numbers, v, 600+7*at)
		}
	}
	return numbers.To(dt)
}

// TestOperations_OfManyAreThoseOfEach: what kernels do with a row, also with elements that are
// apart, is what is done with each element by itself.
func TestOperations_OfManyAreThoseOfEach(t *testing.T) {
	computed := []DType{Bool, Uint8, Int8, Int16, Int32, Int64, Float16, BFloat16, Float32, Float64, Complex64,
		Complex128}
	ops := map[string]func(x, y *Tensor) *Tensor{
		"Neg":   func(x, _ *Tensor) *Tensor { return Neg(x) },
		"Abs":   func(x, _ *Tensor) *Tensor { return Abs(x) },
		"ReLU":  func(x, _ *Tensor) *Tensor { return ReLU(x) },
		"Not":   func(x, _ *Tensor) *Tensor { return Not(x) },
		"And":   And,
		"Or":    Or,
		"Xor":   Xor,
		"Clamp": func(x, _ *Tensor) *Tensor { return Clamp(x, 2, 5) },
		"in place": func(x, _ *Tensor) *Tensor {
			own := x.Clone()
			return own.NegInPlace().AbsInPlace().NegInPlace().ReLUInPlace()
		},
		"into elements apart": func(x, y *Tensor) *Tensor {
			wide := New(x.DType(), 2*x.Numel())
			return wide.Slice(0, 0, 2*x.Numel(), 2).CopyFrom(y.To(Float32)).Contiguous()
		},
	}
	for _, dt := range computed {
		ops["To "+dt.String()] = func(x, _ *Tensor) *Tensor { return x.To(dt) }
	}
	for _, dt := range computed {
		x := awkward(dt)
		y := Flip(x, 0)
		n := x.Numel()
		apart := func(x *Tensor) *Tensor { return Stack(1, x, x, x).View(-1).Slice(0, 1, 3*n, 3) }
		for name, f := range ops {
			if !defined(func() { f(x, y) }) {
				continue
			}
			whole, strided := f(x, y), f(apart(x), apart(y)).Contiguous()
			if !bytes.Equal(Bytes(whole), Bytes(strided)) {
				t.Errorf("%s of %v: elements that are apart have other results", name, dt)
			}
			size := whole.DType().Size()
			for i := range n {
				one := f(x.Narrow(0, i, 1), y.Narrow(0, i, 1))
				got := Bytes(whole)[i*size:][:size]
				if bytes.Equal(got, Bytes(one)) || isNaN(one) {
					continue
				}
				if name == "Neg" || !Equal(one, whole.Narrow(0, i, 1)) { // ReLU of -0 is a zero of either sign
					t.Errorf("%s of %v: element %d of %v and %v is % x, not % x", name, dt, i,
						x.Narrow(0, i, 1), y.Narrow(0, i, 1), got, Bytes(one))
					break
				}
			}
		}
	}
}

// defined reports whether an operation is defined for its dtype.
func defined(f func()) (ok bool) {
	defer func() { ok = recover() == nil }()
	f()
	return
}

func isNaN(t *Tensor) bool { return !Equal(t, t) }

// TestEqual_LooksAtEveryElement changes one element after the other of tensors in several pieces.
func TestEqual_LooksAtEveryElement(t *testing.T) {
	for _, shape := range [][]int{{1, 50_000}, {50_000, 1}, {70, 3, 200}, {3, 20_000}} {
		for _, turned := range []bool{false, true} {
			x := RandN(Float32, NewGenerator(1), shape...)
			y := x.Clone()
			a, b := x, y
			if turned {
				a, b = x.Transpose(0, -1), y.Transpose(0, -1)
			}
			if !Equal(a, b) {
				t.Errorf("%v is not its clone", shape)
			}
			all := y.View(-1)
			for at := 0; at < all.Numel(); at += 997 {
				old := At[float32](all, at)
				SetAt(all, old+1, at)
				if Equal(a, b) {
					t.Fatalf("%v, transposed %v: a change of element %d is not seen", shape, turned, at)
				}
				SetAt(all, old, at)
			}
		}
	}
}

// TestMatMul_OfComplexNumbers compares large products, which are made of real ones, with sums of
// products, for all layouts.
func TestMatMul_OfComplexNumbers(t *testing.T) {
	for _, dt := range []DType{Complex64, Complex128} {
		g := NewGenerator(5)
		numbers := func(shape ...int) *Tensor { // whole, so that sums are exact
			re, im := RandInt(g, -9, 10, shape...).To(dt), RandInt(g, -9, 10, shape...).To(dt)
			return Add(re, Mul(im, Full(dt, 1, shape...).MulInPlace(imaginary(dt))))
		}
		const m, k, n = 19, 40, 23
		for name, factors := range map[string][2]*Tensor{
			"contiguous": {numbers(m, k), numbers(k, n)},
			"transposed": {numbers(k, m).T(), numbers(n, k).T()},
			"apart":      {numbers(m, 2*k).Slice(1, 0, 2*k, 2), numbers(k, n)},
			"a column":   {numbers(m*n, k), numbers(k, 1)},
		} {
			a, b := factors[0], factors[1]
			got := MatMul(a, b)
			want := Sum(Mul(a.Unsqueeze(2), b.Unsqueeze(0)), 1)
			if !Equal(got, want) {
				t.Errorf("%v, %s: %v, not %v", dt, name, got, want)
			}
		}
	}
}

// imaginary returns the number i.
func imaginary(dt DType) *Tensor {
	if dt == Complex64 {
		return FromSlice([]complex64{1i}, 1)
	}
	return FromSlice([]complex128{1i}, 1)
}

// TestIndexAdd_OfHalves: many at a time, and one after the other where a place comes twice.
func TestIndexAdd_OfHalves(t *testing.T) {
	g := NewGenerator(6)
	for _, dt := range []DType{Float16, BFloat16} {
		x, src := RandN(Float32, g, 7, 700).To(dt), RandN(Float32, g, 3, 700).To(dt)
		idx := FromSlice([]int64{2, 5, 2}, 3)
		want := x.Clone()
		for i, row := range []int{2, 5, 2} {
			want.Select(0, row).AddInPlace(src.Select(0, i))
		}
		if got := x.Clone().IndexAddInPlace(0, idx, src); !Equal(got, want) {
			t.Errorf("%v: rows have other sums", dt)
		}
		turned := x.T().Contiguous()
		if got := turned.IndexAddInPlace(1, idx, src.T().Contiguous()); !Equal(got, want.T()) {
			t.Errorf("%v: columns have other sums", dt)
		}
	}
}

// TestFloorDivide_OfWholeNumbers compares quotients and remainders with those of Go's integers.
func TestFloorDivide_OfWholeNumbers(t *testing.T) {
	for _, dt := range []DType{Uint8, Int8, Int16, Int32, Int64} {
		edges := map[DType][]int64{Uint8: {0, 1, 2, 254, 255}, Int8: {-128, -127, 127}, Int16: {-1 << 15, 1<<15 - 1},
			Int32: {-1 << 31, -1<<31 + 1, 1<<31 - 1}, Int64: {math.MinInt64, math.MinInt64 + 1, math.MaxInt64,
				1<<53 + 1, 1 << 53, 1<<53 - 1, -1<<53 - 1, -1 << 53, 1<<62 + 3}}[dt]
		if dt != Uint8 {
			edges = append(edges, 0, 1, -1, 2, -2, 3, -3, 7, -7, 100, -100)
		}
		var xs, ys []int64
		for _, x := range edges {
			for _, y := range edges {
				if y != 0 {
					xs, ys = append(xs, x), append(ys, y)
				}
			}
		}
		x, y := FromSlice(xs, len(xs)).To(dt), FromSlice(ys, len(ys)).To(dt)
		quotients, rests := FloorDivide(x, y).To(Int64), Remainder(x, y).To(Int64)
		for i, a := range xs {
			b := ys[i]
			q, rest := a/b, a%b
			if rest != 0 && (rest < 0) != (b < 0) {
				q, rest = q-1, rest+b
			}
			if want := FromSlice([]int64{q}, 1).To(dt).To(Int64); At[int64](quotients, i) != At[int64](want, 0) ||
				At[int64](rests, i) != rest {
				t.Errorf("%v: %d by %d is %d and %d, not %d and %d", dt, a, b, At[int64](quotients, i),
					At[int64](rests, i), q, rest)
			}
		}
	}
}

// TestFunctionsOfTwoNumbers_InDoublePrecision: those that kernels make are next to those of package
// math.
func TestFunctionsOfTwoNumbers_InDoublePrecision(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	values := []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, nan, 5e-324, 1e-310, -1e308, 1e308, 0.5, -3, 700,
		-745}
	normal := Data[float64](RandN(Float64, NewGenerator(9), 40))
	for i, v := range normal {
		values = append(values, v*math.Exp(float64(i%11)-5))
	}
	var xs, ys []float64
	for _, x := range values {
		for _, y := range values {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	x, y := FromSlice(xs, len(xs)), FromSlice(ys, len(ys))
	for name, f := range map[string]struct {
		of   func(a, b *Tensor) *Tensor
		want func(x, y float64) float64
	}{
		"Atan2": {Atan2, math.Atan2},
		"Logaddexp": {Logaddexp, func(x, y float64) float64 {
			if x == y {
				return x + math.Ln2
			}
			return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
		}},
	} {
		for i, got := range Data[float64](f.of(x, y)) {
			want := f.want(xs[i], ys[i])
			near := math.Abs(got-want) <= 4*0x1p-52*math.Abs(want)+0x1p-1070 ||
				math.Abs(got-want) < 1e-15 && name == "Logaddexp"
			if math.Float64bits(got) != math.Float64bits(want) && !near && !(got != got && want != want) {
				t.Errorf("%s(%v, %v) is %v, not %v", name, xs[i], ys[i], got, want)
			}
		}
	}
}

// TestReductions_OfAnyLayoutAreThoseOfACopy: rows in one piece that do not follow each other, and
// elements without a neighbour, are reduced in ways of their own.
func TestReductions_OfAnyLayoutAreThoseOfACopy(t *testing.T) {
	reductions := map[string]func(x *Tensor, dims ...int) *Tensor{"Sum": Sum, "Mean": Mean, "Prod": Prod, "Amax": Amax,
		"Amin": Amin, "All": All, "Any": Any, "Var": Var}
	for _, dt := range []DType{Float32, Float64, Float16, Int64, Int32, Uint8, Bool, Complex64} {
		d := RandInt(NewGenerator(8), 0, 3, 12, 20, 140).To(dt) // whole numbers, so that sums are exact
		for layout, x := range map[string]*Tensor{
			"permuted":     d.Permute(1, 0, 2),
			"turned":       d.Permute(2, 0, 1),
			"every other":  d.Slice(2, 0, 140, 2),
			"and permuted": d.Slice(2, 0, 140, 2).Permute(1, 2, 0),
			"a part":       d.Narrow(1, 3, 9).Narrow(2, 5, 100),
			"expanded":     d.Narrow(0, 4, 1).Expand(6, 20, 140).Transpose(0, 1),
		} {
			copied := x.Clone()
			for name, f := range reductions {
				if !defined(func() { f(x) }) {
					continue
				}
				for _, dims := range [][]int{{}, {0}, {1}, {2}, {0, 1}, {1, 2}, {0, 2}} {
					got, want := f(x, dims...), f(copied, dims...)
					if !sameNumbers(got, want) && !(name == "Var" && AllClose(got, want, 1e-3, 1e-6)) {
						t.Errorf("%s of %v, %s, along %v differs from that of a copy", name, dt, layout, dims)
					}
				}
			}
		}
	}
}

// sameNumbers is Equal where NaN, which a product with an infinity may be, is itself.
func sameNumbers(a, b *Tensor) bool {
	return Equal(a, b) || At[bool](All(Or(Eq(a, b), And(Ne(a, a), Ne(b, b)))))
}
