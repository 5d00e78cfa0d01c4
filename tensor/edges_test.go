package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/devicetest"
)

func doubles(v ...float64) *tensor.Tensor { return tensor.FromSlice(v, len(v)) }
func longs(v ...int64) *tensor.Tensor     { return tensor.FromSlice(v, len(v)) }

// What PyTorch 2.15 refuses is an error of a mistake here.
func TestTensor_RefusesWhatPyTorchRefuses(t *testing.T) {
	one, many := tensor.Scalar(tensor.Float64, 7), doubles(1, 2)
	matrix := tensor.Ones(tensor.Float64, 2, 2)
	for name, c := range map[string]struct {
		want error
		f    func()
	}{
		"Normal, std -1":    {tensor.ErrArgument, func() { many.FillNormal(nil, 0, -1) }},
		"Normal, std NaN":   {tensor.ErrArgument, func() { many.FillNormal(nil, 0, math.NaN()) }},
		"Uniform, reversed": {tensor.ErrArgument, func() { many.FillUniform(nil, 2, 1) }},
		"Uniform, NaN":      {tensor.ErrArgument, func() { many.FillUniform(nil, math.NaN(), 1) }},
		"Uniform, infinite": {tensor.ErrArgument, func() { many.FillUniform(nil, 0, math.Inf(1)) }},
		"Uniform, Float32":  {tensor.ErrArgument, func() { floats(1).FillUniform(nil, 0, 1e39) }},
		"Uniform, width":    {tensor.ErrArgument, func() { floats(1).FillUniform(nil, -3e38, 3e38) }},
		"Uniform, Float16": {tensor.ErrArgument,
			func() { floats(1).To(tensor.Float16).FillUniform(nil, 0, 1e5) }},
		"RandInt, reversed": {tensor.ErrArgument, func() { tensor.RandInt(nil, 5, 4, 1) }},
		"RandInt, empty":    {tensor.ErrArgument, func() { tensor.RandInt(nil, 5, 5, 1) }},
		"Bernoulli, NaN":    {tensor.ErrArgument, func() { many.FillBernoulli(nil, math.NaN()) }},
		"Gather, -1":        {tensor.ErrIndex, func() { tensor.Gather(many, 0, longs(-1)) }},
		"Gather, many -1": {tensor.ErrIndex,
			func() { tensor.Gather(many, 0, tensor.Full(tensor.Int64, -1, 100)) }},
		"Gather, scalar":    {tensor.ErrIndex, func() { tensor.Gather(one, 0, longs(1)) }},
		"Gather, dimension": {tensor.ErrIndex, func() { tensor.Gather(one, 1, longs(0)) }},
		"Scatter, -1": {tensor.ErrIndex,
			func() { many.Clone().ScatterInPlace(0, longs(-1), doubles(5)) }},
		"ScatterAdd, -1": {tensor.ErrIndex,
			func() { many.Clone().ScatterAddInPlace(0, longs(-1), doubles(5)) }},
		"IndexSelect, -1": {tensor.ErrIndex, func() { tensor.IndexSelect(many, 0, longs(-1)) }},
		"IndexSelect, pieces": {tensor.ErrIndex,
			func() { tensor.IndexSelect(tensor.Ones(tensor.Float64, 2, 99), 0, longs(-1)) }},
		"IndexSelect, scalar": {tensor.ErrShape, func() { tensor.IndexSelect(one, 0, longs(0, 0)) }},
		"IndexCopy, -1": {tensor.ErrIndex,
			func() { many.Clone().IndexCopyInPlace(0, longs(-1), doubles(5)) }},
		"IndexAdd, -1": {tensor.ErrIndex,
			func() { many.Clone().IndexAddInPlace(0, longs(-1), doubles(5)) }},
		"Squeeze, twice":             {tensor.ErrIndex, func() { doubles(1).Squeeze(0, 0) }},
		"Squeeze, twice from behind": {tensor.ErrIndex, func() { doubles(1).Squeeze(0, -1) }},
		"Squeeze, scalar twice":      {tensor.ErrIndex, func() { one.Squeeze(0, -1) }},
		"Squeeze, scalar":            {tensor.ErrIndex, func() { one.Squeeze(1) }},
		"Sum, twice":                 {tensor.ErrIndex, func() { tensor.Sum(matrix, 0, -2) }},
		"Sum, scalar twice":          {tensor.ErrIndex, func() { tensor.Sum(one, 0, -1) }},
		"Keep, twice":                {tensor.ErrIndex, func() { tensor.Keep(tensor.Amax, matrix, 1, 1) }},
		"Var, twice":                 {tensor.ErrIndex, func() { tensor.Var(matrix, 0, 0) }},
		"Permute, twice":             {tensor.ErrIndex, func() { matrix.Permute(0, -2) }},
		"Flip, twice":                {tensor.ErrIndex, func() { tensor.Flip(matrix, 1, -1) }},
		"Flatten, scalar":            {tensor.ErrIndex, func() { one.Flatten(0, 5) }},
		"Split, 0":                   {tensor.ErrArgument, func() { many.Split(0, 0) }},
		"Split, -1 of nothing":       {tensor.ErrArgument, func() { doubles().Split(-1, 0) }},
		"Split, scalar":              {tensor.ErrIndex, func() { one.Split(1, 0) }},
		"AllClose, rtol -1":          {tensor.ErrArgument, func() { tensor.AllClose(one, one, -1, 0) }},
		"AllClose, rtol NaN":         {tensor.ErrArgument, func() { tensor.AllClose(one, one, math.NaN(), 0) }},
		"Full, Uint8 300":            {tensor.ErrArgument, func() { tensor.Full(tensor.Uint8, 300, 1) }},
		"Full, Int64 Inf":            {tensor.ErrArgument, func() { tensor.Full(tensor.Int64, math.Inf(1), 1) }},
		"Fill, Int8 NaN":             {tensor.ErrArgument, func() { tensor.New(tensor.Int8, 1).Fill(math.NaN()) }},
		"MaskedFill, Int8 300": {tensor.ErrArgument,
			func() { tensor.New(tensor.Int8, 1).MaskedFillInPlace(tensor.Ones(tensor.Bool, 1), 300) }},
		"Linspace, Uint8 300":  {tensor.ErrArgument, func() { tensor.Linspace(tensor.Uint8, 0, 300, 4) }},
		"Linspace, Int64 NaN":  {tensor.ErrArgument, func() { tensor.Linspace(tensor.Int64, math.NaN(), 300, 4) }},
		"Linspace, Bool":       {tensor.ErrOperand, func() { tensor.Linspace(tensor.Bool, 0, 1, 4) }},
		"Arange, Bool":         {tensor.ErrOperand, func() { tensor.Arange(tensor.Bool, 0, 2, 1) }},
		"Arange, Complex64":    {tensor.ErrOperand, func() { tensor.Arange(tensor.Complex64, 0, 2, 1) }},
		"Arange, wrong sign":   {tensor.ErrArgument, func() { tensor.Arange(tensor.Float32, 0, 2, -1) }},
		"FloorDivide by 0":     {tensor.ErrArgument, func() { tensor.FloorDivide(longs(1), longs(0)) }},
		"Maximum, Complex64":   {tensor.ErrOperand, func() { tensor.Maximum(tensor.New(tensor.Complex64, 1), one) }},
		"Erf, Complex64":       {tensor.ErrOperand, func() { tensor.Erf(tensor.New(tensor.Complex64, 1)) }},
		"Amax of no elements":  {tensor.ErrIndex, func() { tensor.Amax(doubles(), 0) }},
		"TopK of too many":     {tensor.ErrArgument, func() { tensor.TopK(many, 3, 0) }},
		"Narrow from too far":  {tensor.ErrIndex, func() { many.Narrow(0, 1, 2) }},
		"Narrow of -1 indices": {tensor.ErrIndex, func() { many.Narrow(0, 0, -1) }},
		"Arange, away":         {tensor.ErrArgument, func() { tensor.Arange(tensor.Float32, .5, 1, -1) }},
		"Arange, away down":    {tensor.ErrArgument, func() { tensor.Arange(tensor.Int64, 1, 0, 2) }},
		"Pow of integers, -1":  {tensor.ErrArgument, func() { tensor.Pow(longs(2), -1) }},
		"Pow of Bool, -2":      {tensor.ErrArgument, func() { tensor.Pow(tensor.Ones(tensor.Bool, 1), -2) }},
		"PowInPlace, -1":       {tensor.ErrArgument, func() { longs(2).PowInPlace(-1) }},
		"Clamp, NaN in place":  {tensor.ErrOperand, func() { longs(2).ClampInPlace(0, math.NaN()) }},
		"Clamp, Complex64": {tensor.ErrOperand,
			func() { tensor.Clamp(tensor.New(tensor.Complex64, 1), math.NaN(), 1) }},
		"IndexSelect, no elements": {tensor.ErrIndex,
			func() { tensor.IndexSelect(tensor.New(tensor.Float32, 2, 0), 0, longs(1, 2)) }},
		"IndexSelect of nothing": {tensor.ErrIndex,
			func() { tensor.IndexSelect(tensor.New(tensor.Float32, 0, 0), 1, tensor.Scalar(tensor.Int64, 0)) }},
		"IndexCopy, no elements": {tensor.ErrIndex, func() {
			tensor.New(tensor.Float32, 2, 0).IndexCopyInPlace(0, longs(-1), tensor.New(tensor.Float32, 1, 0))
		}},
		"IndexAdd, no elements": {tensor.ErrIndex, func() {
			tensor.New(tensor.Float32, 2, 0).IndexAddInPlace(0, longs(2), tensor.New(tensor.Float32, 1, 0))
		}},
	} {
		if err := tensor.Catch(c.f); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want one that wraps %v", name, err, c.want)
		}
	}
}

