package tensor

import (
	"math"
	"math/cmplx"
	"unsafe"

	"github.com/shoal-mp/shoal/internal/kernel"
)

// A rowFunc computes a row from up to three rows of the same length. out may alias one of them.
type rowFunc = func(out, x, y, z []byte)

// A oneFunc computes a row from a row and one element. The operation must be commutative.
type oneFunc = func(out, in, one []byte)

func alphaRow[T float](f func(alpha T, x, y []T)) oneFunc {
	return func(out, in, one []byte) { f(bytesAs[T](one)[0], bytesAs[T](in), bytesAs[T](out)) }
}

func binaryRow[R, T any](f func(r []R, a, b []T)) rowFunc {
	return func(out, x, y, _ []byte) { f(bytesAs[R](out), bytesAs[T](x), bytesAs[T](y)) }
}

func unaryRow[R, T any](f func(r []R, a []T)) rowFunc {
	return func(out, x, _, _ []byte) { f(bytesAs[R](out), bytesAs[T](x)) }
}

// zip sets the elements of r to f of the elements of a and b, and each sets them to f of the
// elements of a. They must stay small, so that the compiler inlines them together with f into a
// loop without calls.
func zip[R, T any](r []R, a, b []T, f func(x, y T) R) {
	a, b = a[:len(r)], b[:len(r)]
	for i := range r {
		r[i] = f(a[i], b[i])
	}
}

func each[R, T any](r []R, a []T, f func(x T) R) {
	for i, x := range a[:len(r)] {
		r[i] = f(x)
	}
}

// compareRow returns a loop that calls the kernel first and end for the remaining elements.
func compareRow[T any](c kernel.Comparison, end func(r []uint8, a, b []T)) rowFunc {
	return binaryRow(func(r []uint8, a, b []T) {
		done := kernel.Compare(c, a, b, r)
		end(r[done:], a[done:], b[done:])
	})
}

// combineRow returns a loop for integers that calls the kernel first and end for the remaining
// elements.
func combineRow[T any](w kernel.Whole, end func(r, a, b []T)) rowFunc {
	return binaryRow(func(r, a, b []T) {
		done := kernel.Combine(w, a, b, r)
		end(r[done:], a[done:], b[done:])
	})
}

// kernelRow returns a loop for integers that calls the kernel for at most a chunk at a time, and
// end for the remaining elements. The kernel returns the number of elements that it processed.
func kernelRow[T any](kernel func(r, a []T) int, end func(r, a []T)) rowFunc {
	return unaryRow(func(r, a []T) {
		done := 0
		for n := chunk; n == chunk; {
			n = min(chunk, len(r)-done)
			k := kernel(r[done:][:n], a[done:][:n])
			if done += k; k < n {
				break
			}
		}
		end(r[done:], a[done:])
	})
}

func negateRow[T integer](r, a []T) int {
	return kernel.Combine(kernel.Minus, bytesAs[T](zeros[:])[:len(a)], a, r)
}

func rectifyRow[T integer](r, a []T) int {
	return kernel.Combine(kernel.Larger, a, bytesAs[T](zeros[:])[:len(a)], r)
}

// magnitudesOf sets elements of r to the maximum of x and -x, for the elements x of a, and
// returns how many it has set. The minimum integer is unchanged.
func magnitudesOf[T integer](r, a []T) int {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	negative := bytesAs[T](bufs.rows[0][:])[:len(a)]
	k := negateRow(negative, a)
	return kernel.Combine(kernel.Larger, a[:k], negative[:k], r[:k])
}

// swapOperands returns f with its operands exchanged.
func swapOperands(f rowFunc) rowFunc {
	return func(out, x, y, _ []byte) { f(out, y, x, nil) }
}

// lift2 returns a loop that calls f for each pair of elements.
func lift2[T float](f func(x, y float64) float64) rowFunc {
	return binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return T(f(float64(x), float64(y))) }) })
}

func liftComplex[T cplx](f func(complex128) complex128) rowFunc {
	return unaryRow(func(r, a []T) { each(r, a, func(x T) T { return T(f(complex128(x))) }) })
}

func sum[T ordered | cplx](a, b T) T { return a + b }

func copyRow[T any](r, a []T) { copy(r, a) }

