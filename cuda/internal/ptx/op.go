package ptx

// An opFunc emits code that computes one element from its operands, which are of class t, and
// returns the result's register.
type opFunc = func(a *asm, t Type, x ...string) string

// Map returns the kernel of an elementwise operation, by its name: an operation of package tensor,
// or one of those that device.Computer lists. The operands follow the output; AddAtomic adds its
// operand to the output. The second result is false if there is no kernel for these types.
func Map(name string, out Type, in ...Operand) (Kernel, bool) {
	e := each{name: name, operands: []access{{out, writes}}}
	for _, o := range in {
		m := reads
		if o.Number {
			m = inNumber
		}
		e.operands = append(e.operands, access{o.Type, m})
	}
	from := in[len(in)-1].Type
	t := from.computeType()
	var f opFunc
	switch {
	case name == "AddAtomic" && (out == Float32 || out == Float64 || out == Int32 || out == Int64):
		e.operands[0].mode = adds
		f = func(a *asm, t Type, x ...string) string { return x[0] }
	case name == "Copy":
		f = func(a *asm, t Type, x ...string) string { return a.convert(out, from, x[0]) }
	case name == "Where":
		f = where
	case from == Bool:
		f = onBools[name]
	case t == Int64:
		f = onIntegers[name]
	case onFloats[name] != nil:
		f = onFloats[name]
	case gates[name] != nil:
		f = gates[name]
	case t == Float32 && inFloat32[name] != nil:
		f = inFloat32[name]
	case inFloat64[name] != nil && t.isFloat():
		f = func(a *asm, t Type, x ...string) string {
			wide := make([]string, len(x))
			for i, v := range x {
				wide[i] = a.cast(Float64, t, v)
			}
			return a.cast(t, Float64, inFloat64[name](a, Float64, wide...))
		}
	}
	if f == nil {
		return Kernel{}, false
	}
	e.body = func(a *asm, x []string, _ string, _ int) []string { return []string{f(a, t, x[1:]...)} }
	return e.kernel(), true
}

// convert converts v, an element of type from in its class, to the class of type to, as Copy
// does: to Bool, 1 if v is not 0 and otherwise 0.
func (a *asm) convert(to, from Type, v string) string {
	switch {
	case to == Bool && from != Bool:
		test := "setp.ne."
		if from.isFloat() {
			test = "setp.neu."
		}
		return a.boolToInt(a.emitResult(test+string(from.computeType()), v, formatConst(from.computeType(), 0)))
	case (to == Float16 || to == BFloat16) && from.computeType() != Float32:
		return a.cast(Float32, from.computeType(), v)
	}
	return a.cast(to.computeType(), from.computeType(), v)
}

func (a *asm) boolToInt(p string) string { return a.emitResult("selp.s64", "1", "0", p) }

// where returns x[1] if x[0] is not 0, and otherwise x[2]. It selects bits in the narrowest
// register that holds them.
func where(a *asm, t Type, x ...string) string {
	return a.emitResult("selp."+selpType(t), x[1], x[2], a.emitResult("setp.ne.s64", x[0], "0"))
}

// singleInstruction returns an operation that is a single instruction. The name must not include
// the type, which [op] appends.
func singleInstruction(name string) opFunc {
	return func(a *asm, t Type, x ...string) string { return a.emitResult(op(name, t), x...) }
}

func comparison(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		if name == "ne" && t.isFloat() {
			return a.boolToInt(a.emitResult("setp.neu."+string(t), x...))
		}
		return a.boolToInt(a.emitResult("setp."+name+"."+string(t), x...))
	}
}

// rounding returns the operation that rounds to an integral value of the same class. name is
// the rounding modifier of cvt, such as rni.
func rounding(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		return a.emitResult("cvt."+name+"."+string(t)+"."+string(t), x[0])
	}
}

// nanExtreme returns the operation with the given name, max or min, but with a result of NaN if
// an operand is NaN.
func nanExtreme(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		nan := a.emitResult("setp.nan."+string(t), x...)
		return a.emitResult("selp."+string(t), a.emitResult(op("add", t), x...), a.emitResult(op(name, t), x...), nan)
	}
}

func constant(v float64) opFunc {
	return func(a *asm, t Type, x ...string) string { return a.emitResult("mov."+string(t), formatConst(t, v)) }
}

func identity(a *asm, t Type, x ...string) string { return x[0] }

// sign returns 1, -1 or 0 as x is positive, negative or zero. It returns 0 for NaN.
func sign(a *asm, t Type, x ...string) string {
	above := a.emitResult("selp."+string(t), formatConst(t, 1), formatConst(t, 0),
		a.emitResult("setp.gt."+string(t), x[0], formatConst(t, 0)))
	return a.emitResult("selp."+string(t), formatConst(t, -1), above,
		a.emitResult("setp.lt."+string(t), x[0], formatConst(t, 0)))
}

// bindZero returns the operation f of one operand and 0.
func bindZero(f opFunc) opFunc {
	return func(a *asm, t Type, x ...string) string {
		return f(a, t, x[0], a.emitResult("mov."+string(t), formatConst(t, 0)))
	}
}

// subtractSelf returns x - x: 0, or NaN if x is not finite.
func subtractSelf(a *asm, t Type, x string) string { return a.emitResult(op("sub", t), x, x) }