// The results of PyTorch 2.15, as it prints them.
func TestTensor_TakesWhatPyTorchTakes(t *testing.T) {
	one, none := tensor.Scalar(tensor.Float64, 7), doubles()
	zero := tensor.Scalar(tensor.Int64, 0)
	half := func(v ...float64) *tensor.Tensor { return doubles(v...).To(tensor.Float16) }
	for name, c := range map[string]struct {
		got  any
		want string
	}{
		"Squeeze, scalar":    {one.Squeeze(0), "tensor(7., dtype=torch.float64)"},
		"Squeeze, scalar -1": {one.Squeeze(-1), "tensor(7., dtype=torch.float64)"},
		"Gather, scalar":     {tensor.Gather(one, 0, zero), "tensor(7., dtype=torch.float64)"},
		"Gather, scalar, -1": {tensor.Gather(one, -1, longs(0, 0)), "tensor([7., 7.], dtype=torch.float64)"},
		"Gather, scalar index": {tensor.Gather(doubles(1, 2), 0, tensor.Scalar(tensor.Int64, 1)),
			"tensor(2., dtype=torch.float64)"},
		"Gather, no indices": {tensor.Gather(tensor.Ones(tensor.Float64, 2, 3), 0, longs()),
			"tensor([], dtype=torch.float64)"},
		"Scatter, scalar": {one.Clone().ScatterInPlace(0, zero, tensor.Scalar(tensor.Float64, 5)),
			"tensor(5., dtype=torch.float64)"},
		"ScatterAdd, scalar": {one.Clone().ScatterAddInPlace(0, longs(0), doubles(5)),
			"tensor(12., dtype=torch.float64)"},
		"IndexSelect, scalar": {tensor.IndexSelect(one, 0, longs(0)), "tensor(7., dtype=torch.float64)"},
		"IndexSelect, scalar index": {tensor.IndexSelect(doubles(1, 2), 0, tensor.Scalar(tensor.Int64, 1)),
			"tensor([2.], dtype=torch.float64)"},
		"IndexAdd, scalar": {one.Clone().IndexAddInPlace(0, zero, one), "tensor(14., dtype=torch.float64)"},
		"IndexCopy, scalar": {one.Clone().IndexCopyInPlace(0, zero, tensor.Scalar(tensor.Float64, 5)),
			"tensor(5., dtype=torch.float64)"},
		"IndexCopy, scalar index": {doubles(0, 0).
			IndexCopyInPlace(0, tensor.Scalar(tensor.Int64, 1), tensor.Scalar(tensor.Float64, 5)),
			"tensor([0., 5.], dtype=torch.float64)"},
		"Flip, scalar":        {tensor.Flip(one, 0), "tensor(7., dtype=torch.float64)"},
		"Flatten, scalar":     {one.Flatten(0, -1), "tensor([7.], dtype=torch.float64)"},
		"Split, 0 of nothing": {none.Split(0, 0), "[tensor([], dtype=torch.float64)]"},
		"Split, 3 of nothing": {none.Split(3, 0), "[tensor([], dtype=torch.float64)]"},
		"Linspace, Int64": {tensor.Linspace(tensor.Int64, .5, 10, 7),
			"tensor([ 0,  1,  3,  5,  6,  8, 10])"},
		"Linspace, Int64 negative": {tensor.Linspace(tensor.Int64, -3.7, 300.9, 4), "tensor([ -3,  98, 199, 300])"},
		"Linspace, Int8 down": {tensor.Linspace(tensor.Int8, 10.9, -.9, 5),
			"tensor([10,  7,  5,  2,  0], dtype=torch.int8)"},
		"Linspace, Int64 of one": {tensor.Linspace(tensor.Int64, 2.7, 10, 1), "tensor([2])"},
		"Arange, Int64":          {tensor.Arange(tensor.Int64, 1.7, 6.2, 1.5), "tensor([1, 2, 3])"},
		"Arange, Int32 halves": {tensor.Arange(tensor.Int32, 0, 3, .5),
			"tensor([0, 0, 0, 0, 0, 0], dtype=torch.int32)"},
		"Fill, Uint8 -1":         {tensor.Full(tensor.Uint8, -1, 1), "tensor([255], dtype=torch.uint8)"},
		"Uniform of one number":  {doubles(0).FillUniform(nil, 1, 1), "tensor([1.], dtype=torch.float64)"},
		"Normal, std Inf":        {tensor.IsFinite(doubles(0).FillNormal(nil, 0, math.Inf(1))), "tensor([False])"},
		"Eq, Int64 and Float16":  {tensor.Eq(longs(65505), half(65504)), "tensor([True])"},
		"Eq, Int64 and BFloat16": {tensor.Eq(longs(257), doubles(256).To(tensor.BFloat16)), "tensor([True])"},
		"Lt, Float16 and Int64":  {tensor.Lt(half(65504), longs(65505)), "tensor([False])"},
		"Add, Int64 and Float16": {tensor.Add(longs(2049), half(1)), "tensor([2048.], dtype=torch.float16)"},
		"Add, scalar Int64": {tensor.Add(tensor.Scalar(tensor.Int64, 2049), half(2)),
			"tensor([2050.], dtype=torch.float16)"},
		"Sub, Float16 and Int64": {tensor.Sub(half(2), tensor.Scalar(tensor.Int64, 2049)),
			"tensor([-2046.], dtype=torch.float16)"},
		"Remainder, 2049 and 1":   {tensor.Remainder(longs(2049), half(1)), "tensor([0.], dtype=torch.float16)"},
		"FloorDivide, Inf by 3":   {tensor.FloorDivide(longs(1<<30), half(3)), "tensor([nan], dtype=torch.float16)"},
		"Add in place, Float16":   {half(1).AddInPlace(longs(2049)), "tensor([2048.], dtype=torch.float16)"},
		"Axpy, Float16":           {half(1).AxpyInPlace(1, longs(2049)), "tensor([2048.], dtype=torch.float16)"},
		"AllClose, Inf and 1":     {tensor.AllClose(doubles(math.Inf(1)), doubles(1), math.Inf(1), 0), "false"},
		"AllClose, 1 and Inf":     {tensor.AllClose(doubles(1), doubles(math.Inf(1)), math.Inf(1), 0), "false"},
		"AllClose, 1 and 0":       {tensor.AllClose(doubles(1), doubles(0), math.Inf(1), 0), "false"},
		"AllClose, 1 and 2":       {tensor.AllClose(doubles(1), doubles(2), math.Inf(1), 0), "true"},
		"AllClose, infinite atol": {tensor.AllClose(doubles(1), doubles(2), 0, math.Inf(1)), "true"},
		"AllClose, Inf and Inf": {tensor.AllClose(doubles(math.Inf(1)), doubles(math.Inf(1)), math.Inf(1), 0),
			"true"},
		"AllClose, an infinite gap": {tensor.AllClose(doubles(1.7e308), doubles(-1.7e308), math.Inf(1), 0), "false"},
		"Clamp, NaN": {tensor.Clamp(doubles(1, 2), math.NaN(), 5),
			"tensor([nan, nan], dtype=torch.float64)"},
		"Clamp, NaN, integers": {tensor.Clamp(longs(1, 2), 0, math.NaN()), "tensor([nan, nan])"},
		"Arange, no numbers":   {tensor.Arange(tensor.Int64, 1, 1, -1), "tensor([], dtype=torch.int64)"},
		"Pow of integers, -.5": {tensor.Pow(longs(4), -.5), "tensor([0.5000])"},
		"Power, -1":            {tensor.Power(longs(2, 1, -1), longs(-1)), "tensor([ 0,  1, -1])"},
		"IndexSelect, empty":   {tensor.IndexSelect(tensor.New(tensor.Int64, 2, 0), 0, longs(1)).Shape(), "[1 0]"},
		"Float16 scalar and a number": {tensor.Add(half(3).Squeeze(), half(3).Squeeze().Number(.00244)),
			"tensor(3.0020, dtype=torch.float16)"},
		"Bool scalar and a number": {tensor.Add(zero.To(tensor.Bool), zero.To(tensor.Bool).Number(2)), "tensor(2)"},
		"Int8 scalar and a number": {tensor.Add(zero.To(tensor.Int8), zero.To(tensor.Int8).Number(2)),
			"tensor(2, dtype=torch.int8)"},
		"Power of subnormal numbers": {tensor.Power(doubles(5e-324), doubles(.7)).Item(), "4.848967349651144e-227"},
		"Pow of subnormal numbers":   {tensor.Pow(doubles(1e-310), .7).Item(), "1.0000000000000295e-217"},
	} {
		if got := fmt.Sprint(c.got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// The numbers are those of PyTorch 2.15.
func TestFunctions_OfComplexNumbersAreThoseOfPyTorch(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	x := tensor.FromSlice([]complex128{1 + 2i, complex(inf, 0), complex(nan, 1), complex(inf, nan), complex(0, -inf),
		0, 1e-10 + 1e-9i}, 7)
	for name, c := range map[string]struct {
		got  *tensor.Tensor
		want string
	}{
		"IsFinite": {tensor.IsFinite(x), "tensor([ True, False, False, False, False,  True,  True])"},
		"IsNaN":    {tensor.IsNaN(x), "tensor([False, False,  True,  True, False, False, False])"},
		"IsInf":    {tensor.IsInf(x), "tensor([False,  True, False,  True,  True, False, False])"},
		"IsInf of Complex64": {tensor.IsInf(x.To(tensor.Complex64)),
			"tensor([False,  True, False,  True,  True, False, False])"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	for name, c := range map[string]struct {
		f    func(*tensor.Tensor) *tensor.Tensor
		x    complex128
		want complex128
	}{
		"Sigmoid":       {tensor.Sigmoid, 1 + 2i, 1.0214153641721806 + 0.40343870608154253i},
		"Log1p":         {tensor.Log1p, 1 + 2i, 1.039720770839918 + 0.7853981633974483i},
		"Log1p, small":  {tensor.Log1p, 1e-10 + 1e-9i, 1.0000000049499998e-10 + 9.999999999000001e-10i},
		"Rsqrt":         {tensor.Rsqrt, 1 + 2i, 0.5688644810057831 - 0.3515775842541429i},
		"Expm1":         {tensor.Expm1, 1 + 2i, -2.1312043837568138 + 2.4717266720048188i},
		"Expm1, small":  {tensor.Expm1, 1e-10 + 1e-9i, 9.9999999505e-11 + 1.0000000001e-09i},
		"Log, smallest": {tensor.Log, 5e-324, -744.4400719213813},
		"Log, small":    {tensor.Log, 3e-310 + 4e-310i, -712.1919409157201 + 0.9272952180016122i},
		"Pow, small": {func(x *tensor.Tensor) *tensor.Tensor { return tensor.Pow(x, .7) }, 1e-310,
			1.0000000000000295e-217},
	} {
		got := tensor.At[complex128](c.f(tensor.FromSlice([]complex128{c.x}, 1)), 0)
		if !(cmplx.Abs(got-c.want) <= 1e-15*cmplx.Abs(c.want)) {
			t.Errorf("%s of %v: %v, want %v", name, c.x, got, c.want)
		}
	}
	pow := func(p float64) func(*tensor.Tensor) *tensor.Tensor {
		return func(x *tensor.Tensor) *tensor.Tensor { return tensor.Pow(x, p) }
	}
	negative := math.Copysign(0, -1)
	for name, c := range map[string]struct { // parts that may be infinite
		f        func(*tensor.Tensor) *tensor.Tensor
		x        complex128
		re, imag float64
	}{
		"Exp, real":            {tensor.Exp, 800, inf, 0},
		"Exp, real below 0":    {tensor.Exp, complex(1000, negative), inf, negative},
		"Exp, large":           {tensor.Exp, 710 + 1.5707963i, 5.985965873079828e+300, inf},
		"Sin, imaginary":       {tensor.Sin, complex(0, -745), 0, -inf},
		"Sin, large":           {tensor.Sin, .5 - 720i, inf, -inf},
		"Cos, imaginary":       {tensor.Cos, complex(negative, 745), inf, 0},
		"Cos, large":           {tensor.Cos, complex(math.Pi, -745), -inf, 2.1695510517620447e+307},
		"Tanh, large":          {tensor.Tanh, 400 + 1i, 1, 0},
		"Tanh, large below 0":  {tensor.Tanh, -65504 + 3.9i, -1, 0},
		"Log1p, sign of zero":  {tensor.Log1p, complex(-2.8, negative), math.Log(1.8), -math.Pi},
		"Pow 0 of NaN":         {pow(0), complex(9e21, nan), 1, 0},
		"Pow 1 of Inf and NaN": {pow(1), complex(inf, 2), inf, 2},
		"Pow 1, small":         {pow(1), complex(-1e-300, 3), -1e-300, 3},
		"Pow -1, small":        {pow(-1), complex(1e-300, 4), 6.25e-302, -.25},
	} {
		got := tensor.At[complex128](c.f(tensor.FromSlice([]complex128{c.x}, 1)), 0)
		near := func(a, b float64) bool {
			return a == b && math.Signbit(a) == math.Signbit(b) || math.Abs(a-b) <= 1e-13*math.Abs(b) && b-b == 0
		}
		if !near(real(got), c.re) || !near(imag(got), c.imag) {
			t.Errorf("%s of %v: %v, want %v", name, c.x, got, complex(c.re, c.imag))
		}
	}
}

// An element's bits depend on itself alone, whatever the operation and the dtype.
func TestOps_IgnoreNeighbours(t *testing.T) {
	r := rand.New(rand.NewPCG(39, 2))
	special := []float64{0, math.Copysign(0, -1), -1, 1e22, -1e22, 3e4, 1e-310, 5e-324, 1e300, math.Inf(1),
		math.NaN(), 2, 0.5}
	draw := func(dt tensor.DType, n int) *tensor.Tensor {
		x := make([]float64, n)
		for i := range x {
			if x[i] = 10 * r.NormFloat64(); r.IntN(3) == 0 {
				x[i] = special[r.IntN(len(special))]
			}
		}
		return doubles(x...).To(dt)
	}
	for _, op := range device.Ops() {
		apply := devicetest.Apply(op)
		for _, dt := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
			for _, n := range []int{1, 9, 700} {
				in := [2]*tensor.Tensor{draw(dt, n), draw(dt, n)}
				all := apply(in[:]...)
				for i := range 2 * n {
					i, scalar := i/2, i%2 == 1
					each := [2]*tensor.Tensor{in[0].Narrow(0, i, 1), in[1].Narrow(0, i, 1)}
					if scalar {
						each = [2]*tensor.Tensor{in[0].Select(0, i), in[1].Select(0, i)}
					}
					one := apply(each[:]...)
					a, b := one.Item(), all.Narrow(0, i, 1).Item()
					if a != b && !(a != a && b != b) || a == 0 && math.Signbit(a) != math.Signbit(b) {
						t.Errorf("%s of %v %v is %v alone, and %v as element %d of %d", op.Name, each[0], each[1],
							a, b, i, n)
						break
					}
				}
			}
		}
	}
}
