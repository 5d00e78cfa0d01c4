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
	t := from.class()
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
	case inFloat64[name] != nil && t.float():
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

// convert converts an element from one type to the class of another.
func (a *asm) convert(to, from Type, v string) string {
	switch {
	case to == Bool && from != Bool:
		test := "setp.ne."
		if from.float() {
			test = "setp.neu."
		}
		return a.truth(a.do(test+string(from.class()), v, number(from.class(), 0)))
	case (to == Float16 || to == BFloat16) && from.class() != Float32:
		return a.cast(Float32, from.class(), v)
	}
	return a.cast(to.class(), from.class(), v)
}

func (a *asm) truth(p string) string { return a.do("selp.s64", "1", "0", p) }

// where selects bits in the narrowest register that holds them.
func where(a *asm, t Type, x ...string) string {
	return a.do("selp."+selectable(t), x[1], x[2], a.do("setp.ne.s64", x[0], "0"))
}

// simple returns an operation that is a single instruction.
func simple(name string) opFunc {
	return func(a *asm, t Type, x ...string) string { return a.do(op(name, t), x...) }
}

func comparing(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		if name == "ne" && t.float() {
			return a.truth(a.do("setp.neu."+string(t), x...))
		}
		return a.truth(a.do("setp."+name+"."+string(t), x...))
	}
}

// rounding returns a conversion to an integral value of the same class.
func rounding(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		return a.do("cvt."+name+"."+string(t)+"."+string(t), x[0])
	}
}

// extreme returns a maximum or minimum that propagates NaN.
func extreme(name string) opFunc {
	return func(a *asm, t Type, x ...string) string {
		nan := a.do("setp.nan."+string(t), x...)
		return a.do("selp."+string(t), a.do(op("add", t), x...), a.do(op(name, t), x...), nan)
	}
}

func constant(v float64) opFunc {
	return func(a *asm, t Type, x ...string) string { return a.do("mov."+string(t), number(t, v)) }
}

func same(a *asm, t Type, x ...string) string { return x[0] }

// sign returns 0 for NaN.
func sign(a *asm, t Type, x ...string) string {
	above := a.do("selp."+string(t), number(t, 1), number(t, 0), a.do("setp.gt."+string(t), x[0], number(t, 0)))
	return a.do("selp."+string(t), number(t, -1), above, a.do("setp.lt."+string(t), x[0], number(t, 0)))
}

// with0 binds the second operand of an operation to 0.
func with0(f opFunc) opFunc {
	return func(a *asm, t Type, x ...string) string { return f(a, t, x[0], a.do("mov."+string(t), number(t, 0))) }
}

// spread returns x - x: 0, or NaN if x is not finite.
func spread(a *asm, t Type, x string) string { return a.do(op("sub", t), x, x) }

var onFloats = map[string]opFunc{
	"Add": simple("add"), "Sub": simple("sub"), "Mul": simple("mul"), "Div": simple("div"),
	"Maximum": extreme("max"), "Minimum": extreme("min"),
	"Eq": comparing("eq"), "Ne": comparing("ne"), "Lt": comparing("lt"), "Le": comparing("le"),
	"Gt": comparing("gt"), "Ge": comparing("ge"),
	"IsNaN": func(a *asm, t Type, x ...string) string { return a.truth(a.do("setp.nan."+string(t), x[0], x[0])) },
	"IsFinite": func(a *asm, t Type, x ...string) string {
		s := spread(a, t, x[0])
		return a.truth(a.do("setp.num."+string(t), s, s))
	},
	"IsInf": func(a *asm, t Type, x ...string) string {
		s := spread(a, t, x[0])
		return a.truth(a.do("and.pred", a.do("setp.nan."+string(t), s, s), a.do("setp.num."+string(t), x[0], x[0])))
	},
	"Neg": simple("neg"), "Abs": simple("abs"), "ReLU": with0(extreme("max")), "Sign": sign,
	"Sqrt": simple("sqrt"), "Reciprocal": simple("rcp"),
	"Floor": rounding("rmi"), "Ceil": rounding("rpi"), "Round": rounding("rni"), "Trunc": rounding("rzi"),
}