func fillFalse[T any](r []uint8, _ []T) { clear(r) }
func fillTrue[T any](r []uint8, _ []T)  { each(r, r, func(uint8) uint8 { return 1 }) }

func arithmeticRows[T ordered | cplx](rows []rowFunc) {
	rows[opAdd] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x + y }) })
	rows[opSub] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x - y }) })
	rows[opMul] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x * y }) })
	rows[opEq] = compareRow(kernel.Equal,
		func(r []uint8, a, b []T) { zip(r, a, b, func(x, y T) uint8 { return boolToUint8(x == y) }) })
	rows[opNe] = compareRow(kernel.NotEqual,
		func(r []uint8, a, b []T) { zip(r, a, b, func(x, y T) uint8 { return boolToUint8(x != y) }) })
	rows[opNeg] = unaryRow(func(r, a []T) { each(r, a, func(x T) T { return -x }) })
}

// orderedRows sets the operations of ordered dtypes. NaN operands make Maximum, Minimum and ReLU
// return NaN, as Go's max and min and PyTorch do.
func orderedRows[T ordered](rows []rowFunc) {
	arithmeticRows[T](rows)
	rows[opMaximum] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return max(x, y) }) })
	rows[opMinimum] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return min(x, y) }) })
	rows[opLt] = compareRow(kernel.Less,
		func(r []uint8, a, b []T) { zip(r, a, b, func(x, y T) uint8 { return boolToUint8(x < y) }) })
	rows[opLe] = compareRow(kernel.LessOrEqual,
		func(r []uint8, a, b []T) { zip(r, a, b, func(x, y T) uint8 { return boolToUint8(x <= y) }) })
	rows[opGt] = swapOperands(rows[opLt])
	rows[opGe] = swapOperands(rows[opLe])
	rows[opReLU] = unaryRow(func(r, a []T) { each(r, a, func(x T) T { return max(x, 0) }) })
	rows[opAbs] = unaryRow(func(r, a []T) { each(r, a, absolute[T]) })
	rows[opSign] = unaryRow(func(r, a []T) { each(r, a, sign[T]) })
	for _, o := range []op{opFloor, opCeil, opRound, opTrunc} {
		rows[o] = unaryRow(copyRow[T])
	}
	rows[opIsNaN], rows[opIsInf], rows[opIsFinite] = unaryRow(fillFalse[T]), unaryRow(fillFalse[T]),
		unaryRow(fillTrue[T])
}

func absolute[T ordered](x T) T {
	if x > 0 {
		return x
	}
	return 0 - x // -x would be -0 for 0
}

// sign returns 1, 0 or -1. It returns 0 for NaN, as PyTorch does.
func sign[T ordered](x T) T { return T(boolToUint8(x > 0)) - T(boolToUint8(x < 0)) }

func integerRows[T integer](rows []rowFunc) {
	rows[opAdd] = combineRow(kernel.Plus, func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x + y }) })
	rows[opSub] = combineRow(kernel.Minus, func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x - y }) })
	rows[opMul] = combineRow(kernel.Times, func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x * y }) })
	rows[opMaximum] = combineRow(kernel.Larger,
		func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return max(x, y) }) })
	rows[opMinimum] = combineRow(kernel.Smaller,
		func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return min(x, y) }) })
	rows[opNeg] = kernelRow(negateRow[T], func(r, a []T) { each(r, a, func(x T) T { return -x }) })
	rows[opReLU] = kernelRow(rectifyRow[T], func(r, a []T) { each(r, a, func(x T) T { return max(x, 0) }) })
	rows[opAbs] = unaryRow(copyRow[T])
	if T(0)-1 < 0 {
		rows[opAbs] = kernelRow(magnitudesOf[T], func(r, a []T) { each(r, a, absolute[T]) })
	}
	rows[opPower] = binaryRow(func(r, a, b []T) { zip(r, a, b, integerPow[T]) })
	rows[opRemainder] = binaryRow(func(r, a, b []T) { zip(r, a, b, integerRemainder[T]) })
	rows[opFloorDivide] = binaryRow(func(r, a, b []T) { zip(r, a, b, integerFloorDivide[T]) })
}

