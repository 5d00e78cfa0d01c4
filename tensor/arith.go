package tensor

// Number returns v as an operand for operations with t, like a Python number next to a PyTorch
// tensor. The result of such an operation has t's dtype, with two exceptions: it is Float32 if t
// has integers and v has a fraction, and Int64 if t is Bool and v is an integer.
//
//	positive := tensor.Gt(x, x.Number(0))
func (t *Tensor) Number(v float64) *Tensor {
	dt := t.dtype
	switch {
	case dt.category() < 2 && v != float64(int64(v)):
		dt = Float32
	case dt == Bool:
		dt = Int64
	case len(t.Shape()) > 0:
		dt = dt.computed() // higher precision, without effect on the result's dtype
	}
	return Scalar(dt, v)
}

// Add returns a+b, elementwise. All operations of two tensors broadcast shapes and promote dtypes
// as PyTorch does. Integers wrap around.
func Add(a, b *Tensor) *Tensor { return opAdd.two(a, b) }

// Sub returns a-b.
func Sub(a, b *Tensor) *Tensor { return opSub.two(a, b) }

// Mul returns a*b.
func Mul(a, b *Tensor) *Tensor { return opMul.two(a, b) }

// Div returns a/b. The result is Float32 for integers.
func Div(a, b *Tensor) *Tensor { return opDiv.two(a, b) }

// FloorDivide returns a/b rounded down. It panics on division of an integer by zero.
func FloorDivide(a, b *Tensor) *Tensor { return opFloorDivide.two(a, b) }

// Remainder returns a - b*FloorDivide(a, b), which has the sign of b.
func Remainder(a, b *Tensor) *Tensor { return opRemainder.two(a, b) }

// Power returns a to the power of b, elementwise. An integer raised to a negative power is 0, 1 or
// -1.
func Power(a, b *Tensor) *Tensor { return opPower.two(a, b) }

// Pow returns a to the power of the number x. See [Power] for an exponent that is a tensor.
func Pow(a *Tensor, x float64) *Tensor {
	wide := a.dtype == Float32 || a.dtype == Float64 // other dtypes would be rounded twice
	switch {
	case x == 2 && a.dtype != Bool:
		return Mul(a, a)
	case x == 3 && a.dtype.isFloat() && backendOf(a).fuses():
		return opCube.one(a)
	case x == 3 && wide:
		return Mul(a, a).Mul(a)
	case x == 0.5 && a.dtype.isFloat(): // NaN for -Inf, as in PyTorch
		return Sqrt(a)
	case x == -0.5 && a.dtype.isFloat():
		return Rsqrt(a)
	case x == -1 && a.dtype.isFloat():
		return Reciprocal(a)
	}
	p := a.Number(x)
	defer p.release()
	return Power(a, p)
}

// Hypot returns the square root of a²+b². It panics for integers, as PyTorch refuses them.
func Hypot(a, b *Tensor) *Tensor { return opHypot.two(a, b) }

// Atan2 returns the angles of the points (b, a), from -π to π. The result is Float32 for integers.
func Atan2(a, b *Tensor) *Tensor { return opAtan2.two(a, b) }

// Logaddexp returns log(exp(a)+exp(b)), without overflow for large elements. It panics for
// integers, as PyTorch refuses them.
func Logaddexp(a, b *Tensor) *Tensor { return opLogaddexp.two(a, b) }

// Maximum returns the larger of each pair of elements, or NaN if one of them is NaN.
func Maximum(a, b *Tensor) *Tensor { return opMaximum.two(a, b) }

// Minimum returns the smaller of each pair of elements, or NaN if one of them is NaN.
func Minimum(a, b *Tensor) *Tensor { return opMinimum.two(a, b) }

// Eq returns a Bool tensor that is true where a == b.
func Eq(a, b *Tensor) *Tensor { return opEq.two(a, b) }

// Ne returns a Bool tensor that is true where a != b.
func Ne(a, b *Tensor) *Tensor { return opNe.two(a, b) }

// Lt returns a Bool tensor that is true where a < b.
func Lt(a, b *Tensor) *Tensor { return opLt.two(a, b) }

// Le returns a Bool tensor that is true where a <= b.
func Le(a, b *Tensor) *Tensor { return opLe.two(a, b) }

// Gt returns a Bool tensor that is true where a > b.
func Gt(a, b *Tensor) *Tensor { return opGt.two(a, b) }

// Ge returns a Bool tensor that is true where a >= b.
func Ge(a, b *Tensor) *Tensor { return opGe.two(a, b) }

// And returns a Bool tensor that is true where both a and b are nonzero.
func And(a, b *Tensor) *Tensor { return opMul.logical(a, b) }

// Or returns a Bool tensor that is true where a or b is nonzero.
func Or(a, b *Tensor) *Tensor { return opAdd.logical(a, b) }

// Xor returns a Bool tensor that is true where exactly one of a and b is nonzero.
func Xor(a, b *Tensor) *Tensor { return opNe.logical(a, b) }

// Not returns a Bool tensor that is true where a is 0.
func Not(a *Tensor) *Tensor {
	no := New(Bool)
	defer no.release()
	return opEq.logical(a, no)
}

// logical applies o to a and b converted to Bool.
func (o op) logical(a, b *Tensor) *Tensor {
	var room [2 * fewDims]int
	return o.rows(Bool).apply(emptyLike(Bool, broadcastInto(room[:0], a.Shape(), b.Shape()), a, b), a, b)
}

