package tensor

import (
	"math"
	"math/cmplx"

	"github.com/shoal-mp/shoal/internal/device"
	"github.com/shoal-mp/shoal/internal/kernel"
)

// The elementwise operations. With the rule promoteToFloat, the result of integers is Float32.
// Operations without a function of numbers have their loops in op_rows.go.
var (
	opAdd = binaryOp("Add", "add", operation{})
	opSub = binaryOp("Sub", "sub", operation{notBool: "Xor or Not"})
	opMul = binaryOp("Mul", "mul", operation{})
	opDiv = binaryOp("Div", "div", operation{operands: promoteToFloat})

	opMaximum   = binaryOp("Maximum", "maximum", operation{})
	opMinimum   = binaryOp("Minimum", "minimum", operation{})
	opPower     = binaryOp("Power", "pow", operation{kernel2: kernel.Power, float2: kernel.PowerOf})
	opRemainder = binaryOp("Remainder", "remainder", operation{Op: untrained,
		kernel2: kernel.Remainder, float2: kernel.RemainderOf})
	opHypot = binaryOp("Hypot", "hypot", operation{kernel2: kernel.Hypot, float2: math.Hypot})
	opAtan2 = binaryOp("Atan2", "atan2", operation{operands: promoteToFloat,
		kernel2: kernel.Atan2, float2: math.Atan2})
	opLogaddexp   = binaryOp("Logaddexp", "logaddexp", operation{kernel2: kernel.LogAddExp, float2: logAddExp})
	opFloorDivide = binaryOp("FloorDivide", "floor_divide", operation{Op: stepwise,
		kernel2: kernel.FloorDivide, float2: kernel.FloorDivideOf})

	opEq = binaryOp("Eq", "eq", operation{Op: stepwise, result: alwaysBool})
	opNe = binaryOp("Ne", "ne", operation{Op: stepwise, result: alwaysBool})
	opLt = binaryOp("Lt", "lt", operation{Op: stepwise, result: alwaysBool})
	opLe = binaryOp("Le", "le", operation{Op: stepwise, result: alwaysBool})
	opGt = binaryOp("Gt", "gt", operation{Op: stepwise, result: alwaysBool})
	opGe = binaryOp("Ge", "ge", operation{Op: stepwise, result: alwaysBool})

	opIsNaN    = unaryOp("IsNaN", "isnan", operation{Op: stepwise, result: alwaysBool})
	opIsInf    = unaryOp("IsInf", "isinf", operation{Op: stepwise, result: alwaysBool})
	opIsFinite = unaryOp("IsFinite", "isfinite", operation{Op: stepwise, result: alwaysBool})

	opNeg   = unaryOp("Neg", "neg", operation{kernel: functionPtr(kernel.Neg)})
	opAbs   = unaryOp("Abs", "abs", operation{kernel: functionPtr(kernel.Abs), result: realDType})
	opReLU  = unaryOp("ReLU", "relu", operation{})
	opSign  = unaryOp("Sign", "sign", operation{Op: stepwise, kernel: functionPtr(kernel.Sign)})
	opFloor = unaryOp("Floor", "floor", operation{Op: stepwise, kernel: functionPtr(kernel.Floor)})
	opCeil  = unaryOp("Ceil", "ceil", operation{Op: stepwise, kernel: functionPtr(kernel.Ceil)})
	opRound = unaryOp("Round", "round", operation{Op: stepwise, kernel: functionPtr(kernel.Round)})
	opTrunc = unaryOp("Trunc", "trunc", operation{Op: stepwise, kernel: functionPtr(kernel.Trunc)})

	opExp   = unaryOp("Exp", "exp", operation{operands: promoteToFloat, complex: complexExp})
	opExpm1 = unaryOp("Expm1", "expm1", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Expm1),
		complex: complexExpm1})
	opLog = unaryOp("Log", "log", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Log),
		complex: complexLog})
	opLog1p = unaryOp("Log1p", "log1p", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Log1p),
		complex: complexLog1p})
	opSqrt = unaryOp("Sqrt", "sqrt", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Sqrt),
		complex: cmplx.Sqrt})
	opRsqrt = unaryOp("Rsqrt", "rsqrt", operation{operands: promoteToFloat,
		kernel: functionPtr(kernel.Rsqrt), complex: complexRsqrt})
	opReciprocal = unaryOp("Reciprocal", "reciprocal", operation{operands: promoteToFloat,
		kernel: functionPtr(kernel.Reciprocal)})
	opSin = unaryOp("Sin", "sin", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Sin),
		complex: complexSin})
	opCos = unaryOp("Cos", "cos", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Cos),
		complex: complexCos})
	opTanh    = unaryOp("Tanh", "tanh", operation{operands: promoteToFloat, complex: complexTanh})
	opSigmoid = unaryOp("Sigmoid", "sigmoid", operation{operands: promoteToFloat, complex: complexSigmoid})
	opErf     = unaryOp("Erf", "erf", operation{operands: promoteToFloat, kernel: functionPtr(kernel.Erf)})
)

// opCube raises floats to the power of 3 on the host.
var opCube = unaryOp("Cube", "", operation{kernel: functionPtr(kernel.Cube)})

// Operations that copy elements without computing.
var (
	opCopy      = movingOp("Copy", 1)
	opWhere     = movingOp("Where", 3)
	opAddAtomic = movingOp("AddAtomic", 1)
)

// The reasons why an operation has no gradient: a piecewise constant result, and others.
var (
	stepwise  = device.Op{NoGradient: "its derivative is 0 wherever it is defined"}
	untrained = device.Op{NoGradient: "not implemented, because training does not use it"}
)

func functionPtr(f kernel.Function) *kernel.Function { return &f }

// promoteToFloat is the dtype rule of operations such as sin: integers become Float32.
func promoteToFloat(dt DType) DType { return dt.floatDType() }

// alwaysBool is the dtype rule of comparisons: the result is Bool.
func alwaysBool(DType) DType { return Bool }

// realDType is the dtype rule of Abs: complex dtypes become real.
func realDType(dt DType) DType {
	switch dt {
	case Complex64:
		return Float32
	case Complex128:
		return Float64
	}
	return dt
}

// logAddExp returns log(eˣ + eʸ) without overflow of eˣ.
func logAddExp(x, y float64) float64 {
	if x == y { // the difference of infinities is NaN
		return x + math.Ln2
	}
	return max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}
