package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// function is a function of one number. of emits its computation for a register and returns the
// register of the result; it may overwrite its argument.
type function struct {
	name, what string
	of         func(v vector, x reg.VecVirtual) reg.VecVirtual
	short      bool // float32 only, because its polynomial is not accurate enough for float64
}

// functions must be in the order of the constants of package kernel.
var functions = []function{
	{name: "Neg", what: "-x",
		of: func(v vector, x reg.VecVirtual) reg.VecVirtual { v.xor(v.sign(), x, x); return x }},
	{name: "Abs", what: "the magnitude of x", of: vector.abs},
	{name: "Sign", what: "1 with the sign of x, and 0 where x is 0 or NaN,", of: vector.signum},
	{name: "Floor", what: "x rounded down", of: roundWithMode(1)},
	{name: "Ceil", what: "x rounded up", of: roundWithMode(2)},
	{name: "Round", what: "x rounded to the nearest, halves to even,", of: roundWithMode(0)},
	{name: "Trunc", what: "x rounded towards 0", of: roundWithMode(3)},
	{name: "Sqrt", what: "the square root of x", of: vector.root},
	{name: "Rsqrt", what: "1/√x", of: func(v vector, x reg.VecVirtual) reg.VecVirtual { return v.over(v.root(x)) }},
	{name: "Reciprocal", what: "1/x", of: vector.over},
	{name: "Cube", what: "x·x·x", of: vector.cube},
	{name: "Log", what: "the natural logarithm of x", of: vector.log},
	{name: "Log1p", what: "the natural logarithm of 1+x", of: vector.log1p},
	{name: "Expm1", what: "e to the power of x, less 1,", of: vector.expm1},
	{name: "Sin", what: "the sine of x", of: func(v vector, x reg.VecVirtual) reg.VecVirtual { return v.wave(x, 0) }},
	{name: "Cos", what: "the cosine of x", of: func(v vector, x reg.VecVirtual) reg.VecVirtual { return v.wave(x, 1) }},
	{name: "Atan", what: "the angle with tangent x", of: vector.atan, short: true},
	{name: "Erf", what: "the error function of x", of: vector.erf, short: true},
}

// in reports whether f supports the number type of v.
func (f function) in(v vector) bool { return v.single() || !f.short }

// roundWithMode returns a function that emits rounding with the given mode of the processor: 0
// to nearest even, 1 down, 2 up, 3 towards 0.
func roundWithMode(mode uint8) func(v vector, x reg.VecVirtual) reg.VecVirtual {
	return func(v vector, x reg.VecVirtual) reg.VecVirtual { return v.round(x, mode) }
}

func writeFunctions(vectors []vector) {
	for _, v := range vectors {
		for _, f := range functions {
			if f.in(v) {
				v.apart(f.name, f.what, func(x reg.VecVirtual) reg.VecVirtual { return f.of(v, x) })
			}
		}
		if !v.single() {
			v.polars()
		}
		v.clamp()
		largest, least := v.largest, v.least
		if v.neon {
			largest, least = v.extremeInstruction(true), v.extremeInstruction(false)
		}
		v.extreme("Max", "larger", largest)
		v.extreme("Min", "smaller", least)
		v.extremes("Largest", "largest", largest)
		v.extremes("Smallest", "smallest", least)
		v.columnExtremes("ColumnsLargest", "largest", largest)
		v.columnExtremes("ColumnsSmallest", "smallest", least)
	}
}

func (v vector) abs(x reg.VecVirtual) reg.VecVirtual {
	sign := v.fresh()
	v.move(v.sign(), sign)
	v.andNot(x, sign, x)
	return x
}

func (v vector) signum(x reg.VecVirtual) reg.VecVirtual {
	zero, one, sign, size := v.fresh(), v.fresh(), v.fresh(), v.fresh()
	v.zero(zero)
	v.move(v.constant(1), one)
	v.move(v.sign(), sign)
	v.andNot(x, sign, size)
	some := v.compare(greater, zero, size)
	v.withSign(sign, x, one)
	return v.where(some, one)
}

// round emits the rounding of x in place with the given mode of the processor, and returns x.
func (v vector) round(x reg.VecVirtual, mode uint8) reg.VecVirtual {
	switch {
	case v.wide && v.single():
		VRNDSCALEPS(U8(mode), x, x)
	case v.wide:
		VRNDSCALEPD(U8(mode), x, x)
	case v.single():
		VROUNDPS(U8(mode), x, x)
	default:
		VROUNDPD(U8(mode), x, x)
	}
	return x
}

