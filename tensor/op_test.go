package tensor_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

var allDTypes = []tensor.DType{
	tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Complex64, tensor.Complex128,
}

func TestPromote_IsThatOfPyTorch(t *testing.T) {
	b, err := os.ReadFile("testdata/promote.txt") // a dtype, and what it becomes with each dtype, of PyTorch 2.9.1
	testutil.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		x, err := tensor.ParseDType(f[0])
		testutil.NoError(t, err)
		for i, want := range f[1:] {
			if got := tensor.Promote(x, allDTypes[i]); got.String() != want {
				t.Errorf("%v with %v: %v, want %s", x, allDTypes[i], got, want)
			}
		}
	}
}

func TestPromote_IsNotWidenedByAScalar(t *testing.T) {
	row := tensor.Ones(tensor.Float32, 2)
	for _, c := range []struct {
		a, b *tensor.Tensor
		want tensor.DType
	}{
		{row, tensor.Scalar(tensor.Float64, 1), tensor.Float32},
		{tensor.Scalar(tensor.Int64, 1), tensor.Ones(tensor.Int8, 2), tensor.Int8},
		{tensor.Ones(tensor.Int8, 2), tensor.Scalar(tensor.Float64, 1), tensor.Float64},
		{tensor.Scalar(tensor.Float64, 1), tensor.Scalar(tensor.Float32, 1), tensor.Float64},
	} {
		if got := tensor.Add(c.a, c.b).DType(); got != c.want {
			t.Errorf("%v with %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// A shuffler makes tensors of small whole numbers in all sorts of layouts.
type shuffler struct{ *rand.Rand }

func (r shuffler) tensor(dt tensor.DType, shape ...int) *tensor.Tensor {
	order := r.Perm(len(shape))
	stored, back := make([]int, len(shape)), make([]int, len(shape))
	for i, d := range order {
		stored[i], back[d] = shape[d]+r.IntN(2), i
	}
	n := 1
	for _, d := range stored {
		n *= d
	}
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(r.IntN(9) + 1)
		if dt.String()[0] != 'u' && r.IntN(2) == 0 {
			values[i] *= -1
		}
	}
	x := tensor.FromSlice(values, stored...).To(dt).Permute(back...)
	for d, size := range shape {
		x = x.Narrow(d, x.Dim(d)-size, size)
	}
	return x
}

// shape returns up to four dimensions.
func (r shuffler) shape() []int {
	s := make([]int, r.IntN(5))
	for i := range s {
		s[i] = 1 + r.IntN(5)
	}
	if r.IntN(8) == 0 {
		return []int{520, 2} // longer than a chunk
	}
	return s
}

// partner returns a shape that broadcasts with s to s.
func (r shuffler) partner(s []int) []int {
	p := slices.Clone(s[r.IntN(len(s)+1):])
	for i := range p {
		if r.IntN(3) == 0 {
			p[i] = 1
		}
	}
	return p
}

// number reads an element as a complex number, at an index of a shape to which x is broadcast.
func number(x *tensor.Tensor, idx []int) complex128 {
	for len(idx) > x.Dims() {
		idx = idx[1:]
	}
	own := slices.Clone(idx)
	for d := range own {
		own[d] = min(own[d], x.Dim(d)-1)
	}
	for _, i := range own {
		x = x.Select(0, i)
	}
	return tensor.At[complex128](x.To(tensor.Complex128))
}

// indices calls f for each index of a shape.
func indices(shape []int, f func(idx []int)) {
	idx := make([]int, len(shape))
	for {
		f(idx)
		d := len(shape) - 1
		for ; d >= 0; d-- {
			if idx[d]++; idx[d] < shape[d] {
				break
			}
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func near(a, b complex128, tolerance float64) bool {
	return a == b || cmplx.Abs(a-b) <= tolerance*max(1, cmplx.Abs(b)) || cmplx.IsNaN(a) && cmplx.IsNaN(b)
}

// binaries are what the two-operand functions do to numbers small enough for every dtype.
var binaries = map[string]struct {
	f       func(a, b *tensor.Tensor) *tensor.Tensor
	want    func(a, b complex128) complex128
	inPlace func(t, o *tensor.Tensor) *tensor.Tensor
	minimum tensor.DType // the dtypes from here on are tested
	complex bool
}{
	"Add": {tensor.Add, func(a, b complex128) complex128 { return a + b }, (*tensor.Tensor).AddInPlace,
		tensor.Int8, true},
	"Sub": {tensor.Sub, func(a, b complex128) complex128 { return a - b }, (*tensor.Tensor).SubInPlace,
		tensor.Int8, true},
	"Mul": {tensor.Mul, func(a, b complex128) complex128 { return a * b }, (*tensor.Tensor).MulInPlace,
		tensor.Int8, true},
	"Div": {tensor.Div, func(a, b complex128) complex128 { return a / b }, nil, tensor.Uint8, true},
	"Maximum": {tensor.Maximum, func(a, b complex128) complex128 { return complex(max(real(a), real(b)), 0) },
		nil, tensor.Bool, false},
	"Minimum": {tensor.Minimum, func(a, b complex128) complex128 { return complex(min(real(a), real(b)), 0) },
		nil, tensor.Bool, false},
	"Eq": {tensor.Eq, func(a, b complex128) complex128 { return truth(a == b) }, nil, tensor.Bool, true},
	"Ne": {tensor.Ne, func(a, b complex128) complex128 { return truth(a != b) }, nil, tensor.Bool, true},
	"Lt": {tensor.Lt, func(a, b complex128) complex128 { return truth(real(a) < real(b)) }, nil,
		tensor.Bool, false},
	"Le": {tensor.Le, func(a, b complex128) complex128 { return truth(real(a) <= real(b)) }, nil,
		tensor.Bool, false},
	"Gt": {tensor.Gt, func(a, b complex128) complex128 { return truth(real(a) > real(b)) }, nil,
		tensor.Bool, false},
	"Ge": {tensor.Ge, func(a, b complex128) complex128 { return truth(real(a) >= real(b)) }, nil,
		tensor.Bool, false},
}

func truth(b bool) complex128 {
	if b {
		return 1
	}
	return 0
}

func TestOp_DoesElementByElementWhatItSays(t *testing.T) {
	r := shuffler{rand.New(rand.NewPCG(1, 2))}
	for name, op := range binaries {
		for range 60 {
			last := tensor.Float64
			if op.complex {
				last = tensor.Complex128
			}
			pick := func() tensor.DType { return op.minimum + tensor.DType(r.IntN(int(last-op.minimum)+1)) }
			shape := r.shape()
			da, db := pick(), pick()
			if da == tensor.Uint8 || db == tensor.Uint8 {
				da, db = tensor.Uint8, tensor.Uint8 // negative numbers would wrap around
			}
			a, b := r.tensor(da, shape...), r.tensor(db, r.partner(shape)...)
			if op.inPlace != nil && a.DType() == tensor.Promote(a.DType(), b.DType()) {
				compare(t, name+" in place", op.inPlace(a.Clone(), b), a, b, op.want)
			}
			if r.IntN(2) == 0 {
				a, b = b, a
			}
			compare(t, name, op.f(a, b), a, b, op.want)
		}
	}
}

func compare(t *testing.T, name string, got, a, b *tensor.Tensor, want func(a, b complex128) complex128) {
	t.Helper()
	tolerance := map[tensor.DType]float64{tensor.BFloat16: 1e-2, tensor.Float16: 1e-3}[got.DType()] + 1e-6
	bad := false
	indices(got.Shape(), func(idx []int) {
		g, w := number(got, idx), want(number(a, idx), number(b, idx))
		if !bad && !near(g, w, tolerance) {
			t.Errorf("%s of %v %v and %v %v at %v: %v, want %v", name, a.DType(), a.Shape(), b.DType(),
				b.Shape(), idx, g, w)
			bad = true
		}
	})
}

func TestSum_IsThatOfTheElements(t *testing.T) {
	r := shuffler{rand.New(rand.NewPCG(3, 4))}
	for range 150 {
		dt := allDTypes[r.IntN(len(allDTypes))]
		a := r.tensor(dt, r.shape()...)
		var dims []int
		for d := range a.Dims() {
			if r.IntN(2) == 0 {
				dims = append(dims, d)
			}
		}
		want := map[string]complex128{}
		key := func(idx []int) string {
			k := slices.Clone(idx)
			for d := range k {
				if len(dims) == 0 || slices.Contains(dims, d) {
					k[d] = 0
				}
			}
			return fmt.Sprint(k)
		}
		indices(a.Shape(), func(idx []int) { want[key(idx)] += number(a, idx) })
		got := tensor.Keep(tensor.Sum, a, dims...)
		indices(got.Shape(), func(idx []int) {
			if g, w := number(got, idx), want[key(idx)]; !near(g, w, 1e-2) {
				t.Errorf("sum of %v %v over %v at %v: %v, want %v", dt, a.Shape(), dims, idx, g, w)
			}
		})
		if !slices.Equal(flat(tensor.Sum(a, dims...)), flat(got)) {
			t.Errorf("sum of %v over %v differs without kept dimensions", a.Shape(), dims)
		}
	}
}

func TestSum_OfWideRowsIsThatOfTheirColumns(t *testing.T) {
	r := shuffler{rand.New(rand.NewPCG(7, 8))}
	for name, f := range map[string]func(t *tensor.Tensor, dims ...int) *tensor.Tensor{
		"Sum": tensor.Sum, "Prod": tensor.Prod, "Amax": tensor.Amax, "Amin": tensor.Amin} {
		for _, dt := range []tensor.DType{tensor.Bool, tensor.Int8, tensor.Int64, tensor.Float16,
			tensor.Float32, tensor.Float64} {
			x := r.tensor(dt, 3, 2, 70).Contiguous()
			for _, dims := range [][]int{{0}, {1}, {0, 1}, {0, 2}, {1, 2}} {
				got := f(x, dims...)
				indices(got.Shape(), func(idx []int) {
					at := slices.Clone(idx)
					column := x
					for d := range x.Dims() {
						if slices.Contains(dims, d) {
							continue
						}
						column = column.Narrow(d, at[0], 1)
						at = at[1:]
					}
					if want := f(column.Clone()); !near(number(got, idx), number(want, nil), 1e-6) {
						t.Fatalf("%s of %v over %v at %v: %v, want %v", name, dt, dims, idx, number(got, idx), want)
					}
				})
			}
		}
	}
}

func TestMatMul_OfAllLayouts(t *testing.T) {
	r := shuffler{rand.New(rand.NewPCG(5, 6))}
	for _, c := range []struct{ a, b, want []int }{
		{[]int{3}, []int{3}, []int{}}, {[]int{2, 3}, []int{3}, []int{2}}, {[]int{3}, []int{3, 4}, []int{4}},
		{[]int{2, 3}, []int{3, 4}, []int{2, 4}},
		{[]int{5, 2, 3}, []int{3, 4}, []int{5, 2, 4}}, {[]int{2, 3}, []int{5, 3, 4}, []int{5, 2, 4}},
		{[]int{2, 1, 2, 3}, []int{4, 3, 2}, []int{2, 4, 2, 2}},
		{[]int{3}, []int{2, 3, 4}, []int{2, 4}}, {[]int{2, 2, 3}, []int{3}, []int{2, 2}},
		{[]int{1, 1}, []int{1, 1}, []int{1, 1}}, {[]int{17, 33}, []int{33, 9}, []int{17, 9}},
	} {
		for _, dt := range allDTypes[2:] {
			a, b := r.tensor(dt, c.a...), r.tensor(dt, c.b...)
			if dt == tensor.Int8 {
				a, b = tensor.Sign(a), tensor.Sign(b)
			}
			got := tensor.MatMul(a, b)
			if !slices.Equal(got.Shape(), c.want) || got.DType() != dt {
				t.Fatalf("%v by %v: %v %v", c.a, c.b, got.DType(), got.Shape())
			}
			x, y, z := a, b, got
			if len(c.a) == 1 {
				x, z = x.Unsqueeze(0), z.Unsqueeze(-1-min(1, len(c.b)-1))
			}
			if len(c.b) == 1 {
				y, z = y.Unsqueeze(1), z.Unsqueeze(-1)
			}
			indices(z.Shape(), func(idx []int) {
				n := len(idx)
				var sum complex128
				for k := range x.Dim(-1) {
					sum += number(x, append(slices.Clone(idx[:n-1]), k)) * number(y,
						append(slices.Clone(idx[:n-2]), k, idx[n-1]))
				}
				if g := number(z, idx); !near(g, sum, 1e-2) {
					t.Errorf("%v %v by %v at %v: %v, want %v", dt, c.a, c.b, idx, g, sum)
				}
			})
		}
	}
	if s := tensor.MatMul(tensor.New(tensor.Float32, 2, 0),
		tensor.New(tensor.Float32, 0, 3)); !tensor.Equal(s, tensor.New(tensor.Float32, 2, 3)) {
		t.Errorf("a product over nothing: %v", s)
	}
}

func TestOp_HasItsValues(t *testing.T) {
	x := floats(-2, 0, 0.5, 3)
	pi := tensor.FromSlice([]int64{3, -1, 4, 1, -5, 9}, 2, 3)
	c := tensor.FromSlice([]complex64{3 + 4i, -1i}, 2)
	for _, v := range []struct {
		name string
		got  *tensor.Tensor
		want string
	}{
		{"neg", tensor.Neg(x), "[2 -0 -0.5 -3]"},
		{"abs", tensor.Abs(x), "[2 0 0.5 3]"},
		{"abs of complex", tensor.Abs(c), "[5 1]"},
		{"sqrt", tensor.Sqrt(tensor.Abs(floats(4, -9))), "[2 3]"},
		{"exp", tensor.Exp(tensor.New(tensor.Int64, 2)), "[1 1]"},
		{"log", tensor.Log(floats(1, 0, -1)), "[0 -Inf NaN]"},
		{"tanh", tensor.Tanh(floats(0, inf, -inf)), "[0 1 -1]"},
		{"sigmoid", tensor.Sigmoid(floats(0, inf, -inf)), "[0.5 1 0]"},
		{"relu", tensor.ReLU(x), "[0 0 0.5 3]"},
		{"sign", tensor.Sign(x), "[-1 0 1 1]"},
		{"pow", tensor.Pow(pi, 2), "[[9 1 16] [1 25 81]]"},
		{"pow of floats", tensor.Pow(x, 2), "[4 0 0.25 9]"},
		{"pow of complex", tensor.Lt(tensor.Abs(tensor.Sub(tensor.Pow(c, 2), tensor.Mul(c, c))),
			floats(1e-4)), "[true true]"},
		{"maximum with NaN", tensor.Maximum(floats(nan, 1), floats(1, nan)), "[NaN NaN]"},
		{"where", tensor.Where(tensor.Gt(pi, tensor.Scalar(tensor.Int64, 0)), pi,
			tensor.Scalar(tensor.Int64, 0)), "[[3 0 4] [1 0 9]]"},
		{"clamp", x.Clone().ClampInPlace(-1, 1), "[-1 0 0.5 1]"},
		{"clamp bytes", tensor.FromSlice([]uint8{0, 9, 200}, 3).ClampInPlace(-5, 100), "[0 9 100]"},
		{"axpy", floats(1, 2).AxpyInPlace(0.5, floats(4, 8)), "[3 6]"},
		{"axpy broadcast", tensor.New(tensor.Int32, 2, 2).AxpyInPlace(3, tensor.FromSlice([]int32{1, 2}, 2)),
			"[[3 6] [3 6]]"},
		{"bool addition", tensor.Add(tensor.Eye(tensor.Bool, 2), tensor.Eye(tensor.Bool, 2)),
			"[[true false] [false true]]"},
		{"int8 wraps", tensor.FromSlice([]int8{127}, 1).AddScalarInPlace(1), "[-128]"},
		{"sum of bytes", tensor.Sum(tensor.Full(tensor.Uint8, 200, 3)), "600"},
		{"mean", tensor.Mean(floats(1, 2, 6).View(1, 3), 1), "[3]"},
		{"mean of halves", tensor.Keep(tensor.Mean, tensor.Full(tensor.Float16, 40000, 4)), "[40000]"},
		{"var", tensor.Var(floats(1, 2, 3, 4).View(2, 2), 1), "[0.5 0.5]"},
		{"argmax", tensor.Argmax(pi, 1), "[2 2]"},
		{"argmin with NaN", tensor.Argmin(floats(1, nan, -1), 0), "1"},
		{"all", tensor.All(tensor.Ne(x, tensor.Scalar(tensor.Float32, 0)), 0), "false"},
		{"any", tensor.Any(pi, 0), "[true true true]"},
		{"any of nothing", tensor.Any(tensor.New(tensor.Bool, 0)), "false"},
		{"cat", tensor.Cat(1, pi, pi.Narrow(1, 0, 1)), "[[3 -1 4 3] [1 -5 9 1]]"},
		{"stack", tensor.Stack(-1, floats(1, 2), floats(3, 4)), "[[1 3] [2 4]]"},
		{"gather", tensor.Gather(pi, 1, tensor.FromSlice([]int64{2, 0, 0, 1}, 2, 2)), "[[4 3] [1 -5]]"},
		{"index select", tensor.IndexSelect(pi, 1, tensor.FromSlice([]int64{2, 2, 0}, 3)), "[[4 4 3] [9 9 1]]"},
		{"flip", tensor.Flip(pi, -1), "[[4 -1 3] [9 -5 1]]"},
		{"flip of both", tensor.Flip(pi.T(), 0, 1), "[[9 4] [-5 -1] [1 3]]"},
		{"flip of none", tensor.Flip(tensor.New(tensor.Int8, 0), 0), "[]"},
		{"flip of no dimension", tensor.Flip(pi), "[[3 -1 4] [1 -5 9]]"},
		{"arange", tensor.Arange(tensor.Float64, 1, 2, 0.25), "[1 1.25 1.5 1.75]"},
		{"eye", tensor.Eye(tensor.Int8, 2), "[[1 0] [0 1]]"},
		{"float to int", floats(-1.7, 1.7).To(tensor.Int32), "[-1 1]"},
		{"complex to real", c.To(tensor.Float32), "[3 0]"},
		{"nan is true", floats(nan, 0).To(tensor.Bool), "[true false]"},
		{"large int64", tensor.FromSlice([]int64{1<<62 + 1}, 1).AddInPlace(tensor.Ones(tensor.Int64, 1)),
			"[4611686018427387906]"},
	} {
		if got := fmt.Sprint(v.got.ToNested()); got != v.want {
			t.Errorf("%s: %s, want %s", v.name, got, v.want)
		}
	}
	panics(t, func() { tensor.Flip(pi, 1, -1) })
	panics(t, func() { tensor.Flip(pi, 2) })
	values, at := tensor.Max(pi, 0)
	if fmt.Sprint(values.ToNested(), at.ToNested()) != "[3 -1 9] [0 0 1]" {
		t.Errorf("max: %v at %v", values, at)
	}
	values, at = tensor.Min(pi, -1)
	if fmt.Sprint(values.ToNested(), at.ToNested()) != "[-1 -5] [1 1]" {
		t.Errorf("min: %v at %v", values, at)
	}
}

func TestOp_IntoAnOverlappingViewSeesOldElements(t *testing.T) {
	a := count(tensor.Int64, 2000)
	a.Narrow(0, 1, 1999).AddInPlace(a.Narrow(0, 0, 1999))
	for i, v := range tensor.Data[int64](a) {
		if want := int64(max(0, 2*i-1)); v != want {
			t.Fatalf("element %d is %d, want %d", i, v, want)
		}
	}
	b := count(tensor.Int64, 3, 3)
	b.CopyFrom(b.T())
	if !tensor.Equal(b, count(tensor.Int64, 3, 3).T()) {
		t.Errorf("transposed in place: %v", b)
	}
}

func TestAllClose_IsThatOfPyTorch(t *testing.T) {
	for _, c := range []struct {
		a, b float32
		want bool
	}{{1, 1 + 1e-6, true}, {1, 1.1, false}, {inf, inf, true}, {inf, -inf, false}, {inf, 1, false},
		{1, inf, false}, {nan, nan, false}, {0, 1e-9, true}} {
		if got := tensor.AllClose(floats(c.a), floats(c.b), 1e-5, 1e-8); got != c.want {
			t.Errorf("%v and %v: %v", c.a, c.b, got)
		}
	}
}

func TestMakeF16_RoundsToTheNearest(t *testing.T) {
	for bits := range 1 << 16 {
		h, b := tensor.F16(bits), tensor.BF16(bits)
		if v := h.Float32(); v == v && tensor.MakeF16(v) != h {
			t.Fatalf("float16 %04x is %v and becomes %04x", bits, v, tensor.MakeF16(v))
		}
		if v := b.Float32(); v == v && tensor.MakeBF16(v) != b {
			t.Fatalf("bfloat16 %04x is %v and becomes %04x", bits, v, tensor.MakeBF16(v))
		}
		if next := tensor.F16(bits + 1); bits&0x7fff < 0x7bff { // halfway to the next one goes to the even one
			mid := (h.Float32() + next.Float32()) / 2
			if got := tensor.MakeF16(mid); got != h+h&1 {
				t.Fatalf("%v between %04x and %04x becomes %04x", mid, bits, next, got)
			}
		}
	}
	for v, want := range map[float32]float64{65519: 65504, 65520: math.Inf(1), 1e-8: 0,
		5.9604645e-8: 5.9604645e-8, 6.1e-5: 6.1e-5} {
		if got := float64(tensor.MakeF16(v).Float32()); math.Abs(got-want) > 1e-7 {
			t.Errorf("%v becomes %v", v, got)
		}
	}
}

func TestPow_OfThreeIsTheProductInPlaceToo(t *testing.T) {
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64} {
		x := tensor.RandN(dt, tensor.NewGenerator(1), 1000)
		x.Narrow(0, 0, 1).Fill(math.Inf(-1))
		want := tensor.Mul(tensor.Mul(x, x), x)
		for name, got := range map[string]*tensor.Tensor{"Pow": tensor.Pow(x, 3), "in place": x.Clone().PowInPlace(3)} {
			if !tensor.Equal(got, want) {
				t.Errorf("%s of %v is not x·x·x", name, dt)
			}
		}
	}
}

// TestAddMM_IsTheSumWithTheProduct: for every dtype and layout, also of no inner elements, of one
// column, and where a factor is the sum itself.
func TestAddMM_IsTheSumWithTheProduct(t *testing.T) {
	g := tensor.NewGenerator(4)
	numbers := func(dt tensor.DType, shape ...int) *tensor.Tensor {
		return tensor.RandInt(g, -4, 5, shape...).To(dt)
	}
	for _, dt := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.BFloat16, tensor.Int64, tensor.Complex64} {
		for _, shape := range [][3]int{{5, 7, 3}, {1, 9, 1}, {6, 4, 1}, {3, 0, 2}, {0, 2, 2}, {4, 4, 4}} {
			m, k, n := shape[0], shape[1], shape[2]
			sum := numbers(dt, m, n)
			for name, factors := range map[string][2]*tensor.Tensor{
				"contiguous":    {numbers(dt, m, k), numbers(dt, k, n)},
				"transposed":    {numbers(dt, k, m).T(), numbers(dt, n, k).T()},
				"every other":   {numbers(dt, m, 2*k).Slice(1, 0, 2*k, 2), numbers(dt, k, n)},
				"another dtype": {numbers(tensor.Int8, m, k), numbers(dt, k, n)},
			} {
				want := tensor.Add(sum, tensor.MatMul(factors[0], factors[1]))
				got := sum.Clone()
				version := got.Version()
				if got.AddMMInPlace(factors[0], factors[1]); !tensor.Equal(got, want) {
					t.Errorf("%v of %v, %s: %v, not %v", dt, shape, name, got, want)
				}
				if got.Numel() > 0 && got.Version() == version {
					t.Errorf("%v of %v, %s: the version is that of before", dt, shape, name)
				}
				turned := sum.Clone().T() // is not contiguous
				if turned.AddMMInPlace(factors[1].T(), factors[0].T()); !tensor.Equal(turned, want.T()) {
					t.Errorf("%v of %v, %s, transposed: %v, not %v", dt, shape, name, turned, want.T())
				}
			}
			if m == n && n == k {
				want := tensor.Add(sum, tensor.MatMul(sum, sum))
				if got := sum.Clone(); !tensor.Equal(got.AddMMInPlace(got, got), want) {
					t.Errorf("%v of itself: %v, not %v", dt, got, want)
				}
			}
		}
	}
}