// integerPow returns base to the power of exp. It wraps around as multiplication does. Negative
// exponents give 1, -1 or 0.
func integerPow[T integer](base, exp T) T {
	if exp < 0 {
		switch {
		case base == 1:
			return 1
		case base+1 == 0:
			return 1 - 2*(exp&1)
		}
		return 0
	}
	result := T(1)
	for ; exp != 0; exp >>= 1 {
		if exp&1 != 0 {
			result *= base
		}
		base *= base
	}
	return result
}

// integerRemainder returns the remainder of x/y with the sign of y. It panics with ErrArgument if
// y is 0.
func integerRemainder[T integer](x, y T) T {
	if y == 0 {
		misuse(ErrArgument, "integer division by zero")
	}
	if q, ok := floorQuotient(x, y); ok {
		return x - q*y
	}
	rest := x % y
	if rest != 0 && (rest < 0) != (y < 0) {
		rest += y
	}
	return rest
}

// floorQuotient returns x/y rounded down. It divides as float64, which takes a third of the time
// of integer division. The result is exact for operands up to 2^53: a quotient that is not an
// integer differs from the next integer by more than the rounding error. ok is false for larger
// operands. y must not be 0.
func floorQuotient[T integer](x, y T) (q T, ok bool) {
	const most = 1 << 53
	if unsafe.Sizeof(x) == 8 && (int64(x) > most || int64(x) < -most || int64(y) > most || int64(y) < -most) {
		return 0, false
	}
	return T(int64(math.Floor(float64(x) / float64(y)))), true
}

// integerFloorDivide returns the quotient rounded down. It panics with ErrArgument if y is 0.
func integerFloorDivide[T integer](x, y T) T {
	if y == 0 {
		misuse(ErrArgument, "integer division by zero")
	}
	if q, ok := floorQuotient(x, y); ok {
		return q
	}
	q := x / y
	if rest := x - q*y; rest != 0 && (rest < 0) != (y < 0) { // rounded up
		q--
	}
	return q
}

// binaryKernel returns the loop of a binary kernel, and unaryKernel the loop of a unary one.
func binaryKernel[T float](f func(x, y, z []T)) rowFunc {
	return binaryRow(func(r, a, b []T) { f(a, b, r) })
}
func unaryKernel[T float](f func(x, y []T)) rowFunc { return unaryRow(func(r, a []T) { f(a, r) }) }

// floatRows sets the operations of floats, including those that the table does not define for both
// dtypes.
func floatRows[T float](rows []rowFunc) {
	rows[opAdd], rows[opSub] = binaryKernel(kernel.Add[T]), binaryKernel(kernel.Sub[T])
	rows[opMul], rows[opDiv] = binaryKernel(kernel.Mul[T]), binaryKernel(kernel.Div[T])
	rows[opMaximum], rows[opMinimum] = binaryKernel(kernel.Max[T]), binaryKernel(kernel.Min[T])
	rows[opIsNaN] = unaryRow(func(r []uint8, a []T) { each(r, a, func(x T) uint8 { return boolToUint8(x != x) }) })
	rows[opIsInf] = unaryRow(func(r []uint8, a []T) {
		each(r, a,
			func(x T) uint8 { return boolToUint8(x == x && x-x != 0) })
	})
	rows[opIsFinite] = unaryRow(func(r []uint8, a []T) { each(r, a, func(x T) uint8 { return boolToUint8(x-x == 0) }) })
	rows[opReLU], rows[opExp] = unaryKernel(kernel.Relu[T]), unaryKernel(kernel.Exp[T])
	rows[opSigmoid], rows[opTanh] = unaryKernel(kernel.Sigmoid[T]), unaryKernel(kernel.Tanh[T])
	for o, row := range operations {
		switch {
		case row.kernel != nil:
			rows[o] = unaryKernel(func(x, y []T) { kernel.Map(*row.kernel, x, y) })
		case row.float2 != nil:
			rows[o] = lift2[T](row.float2)
			if do, ok := any(row.kernel2).(func(x, y, z []T)); ok {
				rows[o] = binaryKernel(do)
			}
		}
	}
	if wide, ok := any(logAddExpRow).(func(x, y, z []T)); ok {
		rows[opLogaddexp] = binaryKernel(wide)
		rows[opAtan2] = binaryKernel(any(atan2Row).(func(x, y, z []T)))
	}
}

