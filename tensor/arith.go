package tensor

import "math"

// Number returns v as an operand for operations with t, like a Python number next to a PyTorch
// tensor. The result of such an operation has t's dtype, with two exceptions: it is Float32 if t
// has integers and v has a fraction, and Int64 if t is Bool and v is an integer.
//
//	positive := tensor.Gt(x, x.Number(0))
func (t *Tensor) Number(v float64) *Tensor {
	dt := t.dtype
	switch {
	case dt.promotionRank() < 2 && v != float64(int64(v)):
		dt = Float32
	case dt == Bool:
		dt = Int64
	default:
		dt = dt.computeDType() // higher precision, without effect on the result's dtype
	}
	number := Scalar(dt, v)
	number.number = true
	return number
}

// Add returns a+b, elementwise. All operations of two tensors broadcast shapes and promote dtypes
// as PyTorch does. Integers wrap around.
func Add(a, b *Tensor) *Tensor { return opAdd.applyBinary(a, b) }

// Sub returns a-b. It panics for Bool: use [Xor] or [Not].
func Sub(a, b *Tensor) *Tensor { return opSub.applyBinary(a, b) }

// Mul returns a*b.
func Mul(a, b *Tensor) *Tensor { return opMul.applyBinary(a, b) }

// Div returns a/b. The result is Float32 for integers.
func Div(a, b *Tensor) *Tensor { return opDiv.applyBinary(a, b) }

// FloorDivide returns a/b rounded down. It panics on division of an integer by zero.
func FloorDivide(a, b *Tensor) *Tensor { return opFloorDivide.applyBinary(a, b) }

// Remainder returns a - b*FloorDivide(a, b), which has the sign of b. It panics on division of an
// integer by zero.
func Remainder(a, b *Tensor) *Tensor { return opRemainder.applyBinary(a, b) }

// Power returns a to the power of b, elementwise. An integer raised to a negative power is 0, 1 or
// -1.
func Power(a, b *Tensor) *Tensor { return opPower.applyBinary(a, b) }

