package vm

import (
	"math"
	"math/bits"
	"unsafe"
)

// A scalar is a PTX type. Its kind is u, s, f, b (bits) or p (predicate), and its size is in
// bytes. The zero scalar is an untyped operand.
type scalar struct {
	kind byte
	size int
}

var types = map[string]scalar{
	"pred": {'p', 1}, "b8": {'b', 1}, "b16": {'b', 2}, "b32": {'b', 4}, "b64": {'b', 8},
	"u8": {'u', 1}, "u16": {'u', 2}, "u32": {'u', 4}, "u64": {'u', 8}, "s8": {'s', 1}, "s16": {'s', 2},
	"s32": {'s', 4}, "s64": {'s', 8},
	"f16": {'f', 2}, "f32": {'f', 4}, "f64": {'f', 8},
}

// truncateBits returns the low bits of v that fit the type. A type of size 0 keeps all bits.
func (t scalar) truncateBits(v uint64) uint64 {
	if t.kind == 'p' {
		return v & 1
	}
	if t.size == 0 {
		return v
	}
	return v << (64 - 8*t.size) >> (64 - 8*t.size)
}

// A function computes the result of an instruction from the bits of its operands.
type function = func(a, b, c uint64) uint64

// functionOf returns the function of an instruction and its number of operands, or nil if the
// instruction is not supported. The instruction must have a type. functionOf removes the
// modifiers that it handles from the opcode.
func (o *opcode) functionOf() (function, int) {
	t := o.types[0]
	switch o.name {
	case "mov", "cvta":
		return func(a, _, _ uint64) uint64 { return a }, 1
	case "selp":
		return func(a, b, p uint64) uint64 {
			if p != 0 {
				return a
			}
			return b
		}, 3
	case "cvt":
		if len(o.types) != 2 {
			return nil, 0
		}
		return o.convert(o.types[0], o.types[1]), 1
	case "and":
		return func(a, b, _ uint64) uint64 { return a & b }, 2
	case "or":
		return func(a, b, _ uint64) uint64 { return a | b }, 2
	case "xor":
		return func(a, b, _ uint64) uint64 { return a ^ b }, 2
	case "not":
		return func(a, _, _ uint64) uint64 { return t.truncateBits(^a) }, 1
	}
	switch t.kind {
	case 'f':
		return o.floatFunction(t)
	case 's', 'u', 'b':
		return o.integerFunction(t)
	}
	return nil, 0
}

// floatFunction returns the function of an instruction on floats and its number of operands, or nil
// if the instruction is not supported. The function computes in float64. The double rounding to
// float32 is harmless except for fma, where it may rarely return the neighboring float32.
func (o *opcode) floatFunction(t scalar) (function, int) {
	var read func(uint64) float64
	var write func(float64) uint64
	switch t.size {
	case 4:
		read, write = readFloat32, writeFloat32
	case 8:
		read, write = math.Float64frombits, math.Float64bits
	default:
		return nil, 0
	}
	if o.name == "setp" {
		f := compareFloats[o.takeFirst()]
		if f == nil {
			return nil, 0
		}
		return func(a, b, _ uint64) uint64 { return boolWord(f(read(a), read(b))) }, 2
	}
	if o.name == "div" && o.takeModifier("rz") {
		if t.size != 8 {
			return nil, 0
		}
		return func(a, b, _ uint64) uint64 { return write(truncatedQuotient(read(a), read(b))) }, 2
	}
	if f := unaryFloat[o.name]; f != nil {
		return func(a, _, _ uint64) uint64 { return write(f(read(a))) }, 1
	}
	if f := binaryFloat[o.name]; f != nil {
		return func(a, b, _ uint64) uint64 { return write(f(read(a), read(b))) }, 2
	}
	if o.name == "fma" {
		return func(a, b, c uint64) uint64 { return write(math.FMA(read(a), read(b), read(c))) }, 3
	}
	return nil, 0
}

func readFloat32(v uint64) float64  { return float64(math.Float32frombits(uint32(v))) }
func writeFloat32(v float64) uint64 { return uint64(math.Float32bits(float32(v))) }

// truncatedQuotient returns a/b, rounded towards 0.
func truncatedQuotient(a, b float64) float64 {
	q := a / b
	if rest := math.FMA(-q, b, a); rest != 0 && !math.IsInf(q, 0) && (rest < 0) != (a < 0) {
		return math.Nextafter(q, 0)
	}
	return q
}

