package tensor

// An Op is an elementwise operation: for each dtype that is computed with, a function on contiguous
// rows, or what a Computer has.
type Op uint8

type op = Op

// The operations of one kind stand together, see result.
const (
	opAdd op = iota // of two numbers, a number of their dtype
	opSub
	opMul
	opMax
	opMin
	opPow
	opRemainder
	opFloorDivide

	opEq // of two numbers, Bool
	opNe
	opLt
	opLe
	opGt
	opGe

	opIsNaN // of one number, Bool
	opIsInf
	opIsFinite

	opNeg // of one number, a number of its dtype
	opAbs
	opRelu
	opSign
	opFloor
	opCeil
	opRound
	opTrunc

	opDiv // of fractions: integers become some
	opExp
	opExpm1
	opLog
	opLog1p
	opSqrt
	opRsqrt
	opReciprocal
	opSin
	opCos
	opTanh
	opSigmoid
	opErf

	ops = iota
)

// What is done element by element without computing.
const (
	opCopy op = ops + iota
	opWhere
	opAddAtomic
)

var opNames = [...]string{
	"Add", "Sub", "Mul", "Maximum", "Minimum", "Pow", "Remainder", "FloorDivide",
	"Eq", "Ne", "Lt", "Le", "Gt", "Ge", "IsNaN", "IsInf", "IsFinite",
	"Neg", "Abs", "Relu", "Sign", "Floor", "Ceil", "Round", "Trunc",
	"Div", "Exp", "Expm1", "Log", "Log1p", "Sqrt", "Rsqrt", "Reciprocal", "Sin", "Cos", "Tanh", "Sigmoid", "Erf",
	"Copy", "Where", "AddAtomic",
}

// String returns the name of the function that applies it, such as Add.
func (o Op) String() string { return opNames[o] }

// Into sets the elements of out to o of those of in, as a Computer's Map does, and returns out.
// Shapes are broadcast to out's, and dtypes converted to those that o has for the first operand's.
func (o Op) Into(out *Tensor, in ...*Tensor) *Tensor {
	switch o {
	case opCopy:
		return out.CopyFrom(in[0])
	case opWhere:
		return choice(out.dtype).apply(out, in...)
	case opAddAtomic:
		return out.AddAtomic(in[0])
	}
	return o.rows(in[0].dtype).apply(out, in...)
}

// operands returns the dtype that o computes in where the operands meet in dt.
func (o op) operands(dt DType) DType {
	if o >= opDiv {
		return dt.floating()
	}
	return dt
}

// result returns the dtype that o makes of operands that it computes in dt.
func (o op) result(dt DType) DType {
	switch {
	case o >= opEq && o <= opIsFinite:
		return Bool
	case o == opAbs && dt == Complex64:
		return Float32
	case o == opAbs && dt == Complex128:
		return Float64
	}
	return dt
}

// rows returns how o is computed for operands that meet in dt.
func (o op) rows(dt DType) rows {
	dt = dt.computed()
	run := dt.numeric().rows[o]
	if run == nil {
		misuse("%v is not defined for %v", o, dt)
	}
	return rows{op: o, in: [3]DType{dt, dt, dt}, out: o.result(dt), run: run}
}

// meet returns the dtype that o computes in for a and b.
func (o op) meet(a, b *Tensor) DType {
	if o == opSub && (a.dtype == Bool || b.dtype == Bool) {
		misuse("Sub with a tensor of bool: use Xor or Not")
	}
	return o.operands(promote(a, b))
}

// two returns a new tensor of o applied to a and b, broadcast and promoted.
func (o op) two(a, b *Tensor) *Tensor {
	dt := o.meet(a, b)
	return o.rows(dt).apply(emptyFor(o.result(dt), broadcast(a.shape, b.shape), a, b), a, b)
}

// one returns a new tensor of o applied to a.
func (o op) one(a *Tensor) *Tensor {
	dt := o.operands(a.dtype)
	return o.rows(dt).apply(a.NewEmpty(o.result(dt), a.shape...), a)
}

// into applies o to t and b, if there is one, and stores the result in t.
func (o op) into(t *Tensor, b ...*Tensor) *Tensor {
	dt := o.operands(t.dtype)
	for _, x := range b {
		dt = o.meet(t, x)
	}
	t.wantRoom(dt)
	return o.rows(dt).apply(t, append([]*Tensor{t}, b...)...)
}