// root emits the correctly rounded square root of x in place, and returns x.
//
// The instruction VSQRTPS takes longer than everything else done with a register. For float32,
// AVX-512 therefore starts with the 14-bit estimate of 1/√x. One Newton step yields 23 bits of
// 1/√x and of the root g = x/√x. The residual x - g², which FMA computes exactly, then corrects
// g to the correctly rounded root; a test checks all numbers between 1 and 4. If this would
// leave the range of normal numbers in any lane, the whole register uses the instruction.
func (v vector) root(x reg.VecVirtual) reg.VecVirtual {
	if !v.wide || !v.single() {
		v.sqrt(x, x)
		return x
	}
	const lowest, infinite = 27 << 23, 0xff << 23 // 2^-100 and infinity as integers
	far, inside := v.fresh(), K()
	VPSUBD_BCST(v.bits(lowest), x, far)
	VPCMPUD_BCST(Imm(1), v.bits(infinite-lowest), far, inside) // less than
	KORTESTW(inside, inside)
	roots++
	slow, end := fmt.Sprint("slow", roots), fmt.Sprint("root", roots)
	JCC(LabelRef(slow)) // some lane is out of range
	g, h, left := v.fresh(), v.fresh(), v.fresh()
	VRSQRT14PS(x, h)
	v.mul(h, x, g)
	v.mul(v.constant(0.5), h, h)
	v.move(v.constant(0.5), left)
	v.less231(h, g, left)
	v.fma231(left, g, g)
	v.fma231(left, h, h)
	v.less231(g, g, x)
	v.fma231(h, x, g)
	VMOVAPS(g, x)
	JMP(LabelRef(end))
	Label(slow)
	v.sqrt(x, x)
	Label(end)
	return x
}

// roots counts the generated roots, for unique labels.
var roots int

// cube emits x·x·x in place, which rounds twice, and returns x.
func (v vector) cube(x reg.VecVirtual) reg.VecVirtual {
	square := v.fresh()
	v.mul(x, x, square)
	v.mul(square, x, x)
	return x
}

// over emits 1/x in place, and returns x.
func (v vector) over(x reg.VecVirtual) reg.VecVirtual {
	one := v.fresh()
	v.move(v.constant(1), one)
	v.div(x, one, x)
	return x
}

// ratio approximates (log(1+f) - f)/f² by a polynomial, for f from -1/4 to 1/2. It was fitted so
// that the relative error of the logarithm is at most 1.2e-9.
var ratio = []float64{
	-0.5, 0.33333346247673035, -0.2500016689300537, 0.19999198615550995, -0.1665477603673935, 0.14284195005893707,
	-0.12746036052703857, 0.11658664047718048, -0.08952401578426361, 0.03634364530444145,
}

func (v vector) log(x reg.VecVirtual) reg.VecVirtual {
	of := v.logBySeries
	if !v.single() {
		of = v.logByDivision
	}
	if v.wide {
		return of(v.getParts(x))
	}
	return v.logOfNone(x, of(v.parts(x, 0.75)))
}

// log1p emits log(1+x) and returns its register: log(u) plus the rounding error of u = 1+x
// divided by u, with the sign of x. It overwrites x.
func (v vector) log1p(x reg.VecVirtual) reg.VecVirtual {
	u, lost, sign := v.fresh(), v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.add(v.constant(1), x, u)
	v.sub(v.constant(1), u, lost)
	v.sub(lost, x, lost)
	v.div(u, lost, lost)
	v.least(v.constant(1), lost, lost) // in this operand order NaN becomes 1
	y := v.log(u)
	v.add(lost, y, y)
	v.withSign(sign, x, y)
	return y
}

// logBySeries emits log(2^k·(1+f)) for f from -1/4 to 1/2, where log(1+f) is f + f²·ratio, and
// returns its register. It compensates the rounding error of k·high + f. If k is infinite, f
// must be 0, and the result is k.
func (v vector) logBySeries(k, f reg.VecVirtual) reg.VecVirtual {
	const high, least = 0x1.62p-1, 1e-3 // k·high is exact
	r, square := v.fresh(), v.fresh()
	v.move(v.constant(ratio[len(ratio)-1]), r)
	for n := len(ratio) - 2; n >= 0; n-- {
		v.fma213(v.constant(ratio[n]), f, r)
	}
	v.mul(f, f, square)

	whole, sum, lost := v.fresh(), v.fresh(), v.fresh()
	v.mul(v.constant(high), k, whole)
	v.add(f, whole, sum)
	v.sub(whole, sum, lost)
	v.sub(lost, f, lost)
	v.least(v.constant(least), lost, lost) // in this operand order NaN becomes least
	v.fma231(v.constant(math.Ln2-high), k, lost)
	v.fma231(square, r, lost)
	v.add(lost, sum, sum)
	return sum
}

// getParts emits the decomposition of x into 2^k·(1+f) with 1+f from 3/4 to 3/2, by
// instructions of AVX-512 that handle all numbers, and returns the registers of k and f. k is
// infinite for 0 and infinity, and f is NaN for negative numbers.
func (v vector) getParts(x reg.VecVirtual) (k, f reg.VecVirtual) {
	const from3Quarters, nanBelow0 = 3, 3 << 2
	k, f = v.fresh(), v.fresh()
	own := v.fresh()
	mantissa, exponent := VGETMANTPS, VGETEXPPS
	if !v.single() {
		mantissa, exponent = VGETMANTPD, VGETEXPPD
	}
	mantissa(U8(from3Quarters|nanBelow0), x, f)
	exponent(x, k)
	exponent(f, own)
	v.sub(own, k, k)
	v.sub(v.constant(1), f, f)
	return k, f
}