// Pow returns a to the power of the number x. See [Power] for an exponent that is a tensor. It
// panics for integers and Bool if x is a negative integer, as PyTorch refuses it.
func Pow(a *Tensor, x float64) *Tensor {
	a.requireExponent(x)
	wide := a.dtype == Float32 || a.dtype == Float64 // other dtypes would be rounded twice
	switch {
	case x == 2 && a.dtype != Bool:
		return Mul(a, a)
	case x == 3 && a.dtype.isFloat() && backendOf(a).acceptsAnyLoop():
		return opCube.applyUnary(a)
	case x == 3 && wide:
		return Mul(a, a).MulInPlace(a)
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

// requireExponent panics if x is a negative integer and t has integers or booleans.
func (t *Tensor) requireExponent(x float64) {
	if t.dtype.promotionRank() < 2 && x < 0 && x == math.Trunc(x) && !math.IsInf(x, 0) {
		misuse(ErrArgument, "Pow: power %v of a tensor of %v: convert it to a float dtype with To first", x, t.dtype)
	}
}

// Hypot returns the square root of a²+b². It panics for integers, as PyTorch refuses them.
func Hypot(a, b *Tensor) *Tensor { return opHypot.applyBinary(a, b) }

// Atan2 returns the angles of the points (b, a), from -π to π. The result is Float32 for integers.
func Atan2(a, b *Tensor) *Tensor { return opAtan2.applyBinary(a, b) }

// Logaddexp returns log(exp(a)+exp(b)), without overflow for large elements. It panics for
// integers, as PyTorch refuses them.
func Logaddexp(a, b *Tensor) *Tensor { return opLogaddexp.applyBinary(a, b) }

// Maximum returns the larger of each pair of elements, or NaN if one of them is NaN.
func Maximum(a, b *Tensor) *Tensor { return opMaximum.applyBinary(a, b) }

// Minimum returns the smaller of each pair of elements, or NaN if one of them is NaN.
func Minimum(a, b *Tensor) *Tensor { return opMinimum.applyBinary(a, b) }

// Eq returns a Bool tensor that is true where a == b.
func Eq(a, b *Tensor) *Tensor { return opEq.applyBinary(a, b) }

// Ne returns a Bool tensor that is true where a != b.
func Ne(a, b *Tensor) *Tensor { return opNe.applyBinary(a, b) }

// Lt returns a Bool tensor that is true where a < b.
func Lt(a, b *Tensor) *Tensor { return opLt.applyBinary(a, b) }

// Le returns a Bool tensor that is true where a <= b.
func Le(a, b *Tensor) *Tensor { return opLe.applyBinary(a, b) }

// Gt returns a Bool tensor that is true where a > b.
func Gt(a, b *Tensor) *Tensor { return opGt.applyBinary(a, b) }

// Ge returns a Bool tensor that is true where a >= b.
func Ge(a, b *Tensor) *Tensor { return opGe.applyBinary(a, b) }

// And returns a Bool tensor that is true where both a and b are nonzero.
func And(a, b *Tensor) *Tensor { return opMul.applyLogical(a, b) }

// Or returns a Bool tensor that is true where a or b is nonzero.
func Or(a, b *Tensor) *Tensor { return opAdd.applyLogical(a, b) }

// Xor returns a Bool tensor that is true where exactly one of a and b is nonzero.
func Xor(a, b *Tensor) *Tensor { return opNe.applyLogical(a, b) }

// Not returns a Bool tensor that is true where a is 0.
func Not(a *Tensor) *Tensor {
	no := New(Bool)
	defer no.release()
	return opEq.applyLogical(a, no)
}

// applyLogical converts a and b to Bool, broadcasts them, and returns the result of o as a new
// tensor.
func (o op) applyLogical(a, b *Tensor) *Tensor {
	var room [2 * fewDims]int
	return o.loopsFor(Bool).apply(emptyLike(Bool, broadcastInto(room[:0], a.Shape(), b.Shape()), a, b), a, b)
}

// IsNaN returns a Bool tensor that is true where a is NaN.
func IsNaN(a *Tensor) *Tensor { return opIsNaN.applyUnary(a) }

// IsInf returns a Bool tensor that is true where a is infinite.
func IsInf(a *Tensor) *Tensor { return opIsInf.applyUnary(a) }

// IsFinite returns a Bool tensor that is true where a is neither infinite nor NaN.
func IsFinite(a *Tensor) *Tensor { return opIsFinite.applyUnary(a) }

// Neg returns -a.
func Neg(a *Tensor) *Tensor { return opNeg.applyUnary(a) }

// Abs returns the absolute value. The result is real for complex numbers.
func Abs(a *Tensor) *Tensor { return opAbs.applyUnary(a) }

// ReLU returns the maximum of a and 0.
func ReLU(a *Tensor) *Tensor { return opReLU.applyUnary(a) }

// Sign returns the sign of each element: -1, 0 or 1.
func Sign(a *Tensor) *Tensor { return opSign.applyUnary(a) }

// Floor returns the elements rounded down.
func Floor(a *Tensor) *Tensor { return opFloor.applyUnary(a) }

// Ceil returns the elements rounded up.
func Ceil(a *Tensor) *Tensor { return opCeil.applyUnary(a) }

// Round returns the elements rounded to the nearest integer, halves to even.
func Round(a *Tensor) *Tensor { return opRound.applyUnary(a) }

// Trunc returns the elements rounded towards 0.
func Trunc(a *Tensor) *Tensor { return opTrunc.applyUnary(a) }

// Exp returns e to the power of a. For integers, the result of Exp and of the other floating-point
// functions, such as [Log] and [Sin], is Float32.
func Exp(a *Tensor) *Tensor { return opExp.applyUnary(a) }

// Expm1 returns exp(a)-1, accurate near 0.
func Expm1(a *Tensor) *Tensor { return opExpm1.applyUnary(a) }

// Log returns the natural logarithm.
func Log(a *Tensor) *Tensor { return opLog.applyUnary(a) }

// Log1p returns log(1+a), accurate near 0.
func Log1p(a *Tensor) *Tensor { return opLog1p.applyUnary(a) }

// Sqrt returns the square root.
func Sqrt(a *Tensor) *Tensor { return opSqrt.applyUnary(a) }

// Rsqrt returns 1/sqrt(a).
func Rsqrt(a *Tensor) *Tensor { return opRsqrt.applyUnary(a) }

// Reciprocal returns 1/a.
func Reciprocal(a *Tensor) *Tensor { return opReciprocal.applyUnary(a) }

// Sin returns the sine.
func Sin(a *Tensor) *Tensor { return opSin.applyUnary(a) }

// Cos returns the cosine.
func Cos(a *Tensor) *Tensor { return opCos.applyUnary(a) }

// Tanh returns the hyperbolic tangent.
func Tanh(a *Tensor) *Tensor { return opTanh.applyUnary(a) }

// Sigmoid returns 1/(1+exp(-a)).
func Sigmoid(a *Tensor) *Tensor { return opSigmoid.applyUnary(a) }

// Erf returns the error function.
func Erf(a *Tensor) *Tensor { return opErf.applyUnary(a) }

// Clamp returns the elements limited to the range from lo to hi. NaN stays NaN. If lo or hi is NaN,
// so is every element of the result, as in PyTorch.
func Clamp(a *Tensor, lo, hi float64) *Tensor {
	least, most := a.boundNumber(lo), a.boundNumber(hi)
	defer least.release()
	defer most.release()
	dt := Promote(opMaximum.computeDType(a, least), opMinimum.computeDType(a, most))
	return emptyLike(dt, a.Shape(), a).setClamped(a, lo, hi)
}

// setClamped sets the elements of t to the elements of a, limited to the range from lo to hi, and
// returns t. a may be t. If lo or hi is NaN, all elements become NaN.
func (t *Tensor) setClamped(a *Tensor, lo, hi float64) *Tensor {
	dt := t.dtype.computeDType()
	if lo != lo || hi != hi {
		opMaximum.loopsFor(dt) // panics if there is no order
		return t.Fill(math.NaN())
	}
	if clamp := dt.numericLoops().clamp; clamp != nil && backendOf(t).acceptsAnyLoop() {
		return rows{in: [3]DType{dt}, out: dt, withNumbers: clamp, first: lo, second: hi}.apply(t, a)
	}
	least, most := a.boundNumber(lo), a.boundNumber(hi)
	defer least.release()
	defer most.release()
	opMaximum.loopsFor(dt).apply(t, a, least)
	return opMinimum.loopsFor(dt).apply(t, t, most)
}

// Where returns the elements of a where c is true, and the elements of b elsewhere. c must be
// Bool. All three are broadcast, and the dtypes of a and b are promoted.
func Where(c, a, b *Tensor) *Tensor {
	c.requireDType(Bool)
	dt := promoteOperands(a, b)
	var room [2 * fewDims]int
	shape := broadcastInto(room[:0], c.Shape(), a.Shape(), b.Shape())
	return selectLoop(dt).apply(emptyLike(dt, shape, c, a, b), c, a, b)
}

// selectLoop returns the loop that selects the second operand where the first is true, and the
// third elsewhere.
func selectLoop(dt DType) rows {
	return rows{op: opWhere, in: [3]DType{Bool, dt, dt}, out: dt,
		run: bySize(dt.Size(), selectElements[uint8], selectElements[uint16], selectElements[uint32],
			selectElements[uint64], selectElements[complex128])}
}

func selectElements[T any](out, mask, yes, no []byte) {
	r, a, b := bytesAs[T](out), bytesAs[T](yes), bytesAs[T](no)
	for i, m := range mask {
		x, y := a[i], b[i] // load both, so that no branch is needed
		if m != 0 {
			y = x
		}
		r[i] = y
	}
}
