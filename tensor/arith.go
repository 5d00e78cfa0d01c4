package tensor

// Number returns v as an operand for operations with t, as a Python number is for a tensor of
// PyTorch. The result of such an operation has t's dtype, with two exceptions: if v has a fraction,
// integers become Float32, and if t is Bool, a whole number makes Int64.
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
		dt = dt.computed() // more digits, which do not widen it either
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

// Div returns a/b. For integers the result is Float32.
func Div(a, b *Tensor) *Tensor { return opDiv.two(a, b) }

// FloorDivide returns a/b rounded down. It panics if an integer is divided by zero.
func FloorDivide(a, b *Tensor) *Tensor { return opFloorDivide.two(a, b) }

// Remainder returns a - b*FloorDivide(a, b), which has the sign of b.
func Remainder(a, b *Tensor) *Tensor { return opRemainder.two(a, b) }

// Power returns a to the power of b, elementwise. An integer to a negative power is 0, 1 or -1.
func Power(a, b *Tensor) *Tensor { return opPower.two(a, b) }

// Pow returns a to the power of the number x. Power takes a tensor.
func Pow(a *Tensor, x float64) *Tensor {
	wide := a.dtype == Float32 || a.dtype == Float64 // others would be rounded twice
	switch {
	case x == 2 && a.dtype != Bool:
		return Mul(a, a)
	case x == 3 && a.dtype.isFloat() && backendOf(a).fuses():
		return opCube.one(a)
	case x == 3 && wide:
		return Mul(a, a).Mul(a)
	case x == 0.5 && a.dtype.isFloat(): // -Inf has no root
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

// Atan2 returns the angles of the points (b, a), from -π to π. For integers the result is Float32.
func Atan2(a, b *Tensor) *Tensor { return opAtan2.two(a, b) }

// Logaddexp returns log(exp(a)+exp(b)), without overflow for large elements. It panics for
// integers, as PyTorch refuses them.
func Logaddexp(a, b *Tensor) *Tensor { return opLogaddexp.two(a, b) }

// Maximum returns the greater of each pair of elements, or NaN if one of them is NaN.
func Maximum(a, b *Tensor) *Tensor { return opMaximum.two(a, b) }

// Minimum returns the lesser of each pair of elements, or NaN if one of them is NaN.
func Minimum(a, b *Tensor) *Tensor { return opMinimum.two(a, b) }

// Eq returns where a == b, as Bool.
func Eq(a, b *Tensor) *Tensor { return opEq.two(a, b) }

// Ne returns where a != b, as Bool.
func Ne(a, b *Tensor) *Tensor { return opNe.two(a, b) }

// Lt returns where a < b, as Bool.
func Lt(a, b *Tensor) *Tensor { return opLt.two(a, b) }

// Le returns where a <= b, as Bool.
func Le(a, b *Tensor) *Tensor { return opLe.two(a, b) }

// Gt returns where a > b, as Bool.
func Gt(a, b *Tensor) *Tensor { return opGt.two(a, b) }

// Ge returns where a >= b, as Bool.
func Ge(a, b *Tensor) *Tensor { return opGe.two(a, b) }

// And returns where both a and b are nonzero, as Bool.
func And(a, b *Tensor) *Tensor { return opMul.logical(a, b) }

// Or returns where a or b is nonzero, as Bool.
func Or(a, b *Tensor) *Tensor { return opAdd.logical(a, b) }

// Xor returns where exactly one of a and b is nonzero, as Bool.
func Xor(a, b *Tensor) *Tensor { return opNe.logical(a, b) }

// Not returns where a is 0, as Bool.
func Not(a *Tensor) *Tensor {
	no := New(Bool)
	defer no.release()
	return opEq.logical(a, no)
}

// logical returns o of a and b as truths.
func (o op) logical(a, b *Tensor) *Tensor {
	var room [2 * fewDims]int
	return o.rows(Bool).apply(emptyLike(Bool, broadcastInto(room[:0], a.Shape(), b.Shape()), a, b), a, b)
}

// IsNaN returns where a is NaN, as Bool.
func IsNaN(a *Tensor) *Tensor { return opIsNaN.one(a) }

// IsInf returns where a is infinite, as Bool.
func IsInf(a *Tensor) *Tensor { return opIsInf.one(a) }

// IsFinite returns where a is neither infinite nor NaN, as Bool.
func IsFinite(a *Tensor) *Tensor { return opIsFinite.one(a) }

// Neg returns -a.
func Neg(a *Tensor) *Tensor { return opNeg.one(a) }

// Abs returns the absolute value. That of a complex number is real.
func Abs(a *Tensor) *Tensor { return opAbs.one(a) }

// ReLU returns the greater of a and 0.
func ReLU(a *Tensor) *Tensor { return opReLU.one(a) }

// Sign returns -1, 0 or 1, the sign of each element.
func Sign(a *Tensor) *Tensor { return opSign.one(a) }

// Floor returns the elements rounded down.
func Floor(a *Tensor) *Tensor { return opFloor.one(a) }

// Ceil returns the elements rounded up.
func Ceil(a *Tensor) *Tensor { return opCeil.one(a) }

// Round returns the elements rounded to the nearest integer, halves to even.
func Round(a *Tensor) *Tensor { return opRound.one(a) }

// Trunc returns the elements rounded towards 0.
func Trunc(a *Tensor) *Tensor { return opTrunc.one(a) }

// Exp returns e to the power of a. For integers the result of Exp, and of the other functions of
// floats such as Log and Sin, is Float32.
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

// Clamp returns the elements, with lo for those below lo and hi for those above hi. NaN stays NaN.
func Clamp(a *Tensor, lo, hi float64) *Tensor {
	least, most := a.bound(lo), a.bound(hi)
	defer least.release()
	defer most.release()
	dt := Promote(opMaximum.meet(a, least), opMinimum.meet(a, most))
	return emptyLike(dt, a.Shape(), a).clamp(a, lo, hi)
}

// clamp sets the elements to those of a between bounds.
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

// Where returns the elements of a where c (Bool) is true and those of b elsewhere. All three are
// broadcast.
func Where(c, a, b *Tensor) *Tensor {
	c.want(Bool)
	dt := promote(a, b)
	var room [2 * fewDims]int
	shape := broadcastInto(room[:0], c.Shape(), a.Shape(), b.Shape())
	return choice(dt).apply(emptyLike(dt, shape, c, a, b), c, a, b)
}

// choice takes elements of dt from its second operand where the first is true, and else from the
// third.
func choice(dt DType) rows {
	return rows{op: opWhere, in: [3]DType{Bool, dt, dt}, out: dt,
		run: bySize(dt.Size(), choose[uint8], choose[uint16], choose[uint32], choose[uint64], choose[complex128])}
}

func choose[T any](out, mask, yes, no []byte) {
	r, a, b := typed[T](out), typed[T](yes), typed[T](no)
	for i, m := range mask {
		x, y := a[i], b[i] // both, so that no branch is needed
		if m != 0 {
			y = x
		}
		r[i] = y
	}
}