// IsNaN returns a Bool tensor that is true where a is NaN.
func IsNaN(a *Tensor) *Tensor { return opIsNaN.one(a) }

// IsInf returns a Bool tensor that is true where a is infinite.
func IsInf(a *Tensor) *Tensor { return opIsInf.one(a) }

// IsFinite returns a Bool tensor that is true where a is neither infinite nor NaN.
func IsFinite(a *Tensor) *Tensor { return opIsFinite.one(a) }

// Neg returns -a.
func Neg(a *Tensor) *Tensor { return opNeg.one(a) }

// Abs returns the absolute value. The result is real for complex numbers.
func Abs(a *Tensor) *Tensor { return opAbs.one(a) }

// ReLU returns the maximum of a and 0.
func ReLU(a *Tensor) *Tensor { return opReLU.one(a) }

// Sign returns the sign of each element: -1, 0 or 1.
func Sign(a *Tensor) *Tensor { return opSign.one(a) }

// Floor returns the elements rounded down.
func Floor(a *Tensor) *Tensor { return opFloor.one(a) }

// Ceil returns the elements rounded up.
func Ceil(a *Tensor) *Tensor { return opCeil.one(a) }

// Round returns the elements rounded to the nearest integer, halves to even.
func Round(a *Tensor) *Tensor { return opRound.one(a) }

// Trunc returns the elements rounded towards 0.
func Trunc(a *Tensor) *Tensor { return opTrunc.one(a) }

// Exp returns e to the power of a. For integers, the result of Exp and of the other floating-point
// functions, such as [Log] and [Sin], is Float32.
func Exp(a *Tensor) *Tensor { return opExp.one(a) }

// Expm1 returns exp(a)-1, accurate near 0.
func Expm1(a *Tensor) *Tensor { return opExpm1.one(a) }

// Log returns the natural logarithm.
func Log(a *Tensor) *Tensor { return opLog.one(a) }

// Log1p returns log(1+a), accurate near 0.
func Log1p(a *Tensor) *Tensor { return opLog1p.one(a) }

// Sqrt returns the square root.
func Sqrt(a *Tensor) *Tensor { return opSqrt.one(a) }

// Rsqrt returns 1/sqrt(a).
func Rsqrt(a *Tensor) *Tensor { return opRsqrt.one(a) }

// Reciprocal returns 1/a.
func Reciprocal(a *Tensor) *Tensor { return opReciprocal.one(a) }

// Sin returns the sine.
func Sin(a *Tensor) *Tensor { return opSin.one(a) }

// Cos returns the cosine.
func Cos(a *Tensor) *Tensor { return opCos.one(a) }

// Tanh returns the hyperbolic tangent.
func Tanh(a *Tensor) *Tensor { return opTanh.one(a) }

// Sigmoid returns 1/(1+exp(-a)).
func Sigmoid(a *Tensor) *Tensor { return opSigmoid.one(a) }

// Erf returns the error function.
func Erf(a *Tensor) *Tensor { return opErf.one(a) }

// Clamp returns the elements limited to the range from lo to hi. NaN stays NaN.
func Clamp(a *Tensor, lo, hi float64) *Tensor {
	least, most := a.bound(lo), a.bound(hi)
	defer least.release()
	defer most.release()
	dt := Promote(opMaximum.meet(a, least), opMinimum.meet(a, most))
	return emptyLike(dt, a.Shape(), a).clamp(a, lo, hi)
}

// clamp sets the elements of t to the elements of a, limited to the range from lo to hi.
func (t *Tensor) clamp(a *Tensor, lo, hi float64) *Tensor {
	dt := t.dtype.computed()
	if clamp := dt.numeric().clamp; clamp != nil && backendOf(t).fuses() {
		return rows{in: [3]DType{dt}, out: dt,
			run: func(out, x, _, _ []byte) { clamp(lo, hi, x, out) }}.apply(t, a)
	}
	least, most := a.bound(lo), a.bound(hi)
	defer least.release()
	defer most.release()
	opMaximum.rows(dt).apply(t, a, least)
	return opMinimum.rows(dt).apply(t, t, most)
}

// Where returns the elements of a where c is true, and the elements of b elsewhere. c must be Bool.
// All three are broadcast.
func Where(c, a, b *Tensor) *Tensor {
	c.want(Bool)
	dt := promote(a, b)
	var room [2 * fewDims]int
	shape := broadcastInto(room[:0], c.Shape(), a.Shape(), b.Shape())
	return choice(dt).apply(emptyLike(dt, shape, c, a, b), c, a, b)
}

// choice returns the loop that selects the second operand where the first is true, and the third
// elsewhere.
func choice(dt DType) rows {
	return rows{op: opWhere, in: [3]DType{Bool, dt, dt}, out: dt,
		run: bySize(dt.Size(), choose[uint8], choose[uint16], choose[uint32], choose[uint64], choose[complex128])}
}

func choose[T any](out, mask, yes, no []byte) {
	r, a, b := typed[T](out), typed[T](yes), typed[T](no)
	for i, m := range mask {
		x, y := a[i], b[i] // load both, so that no branch is needed
		if m != 0 {
			y = x
		}
		r[i] = y
	}
}