var onIntegers = map[string]opFunc{
	"Add": simple("add"), "Sub": simple("sub"), "Mul": simple("mul"), "Maximum": simple("max"),
	"Minimum": simple("min"),
	"Power":   integerPower, "Remainder": integerRemainder, "FloorDivide": integerFloorDivide,
	"Eq": comparing("eq"), "Ne": comparing("ne"), "Lt": comparing("lt"), "Le": comparing("le"),
	"Gt": comparing("gt"), "Ge": comparing("ge"),
	"IsNaN": constant(0), "IsInf": constant(0), "IsFinite": constant(1),
	"Neg": simple("neg"), "Abs": simple("abs"), "ReLU": with0(simple("max")), "Sign": sign,
	"Floor": same, "Ceil": same, "Round": same, "Trunc": same,
}

// onBools maps operations to their definition for Bool in PyTorch: addition is or, multiplication
// is and.
var onBools = map[string]opFunc{
	"Add": simple("max"), "Mul": simple("min"), "Maximum": simple("max"), "Minimum": simple("min"), "Sign": same,
	"Eq": comparing("eq"), "Ne": comparing("ne"), "Lt": comparing("lt"), "Le": comparing("le"),
	"Gt": comparing("gt"), "Ge": comparing("ge"),
	"IsNaN": constant(0), "IsInf": constant(0), "IsFinite": constant(1),
}

// integerPower wraps around on overflow, as multiplication does. A negative exponent yields 1, -1
// or 0.
func integerPower(a *asm, t Type, x ...string) string {
	result, base, exponent := a.do("mov.s64", "1"), a.do("mov.s64", x[0]), a.do("mov.s64", x[1])
	odd := func(v string) string { return a.do("setp.ne.s64", a.do("and.b64", v, "1"), "0") }
	a.when(a.do("setp.lt.s64", exponent, "0"), func() {
		turned := a.do("selp.s64", "-1", "1", odd(exponent))
		a.set(result, "selp.s64", turned, "0", a.do("setp.eq.s64", base, "-1"))
		a.set(result, "selp.s64", "1", result, a.do("setp.eq.s64", base, "1"))
		a.set(exponent, "mov.s64", "0")
	})
	a.while(func() string { return a.do("setp.ne.s64", exponent, "0") }, func() {
		a.set(result, "selp.s64", a.do("mul.lo.s64", result, base), result, odd(exponent))
		a.set(base, "mul.lo.s64", base, base)
		a.set(exponent, "shr.s64", exponent, "1")
	})
	return result
}

// down reports whether a truncated quotient must be decremented to round down: the remainder is not
// 0, and its sign differs from the divisor's.
func (a *asm) down(t Type, rest, divisor string) string {
	zero := number(t, 0)
	other := a.do("xor.pred", a.do("setp.lt."+string(t), rest, zero), a.do("setp.lt."+string(t), divisor, zero))
	return a.do("and.pred", other, a.do("setp.ne."+string(t), rest, zero))
}

func integerRemainder(a *asm, t Type, x ...string) string {
	rest := a.do("rem.s64", x...)
	return a.do("selp.s64", a.do("add.s64", rest, x[1]), rest, a.down(t, rest, x[1]))
}

func integerFloorDivide(a *asm, t Type, x ...string) string {
	quotient := a.do("div.s64", x...)
	return a.do("selp.s64", a.do("sub.s64", quotient, "1"), quotient, a.down(t, a.do("rem.s64", x...), x[1]))
}

// selectable returns the type for a selp instruction: bytes are kept in 4-byte registers.
func selectable(t Type) string {
	if t == Bits8 {
		return string(Bits32)
	}
	return string(t)
}