// parts emits the decomposition of x into 2^k·(1+f) with 1+f from lowest to 2·lowest, and
// returns the registers of k and f. lowest must be between 1/2 and 1. The result is correct for
// positive finite numbers.
func (v vector) parts(x reg.VecVirtual, lowest float64) (k, f reg.VecVirtual) {
	digits, least := 52, 0x1p-1022
	one, root := math.Float64bits(1), math.Float64bits(lowest)
	if v.single() {
		digits, least = 23, 0x1p-126
		one, root = uint64(math.Float32bits(1)), uint64(math.Float32bits(float32(lowest)))
	}
	bound, tiny, m := v.fresh(), v.fresh(), v.fresh()
	v.move(v.constant(least), bound)
	v.move(v.constant(float64(uint64(1)<<digits)-1), tiny)
	small := v.compare(greater, x, bound)
	tiny = v.where(small, tiny)
	v.add(v.constant(1), tiny, m)
	v.mul(x, m, m) // normalise subnormal numbers
	shift := v.fresh()
	v.move(v.constant(float64(digits)), shift)
	shift = v.where(small, shift)

	v.plus(v.bits(one-root), m, m)
	k = v.fresh()
	v.shiftRight(U8(digits), m, k)
	v.or(v.constant(math.Ldexp(1, digits)), k, k) // the number 2^digits + the exponent
	v.sub(v.constant(math.Ldexp(1, digits)+float64(one>>digits)), k, k)
	v.sub(shift, k, k)
	v.and(v.bits(1<<digits-1), m, m)
	v.plus(v.bits(root), m, m)
	v.sub(v.constant(1), m, m)
	return k, m
}

// quotients approximates (log((1+s)/(1-s))/s - 2)/s² by a polynomial in s², for s from -1/7 to 1/5.
// It was fitted so that the relative error of the logarithm is at most 2⁻⁶².
var quotients = []float64{
	0.666666666666666, 0.4000000000005594, 0.2857142855600729, 0.2222222427618813, 0.1818166708944812,
	0.1539107239549033, 0.13174262436500606, 0.13838562728401535,
}

// logByDivision emits log(2^k·(1+f)) for f from -1/4 to 1/2, where log(1+f) is f - (f²/2 -
// s·(f²/2 + r)) with s = f/(2+f) and r = s²·quotients. It overwrites k with the result, and
// returns k. If k is infinite, f must be 0, and the result is k.
func (v vector) logByDivision(k, f reg.VecVirtual) reg.VecVirtual {
	const high = 0x1.62e42fefp-1 // k·high is exact
	s, z, half, r := v.fresh(), v.fresh(), v.fresh(), v.fresh()
	v.add(v.constant(2), f, s)
	v.div(s, f, s)
	v.mul(s, s, z)
	v.mul(f, f, half)
	v.mul(v.constant(0.5), half, half)
	v.move(v.constant(quotients[len(quotients)-1]), r)
	for n := len(quotients) - 2; n >= 0; n-- {
		v.fma213(v.constant(quotients[n]), z, r)
	}
	v.fma213(half, z, r)
	v.mul(s, r, r)
	v.fma231(v.constant(math.Ln2-high), k, r)
	v.sub(r, half, half)
	v.sub(f, half, half)
	v.mul(v.constant(high), k, k)
	v.sub(half, k, k)
	return k
}

// logOfNone emits the correction of y, the computed logarithm of x, outside the domain, in
// place: -∞ for 0, NaN for negative numbers and NaN, ∞ for ∞. It returns y.
func (v vector) logOfNone(x, y reg.VecVirtual) reg.VecVirtual {
	zero, largest := v.fresh(), v.fresh()
	v.zero(zero)
	v.move(v.constant(v.greatest()), largest)
	for _, c := range []struct {
		in mask
		of float64
	}{
		{v.compare(equal, zero, x), math.Inf(-1)},
		{v.compare(greater, largest, x), math.Inf(1)},
		{v.compare(notAtLeast, zero, x), math.NaN()},
	} {
		extra := v.fresh()
		v.move(v.constant(c.of), extra)
		v.add(v.where(c.in, extra), y, y)
	}
	return y
}

// greatest returns the largest finite number of the type of v.
func (v vector) greatest() float64 {
	if v.single() {
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

func (v vector) clamp() {
	v.text("Clamp", "n int, lo, hi F, x, y *F")
	v.doc("Clamp", "writes x, moved up to lo and down to hi, to y, and NaN where x is.")
	lo, hi := v.scalar("lo"), v.scalar("hi")
	v.short().flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		if f.neon {
			f.extremeInstruction(true)(x, lo, x)
			f.extremeInstruction(false)(x, hi, x)
		} else {
			f.largest(x, lo, x) // in this operand order NaN in x is kept
			f.least(x, hi, x)
		}
		f.write(x, "y")
	})
	v.end()
}