// logAddExpRow is logAddExp for rows: the maximum of x and y, plus log(1 + e^-|x-y|).
func logAddExpRow(x, y, z []float64) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	for len(z) > 0 {
		n := min(len(z), chunk)
		larger, rest := bytesAs[float64](bufs.rows[0][:])[:n], bytesAs[float64](bufs.rows[1][:])[:n]
		kernel.Max(x[:n], y[:n], larger)
		kernel.Sub(x[:n], y[:n], rest)
		kernel.Map(kernel.Abs, rest, rest)
		kernel.Map(kernel.Neg, rest, rest)
		kernel.Exp(rest, rest)
		kernel.Map(kernel.Log1p, rest, rest)
		for i, v := range rest {
			if x[i] == y[i] { // the difference of infinities is NaN
				v = math.Ln2
			}
			z[i] = larger[i] + v
		}
		x, y, z = x[n:], y[n:], z[n:]
	}
}

// atan2Row is math.Atan2 for rows.
func atan2Row(y, x, z []float64) {
	bufs := bufferPool.Get().(*buffers)
	defer bufferPool.Put(bufs)
	for len(z) > 0 {
		n := min(len(z), chunk)
		angle, wide := bytesAs[float64](bufs.rows[0][:])[:n], bytesAs[float64](bufs.rows[1][:])[:n]
		kernel.Map(kernel.Abs, y[:n], angle)
		kernel.Map(kernel.Abs, x[:n], wide)
		kernel.Div(angle, wide, angle)
		kernel.Map(kernel.Atan, angle, angle)
		for i, a := range angle {
			if a != a { // both are zero, or both infinite
				z[i] = math.Atan2(y[i], x[i])
				continue
			}
			side := math.Copysign(1, x[i]) // no branch, which would be unpredictable
			z[i] = math.Copysign(math.Pi/2*(1-side)+side*a, y[i])
		}
		x, y, z = x[n:], y[n:], z[n:]
	}
}

func complexRows[T cplx](rows []rowFunc) {
	rows[opDiv] = binaryRow(func(r, a, b []T) { zip(r, a, b, func(x, y T) T { return x / y }) })
	rows[opPower] = binaryRow(func(r, a, b []T) { zip(r, a, b, complexPow[T]) })
	rows[opReciprocal] = unaryRow(func(r, a []T) { each(r, a, func(x T) T { return 1 / x }) })
	rows[opAbs] = magnitudeRow[T]()
	isNaN := func(x complex128) bool { return math.IsNaN(real(x)) || math.IsNaN(imag(x)) }
	isInf := func(x complex128) bool { return isInfinite(real(x)) || isInfinite(imag(x)) }
	rows[opIsNaN] = unaryRow(func(r []uint8, a []T) {
		each(r, a, func(x T) uint8 { return boolToUint8(isNaN(complex128(x))) })
	})
	rows[opIsInf] = unaryRow(func(r []uint8, a []T) {
		each(r, a, func(x T) uint8 { return boolToUint8(isInf(complex128(x))) })
	})
	rows[opIsFinite] = unaryRow(func(r []uint8, a []T) {
		each(r, a, func(x T) uint8 { return boolToUint8(!isNaN(complex128(x)) && !isInf(complex128(x))) })
	})
	for o, row := range operations {
		if row.complex != nil {
			rows[o] = liftComplex[T](row.complex)
		}
	}
}

// complexPow returns x to the power of y. For the exponents that PyTorch does not compute by the
// logarithm either, it is exact.
func complexPow[T cplx](x, y T) T {
	switch y {
	case 0:
		return 1
	case 0.5:
		return T(cmplx.Sqrt(complex128(x)))
	case 1:
		return x
	case 2:
		return x * x
	case 3:
		return x * x * x
	case -0.5:
		return T(complexRsqrt(complex128(x)))
	case -1:
		return 1 / x
	}
	return T(complexPower(complex128(x), complex128(y)))
}

func isInfinite(x float64) bool { return x == x && x-x != 0 }

// complexPower is like cmplx.Pow, but is also accurate for subnormal parts.
func complexPower(x, y complex128) complex128 {
	size := cmplx.Abs(x)
	if x == 0 || isInfinite(size) || size != size {
		return cmplx.Pow(x, y)
	}
	factor, angle := kernel.PowerOf(size, real(y)), cmplx.Phase(x)
	turn := real(y) * angle
	if imag(y) != 0 {
		factor *= math.Exp(-imag(y) * angle)
		turn += imag(y) * kernel.LogOf(size)
	}
	sin, cos := math.Sincos(turn)
	return complex(factor*cos, factor*sin)
}

