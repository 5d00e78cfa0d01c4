package tensor

// An op is an elementwise operation: for each dtype that is computed with, a function on contiguous rows.
type op uint8

const (
	opAdd op = iota
	opSub
	opMul
	opDiv
	opMax
	opMin
	opPow
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opNeg
	opAbs
	opRelu
	opSign
	opExp
	opLog
	opSqrt
	opTanh
	opSigmoid
)

var opNames = [...]string{
	"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow", "Eq", "Ne", "Lt", "Le", "Gt", "Ge",
	"Neg", "Abs", "Relu", "Sign", "Exp", "Log", "Sqrt", "Tanh", "Sigmoid",
}

func (o op) String() string { return opNames[o] }

// compares reports whether the result is Bool.
func (o op) compares() bool { return o >= opEq && o <= opGe }

// A rowFunc computes a row from one or two rows.
type rowFunc = func(out []byte, in [3][]byte)

func pairwise[T, R any](f func(r []R, a, b []T)) rowFunc {
	return func(out []byte, in [3][]byte) { f(typed[R](out), typed[T](in[0]), typed[T](in[1])) }
}

func single[T, R any](f func(r []R, a []T)) rowFunc {
	return func(out []byte, in [3][]byte) { f(typed[R](out), typed[T](in[0])) }
}

// on returns the operation for elements of d, which is a dtype that is computed with.
func (o op) on(d DType) rowFunc {
	var f rowFunc
	switch d {
	case Bool:
		f = boolOp(o)
	case Uint8:
		f = integerOp[uint8](o)
	case Int8:
		f = integerOp[int8](o)
	case Int16:
		f = integerOp[int16](o)
	case Int32:
		f = integerOp[int32](o)
	case Int64:
		f = integerOp[int64](o)
	case Float32:
		f = floatOp[float32](o)
	case Float64:
		f = floatOp[float64](o)
	case Complex64:
		f = complexOp[complex64](o)
	case Complex128:
		f = complexOp[complex128](o)
	}
	if f == nil {
		misuse("%v is not defined for %v", o, d)
	}
	return f
}

// boolOp has what PyTorch defines: addition is or, multiplication is and.
func boolOp(o op) rowFunc {
	switch o {
	case opAdd, opMax:
		return pairwise(maximumRow[uint8])
	case opMul, opMin:
		return pairwise(minimumRow[uint8])
	}
	if o.compares() {
		return orderedOp[uint8](o)
	}
	return nil
}

func integerOp[T integer](o op) rowFunc {
	if o == opPow {
		return pairwise(integerPowRow[T])
	}
	return orderedOp[T](o)
}

func floatOp[T float](o op) rowFunc {
	switch o {
	case opDiv:
		return pairwise(divRow[T])
	case opPow:
		return pairwise(powRow[T])
	case opExp:
		return single(expRow[T])
	case opLog:
		return single(logRow[T])
	case opSqrt:
		return single(sqrtRow[T])
	case opTanh:
		return single(tanhRow[T])
	case opSigmoid:
		return single(sigmoidRow[T])
	}
	return orderedOp[T](o)
}

func orderedOp[T ordered](o op) rowFunc {
	switch o {
	case opMax:
		return pairwise(maximumRow[T])
	case opMin:
		return pairwise(minimumRow[T])
	case opLt:
		return pairwise(ltRow[T])
	case opLe:
		return pairwise(leRow[T])
	case opGt:
		return pairwise(gtRow[T])
	case opGe:
		return pairwise(geRow[T])
	case opAbs:
		return single(absRow[T])
	case opRelu:
		return single(reluRow[T])
	case opSign:
		return single(signRow[T])
	}
	return arithmeticOp[T](o)
}

func arithmeticOp[T ordered | cplx](o op) rowFunc {
	switch o {
	case opAdd:
		return pairwise(addRow[T])
	case opSub:
		return pairwise(subRow[T])
	case opMul:
		return pairwise(mulRow[T])
	case opNeg:
		return single(negRow[T])
	case opEq:
		return pairwise(eqRow[T])
	case opNe:
		return pairwise(neRow[T])
	}
	return nil
}

func complexOp[T cplx](o op) rowFunc {
	switch o {
	case opDiv:
		return pairwise(divRow[T])
	case opPow:
		return pairwise(complexPowRow[T])
	case opExp:
		return single(complexExpRow[T])
	case opLog:
		return single(complexLogRow[T])
	case opSqrt:
		return single(complexSqrtRow[T])
	}
	return arithmeticOp[T](o)
}