var onFloats = map[string]opFunc{
	"Add": singleInstruction("add"), "Sub": singleInstruction("sub"), "Mul": singleInstruction("mul"),
	"Div":     singleInstruction("div"),
	"Maximum": nanExtreme("max"), "Minimum": nanExtreme("min"),
	"Eq": comparison("eq"), "Ne": comparison("ne"), "Lt": comparison("lt"), "Le": comparison("le"),
	"Gt": comparison("gt"), "Ge": comparison("ge"),
	"IsNaN": func(a *asm, t Type, x ...string) string {
		return a.boolToInt(a.emitResult("setp.nan."+string(t), x[0], x[0]))
	},
	"IsFinite": func(a *asm, t Type, x ...string) string {
		s := subtractSelf(a, t, x[0])
		return a.boolToInt(a.emitResult("setp.num."+string(t), s, s))
	},
	"IsInf": func(a *asm, t Type, x ...string) string {
		s := subtractSelf(a, t, x[0])
		return a.boolToInt(a.emitResult("and.pred", a.emitResult("setp.nan."+string(t), s, s),
			a.emitResult("setp.num."+string(t), x[0], x[0])))
	},
	"Neg": singleInstruction("neg"), "Abs": singleInstruction("abs"), "ReLU": bindZero(nanExtreme("max")), "Sign": sign,
	"Sqrt": singleInstruction("sqrt"), "Reciprocal": singleInstruction("rcp"),
	"Floor": rounding("rmi"), "Ceil": rounding("rpi"), "Round": rounding("rni"), "Trunc": rounding("rzi"),
}

var onIntegers = map[string]opFunc{
	"Add": singleInstruction("add"), "Sub": singleInstruction("sub"), "Mul": singleInstruction("mul"),
	"Maximum": singleInstruction("max"),
	"Minimum": singleInstruction("min"),
	"Power":   integerPower, "Remainder": integerRemainder, "FloorDivide": integerFloorDivide,
	"Eq": comparison("eq"), "Ne": comparison("ne"), "Lt": comparison("lt"), "Le": comparison("le"),
	"Gt": comparison("gt"), "Ge": comparison("ge"),
	"IsNaN": constant(0), "IsInf": constant(0), "IsFinite": constant(1),
	"Neg": singleInstruction("neg"), "Abs": singleInstruction("abs"), "ReLU": bindZero(singleInstruction("max")),
	"Sign":  sign,
	"Floor": identity, "Ceil": identity, "Round": identity, "Trunc": identity,
}

// onBools maps operations to their definition for Bool in PyTorch: addition is or, multiplication
// is and.
var onBools = map[string]opFunc{
	"Add": singleInstruction("max"), "Mul": singleInstruction("min"), "Maximum": singleInstruction("max"),
	"Minimum": singleInstruction("min"), "Sign": identity,
	"Eq": comparison("eq"), "Ne": comparison("ne"), "Lt": comparison("lt"), "Le": comparison("le"),
	"Gt": comparison("gt"), "Ge": comparison("ge"),
	"IsNaN": constant(0), "IsInf": constant(0), "IsFinite": constant(1),
}

// integerPower returns x[0] to the power of x[1]. It wraps around on overflow, as
// multiplication does. A negative exponent yields 1, -1 or 0.
func integerPower(a *asm, t Type, x ...string) string {
	result, base, exponent := a.emitResult("mov.s64", "1"), a.emitResult("mov.s64", x[0]), a.emitResult("mov.s64", x[1])
	odd := func(v string) string { return a.emitResult("setp.ne.s64", a.emitResult("and.b64", v, "1"), "0") }
	a.emitIf(a.emitResult("setp.lt.s64", exponent, "0"), func() {
		turned := a.emitResult("selp.s64", "-1", "1", odd(exponent))
		a.set(result, "selp.s64", turned, "0", a.emitResult("setp.eq.s64", base, "-1"))
		a.set(result, "selp.s64", "1", result, a.emitResult("setp.eq.s64", base, "1"))
		a.set(exponent, "mov.s64", "0")
	})
	a.emitWhile(func() string { return a.emitResult("setp.ne.s64", exponent, "0") }, func() {
		a.set(result, "selp.s64", a.emitResult("mul.lo.s64", result, base), result, odd(exponent))
		a.set(base, "mul.lo.s64", base, base)
		a.set(exponent, "shr.s64", exponent, "1")
	})
	return result
}

// needsDecrement returns a predicate that is true if a truncated quotient must be decremented
// to round down: the remainder is not 0, and its sign differs from the divisor's.
func (a *asm) needsDecrement(t Type, rest, divisor string) string {
	zero := formatConst(t, 0)
	other := a.emitResult("xor.pred", a.emitResult("setp.lt."+string(t), rest, zero),
		a.emitResult("setp.lt."+string(t), divisor, zero))
	return a.emitResult("and.pred", other, a.emitResult("setp.ne."+string(t), rest, zero))
}

func integerRemainder(a *asm, t Type, x ...string) string {
	rest := a.emitResult("rem.s64", x...)
	return a.emitResult("selp.s64", a.emitResult("add.s64", rest, x[1]), rest, a.needsDecrement(t, rest, x[1]))
}

func integerFloorDivide(a *asm, t Type, x ...string) string {
	quotient := a.emitResult("div.s64", x...)
	return a.emitResult("selp.s64", a.emitResult("sub.s64", quotient, "1"), quotient,
		a.needsDecrement(t, a.emitResult("rem.s64", x...), x[1]))
}

// selpType returns the type for a selp or mov instruction: bytes are kept in 4-byte registers.
func selpType(t Type) string {
	if t == Bits8 {
		return string(Bits32)
	}
	return string(t)
}