// complexLog is like cmplx.Log, but is also accurate for subnormal parts.
func complexLog(x complex128) complex128 { return complex(kernel.LogOf(cmplx.Abs(x)), cmplx.Phase(x)) }

// complexLog1p returns log(1+x). For small x it computes |1+x|² - 1 directly, as PyTorch does.
func complexLog1p(x complex128) complex128 {
	a, b := real(x), imag(x)
	if !(cmplx.Abs(x) < 0.5) {
		return complexLog(complex(1+a, b)) // 1 + x would lose the sign of a zero b
	}
	angle, rest := math.Atan2(b, a+1), a*(2+a)+b*b
	if rest == 0 { // |1+x| is 1, or the square underflows
		return complex(a, angle)
	}
	return complex(math.Log1p(rest)/2, angle)
}

// complexExp is like [cmplx.Exp], but a product with exp(a) does not overflow before it must.
func complexExp(x complex128) complex128 {
	a, b := real(x), imag(x)
	switch {
	case b == 0:
		return complex(math.Exp(a), b)
	case a <= maxExp || a-a != 0 || b-b != 0:
		return cmplx.Exp(x)
	}
	sin, cos := math.Sincos(b)
	return complex(timesExp(cos, a), timesExp(sin, a))
}

// maxExp is below the logarithm of the largest float64.
const maxExp = 709

// timesExp returns f·exp(a). It is 0 if f is 0.
func timesExp(f, a float64) float64 {
	if f == 0 {
		return f
	}
	half := math.Exp(a / 2)
	return f * half * half
}

// complexSin and complexCos are like [cmplx.Sin] and [cmplx.Cos], also where cosh(b), which is
// exp(|b|)/2 then, overflows.
func complexSin(x complex128) complex128 {
	a, b := real(x), imag(x)
	if size := math.Abs(b); size > maxExp && size-size == 0 && a-a == 0 {
		sin, cos := math.Sincos(a)
		return complex(timesExp(sin/2, size), timesExp(math.Copysign(cos/2, cos*b), size))
	}
	return cmplx.Sin(x)
}

func complexCos(x complex128) complex128 {
	a, b := real(x), imag(x)
	if size := math.Abs(b); size > maxExp && size-size == 0 && a-a == 0 {
		sin, cos := math.Sincos(a)
		if b > 0 {
			sin = -sin
		}
		return complex(timesExp(cos/2, size), timesExp(sin/2, size))
	}
	return cmplx.Cos(x)
}

// complexTanh is like [cmplx.Tanh], which returns NaN where cosh(2a) overflows. There the result is
// ±1 + 4·sin(b)·cos(b)·exp(-2|a|)·i.
func complexTanh(x complex128) complex128 {
	a, b := real(x), imag(x)
	if size := math.Abs(a); size > maxExp/2 && b-b == 0 {
		return complex(math.Copysign(1, a), 2*math.Sin(2*b)*math.Exp(-2*size))
	}
	return cmplx.Tanh(x)
}

// complexExpm1 returns exp(x)-1. Its real part is expm1(a)·cos(b) - 2·sin²(b/2).
func complexExpm1(x complex128) complex128 {
	a, b := real(x), imag(x)
	half := math.Sin(b / 2)
	sin, cos := math.Sincos(b)
	return complex(math.Expm1(a)*cos-2*half*half, math.Exp(a)*sin)
}

func complexRsqrt(x complex128) complex128 { return 1 / cmplx.Sqrt(x) }

func complexSigmoid(x complex128) complex128 { return 1 / (1 + cmplx.Exp(-x)) }

func magnitudeRow[T cplx]() rowFunc {
	if DTypeOf[T]() == Complex64 {
		return unaryRow(func(r []float32, a []T) {
			each(r, a, func(x T) float32 { return float32(cmplx.Abs(complex128(x))) })
		})
	}
	return unaryRow(func(r []float64, a []T) { each(r, a, func(x T) float64 { return cmplx.Abs(complex128(x)) }) })
}