func boolWord(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

var unaryFloat = map[string]func(a float64) float64{
	"neg": func(a float64) float64 { return -a }, "abs": math.Abs, "sqrt": math.Sqrt,
	"rcp": func(a float64) float64 { return 1 / a },
	"ex2": math.Exp2, "lg2": math.Log2,
}

var binaryFloat = map[string]func(a, b float64) float64{
	"add": func(a, b float64) float64 { return a + b },
	"sub": func(a, b float64) float64 { return a - b },
	"mul": func(a, b float64) float64 { return a * b },
	"div": func(a, b float64) float64 { return a / b },
	"min": func(a, b float64) float64 { return ignoreNaN(a, b, math.Min) },
	"max": func(a, b float64) float64 { return ignoreNaN(a, b, math.Max) },
}

// ignoreNaN returns f(a, b), or the other argument if one is NaN.
func ignoreNaN(a, b float64, f func(a, b float64) float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return f(a, b)
}

var compareFloats = map[string]func(a, b float64) bool{
	"eq": func(a, b float64) bool { return a == b }, "ne": func(a, b float64) bool { return a < b || a > b },
	"lt": func(a, b float64) bool { return a < b }, "le": func(a, b float64) bool { return a <= b },
	"gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b },
	"ltu": func(a, b float64) bool { return !(a >= b) }, "leu": func(a, b float64) bool { return !(a > b) },
	"gtu": func(a, b float64) bool { return !(a <= b) }, "geu": func(a, b float64) bool { return !(a < b) },
	"equ": func(a, b float64) bool { return !(a < b || a > b) }, "neu": func(a, b float64) bool { return a != b },
	"nan": func(a, b float64) bool { return a != a || b != b },
	"num": func(a, b float64) bool { return a == a && b == b },
}

// integerFunction returns the function of an instruction on integers and its number of operands, or
// nil if the instruction is not supported. The function computes in the Go type with the size and
// sign of t.
func (o *opcode) integerFunction(t scalar) (function, int) {
	signed := t.kind == 's'
	switch {
	case t.size == 2 && signed:
		return typedIntegerFunction[int16](o, t)
	case t.size == 2:
		return typedIntegerFunction[uint16](o, t)
	case t.size == 4 && signed:
		return typedIntegerFunction[int32](o, t)
	case t.size == 4:
		return typedIntegerFunction[uint32](o, t)
	case t.size == 8 && signed:
		return typedIntegerFunction[int64](o, t)
	case t.size == 8:
		return typedIntegerFunction[uint64](o, t)
	}
	return nil, 0
}

type integer interface {
	int16 | uint16 | int32 | uint32 | int64 | uint64
}

// typedIntegerFunction is [opcode.integerFunction] for the Go type T, which corresponds to t.
func typedIntegerFunction[T integer](o *opcode, t scalar) (function, int) {
	write := func(v T) uint64 { return uint64(v) << (64 - 8*unsafe.Sizeof(v)) >> (64 - 8*unsafe.Sizeof(v)) }
	binary := func(f func(a, b T) T) (function, int) {
		return func(a, b, _ uint64) uint64 { return write(f(T(a), T(b))) }, 2
	}
	compare := func(f func(a, b T) bool) (function, int) {
		return func(a, b, _ uint64) uint64 { return boolWord(f(T(a), T(b))) }, 2
	}
	switch o.name {
	case "add":
		return binary(func(a, b T) T { return a + b })
	case "sub":
		return binary(func(a, b T) T { return a - b })
	case "min":
		return binary(func(a, b T) T { return min(a, b) })
	case "max":
		return binary(func(a, b T) T { return max(a, b) })
	case "div": // division by zero is unspecified
		return binary(func(a, b T) T {
			if b == 0 {
				return ^T(0)
			}
			return a / b
		})
	case "rem":
		return binary(func(a, b T) T {
			if b == 0 {
				return a
			}
			return a % b
		})
	case "shl":
		return func(a, b, _ uint64) uint64 { return write(T(a) << uint32(b)) }, 2
	case "shr":
		return func(a, b, _ uint64) uint64 { return write(T(a) >> uint32(b)) }, 2
	case "neg":
		return func(a, _, _ uint64) uint64 { return write(-T(a)) }, 1
	case "abs":
		return func(a, _, _ uint64) uint64 { return write(max(T(a), -T(a))) }, 1
	case "mul", "mad":
		return multiply[T](o, t, write)
	case "setp":
		switch o.takeFirst() {
		case "eq":
			return compare(func(a, b T) bool { return a == b })
		case "ne":
			return compare(func(a, b T) bool { return a != b })
		case "lt":
			return compare(func(a, b T) bool { return a < b })
		case "le":
			return compare(func(a, b T) bool { return a <= b })
		case "gt":
			return compare(func(a, b T) bool { return a > b })
		case "ge":
			return compare(func(a, b T) bool { return a >= b })
		}
	}
	return nil, 0
}

// multiply returns the function of mul or mad and its number of operands, or nil if the instruction
// is not supported. The function computes the low half, the high half, or the whole product. write
// converts a T to the contents of a register.
func multiply[T integer](o *opcode, t scalar, write func(T) uint64) (function, int) {
	var f function
	switch part := o.takeFirst(); {
	case part == "lo":
		f = func(a, b, c uint64) uint64 { return write(T(a)*T(b) + T(c)) }
	case part == "wide" && t.size == 4 && t.kind == 's':
		f = func(a, b, c uint64) uint64 { return uint64(int64(T(a))*int64(T(b))) + c }
	case part == "wide" && t.size == 4:
		f = func(a, b, c uint64) uint64 { return uint64(T(a))*uint64(T(b)) + c }
	case part == "hi" && t == scalar{'u', 4}:
		f = func(a, b, c uint64) uint64 { return uint64(uint32(a*b>>32 + c)) }
	case part == "hi" && t == scalar{'u', 8}:
		f = func(a, b, c uint64) uint64 {
			hi, _ := bits.Mul64(a, b)
			return hi + c
		}
	default:
		return nil, 0
	}
	if o.name == "mad" {
		return f, 3
	}
	return func(a, b, _ uint64) uint64 { return f(a, b, 0) }, 2
}
