package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeTwos emits functions of two numbers that need more than one instruction.
func writeTwos(vectors []vector) {
	shortRelu("ReluHalfAVX2", shorts("HalfInfinity", 0x7c00))
	shortRelu("ReluBrainAVX2", shorts("BrainInfinity", 0x7f80))
	for _, v := range vectors {
		if v.single() {
			v.hypot()
			v.atan2()
			v.writePower()
			for _, s := range []short{{"Half", v.fromHalf, v.toHalf}, {"Brain", v.fromBrain, v.toBrain}} {
				v.shorts("Add", s, v.add)
				v.shorts("Sub", s, v.sub)
				v.shorts("Mul", s, v.mul)
				v.shorts("Div", s, v.div)
				v.shortSum(s)
			}
		}
	}
}

// hypot emits the function for the square root of x²+y² in double precision, where squares of
// float32 numbers do not overflow. If the result is infinite or NaN, its caller must check x
// and y.
func (v vector) hypot() {
	v.text("Hypot", "n int, x, y, z *F")
	v.doc("Hypot", "writes √(x²+y²) to z, and what is not finite where x or y is not.")
	wide := v.double()
	v.flat([]string{"x", "y", "z"}, func(f *flat) {
		x0, x1 := v.doubled(f.read("x"))
		y0, y1 := v.doubled(f.read("y"))
		for _, p := range [][2]reg.VecVirtual{{x0, y0}, {x1, y1}} {
			wide.mul(p[0], p[0], p[0])
			wide.fma231(p[1], p[1], p[0])
		}
		f.write(v.halved(wide.rootOfMany(x0), wide.rootOfMany(x1)), "z")
	})
	v.end()
}

// rootOfMany emits the square root, accurate to 27 bits, of numbers that are 0 or normal, and
// returns its register, which may be x. The result for infinity is infinity or NaN. With
// AVX-512 it uses a 14-bit estimate and one Newton step, which is faster than the instruction.
func (v vector) rootOfMany(x reg.VecVirtual) reg.VecVirtual {
	if !v.wide {
		v.sqrt(x, x)
		return x
	}
	zero, g, h, left := v.fresh(), v.fresh(), v.fresh(), v.fresh()
	v.zero(zero)
	some := v.compare(notEqualOrNone, zero, x)
	VRSQRT14PD(x, h)
	v.mul(h, x, g)
	v.mul(v.constant(0.5), h, h)
	v.move(v.constant(0.5), left)
	v.less231(h, g, left)
	v.fma231(left, g, g)
	return v.where(some, g)
}

// halved emits the rounding of two registers, the halves of the result, to single precision,
// and returns the register.
func (v vector) halved(low, high reg.VecVirtual) reg.VecVirtual {
	x := v.fresh()
	if v.wide {
		upper := YMM()
		VCVTPD2PS(low, x.AsY())
		VCVTPD2PS(high, upper)
		VINSERTF64X4(Imm(1), upper, x, x)
		return x
	}
	upper := XMM()
	VCVTPD2PSY(low, x.AsX())
	VCVTPD2PSY(high, upper)
	VINSERTF128(Imm(1), upper, x, x)
	return x
}

// atan2 emits the function for the angle of a point. With a = atan(min(|x|, |y|)/max(|x|,
// |y|)), the angle is a, or π/2 - a if |y| is larger. It is subtracted from π if x is negative,
// and gets the sign of y. The code adds a multiple of π/2 to ±a. If both coordinates are 0 or
// infinite, the result is NaN.
func (v vector) atan2() {
	v.text("Atan2", "n int, y, x, z *F")
	v.doc("Atan2", "writes the angles of the points (x, y) to z, and NaN where both are 0 or infinite or one is NaN.")
	v.flat([]string{"y", "x", "z"}, func(f *flat) {
		y, x := f.read("y"), f.read("x")
		sign, h, w, zero := v.fresh(), v.fresh(), v.fresh(), v.fresh()
		v.move(v.sign(), sign)
		v.zero(zero)
		v.andNot(y, sign, h)
		v.andNot(x, sign, w)
		far, left := v.compare(greater, w, h), v.compare(below, zero, x)
		none := v.noneWhere(v.compare(unordered, x, y))
		t, larger := v.fresh(), v.fresh()
		v.least(h, w, t)
		v.largest(h, w, larger)
		v.div(larger, t, t)
		square, a := v.fresh(), v.fresh()
		v.mul(t, t, square)
		v.move(v.constant(angles[len(angles)-1]), a)
		for n := len(angles) - 2; n >= 0; n-- {
			v.fma213(v.constant(angles[n]), square, a)
		}
		v.mul(t, a, a)

		all := func(c float64) reg.VecVirtual {
			r := v.fresh()
			v.move(v.constant(c), r)
			return r
		}
		quarters := v.quarters()
		high, low := v.where(left, all(2*quarters[0])), v.where(left, all(2*quarters[1]))
		v.pick(far, all(quarters[0]), high)
		v.pick(far, all(quarters[1]), low)
		turned, other := v.fresh(), v.fresh()
		v.move(sign, turned)
		v.move(sign, other)
		turned, other = v.where(left, turned), v.where(far, other)
		v.xor(turned, a, a)
		v.xor(other, a, a)
		v.add(high, a, a)
		v.add(low, a, a)
		v.withSign(sign, y, a)
		v.or(none, a, a)
		f.write(a, "z")
	})
	v.end()
}

// binaryLog approximates log₂(1+f)/f by a polynomial, for f from -1/4 to 1/2. It was fitted so that
// the relative error of the logarithm is at most 2⁻⁴⁰. binaryPower approximates (2^r - 1)/r, for r
// from -1/2 to 1/2, with a relative error of the power of at most 2⁻³³.
var (
	binaryLog = []float64{
		1.4426950408883832, -0.7213475204539161, 0.4808983474989607, -0.3606737582718842, 0.2885389256205176,
		-0.24044919496292724, 0.20610395914773677, -0.18034479329818506, 0.16018714331026337, -0.14389549256712575,
		0.13205978164088963, -0.12605765269323682, 0.11565212690692882, -0.07945819483867313, 0.026926039704526998,
	}
	binaryPower = []float64{
		0.6931471805599453, 0.24022650922288757, 0.055504108839096185, 0.009618056678524637, 0.001333350238616277,
		0.0001546144469856913, 1.5297323760701075e-05,
	}
)

// writePower emits the function for |x|^y as 2 to the power of y·log₂|x|, in double precision.
func (v vector) writePower() {
	v.text("Power", "n int, x, y, z *F")
	v.doc("Power", "writes |x| to the power of y to z, and NaN where x is 0 or x or y is not finite.")
	wide := v.double()
	v.flat([]string{"x", "y", "z"}, func(f *flat) {
		x, y := v.abs(f.read("x")), f.read("y")
		zero, rest := v.fresh(), v.fresh()
		v.zero(zero)
		none := v.noneWhere(v.compare(equal, zero, x))
		for _, z := range []reg.VecVirtual{x, y} {
			v.sub(z, z, rest) // 0 or NaN
			v.or(rest, none, none)
		}
		x0, x1 := v.doubled(x)
		y0, y1 := v.doubled(y)
		made := wide.powers([]reg.VecVirtual{x0, x1}, []reg.VecVirtual{y0, y1})
		z := v.halved(made[0], made[1])
		v.or(none, z, z)
		f.write(z, "z")
	})
	v.end()
}

// powers emits x to the power of y for several registers of double precision, interleaved to
// hide latencies, and returns the registers. The results only have the accuracy of float32. It
// overwrites x and y.
func (v vector) powers(x, y []reg.VecVirtual) []reg.VecVirtual {
	const most = 1000 // 2^most is infinite in float32, and 2^-most is 0
	k, f, p, lifted := make([]reg.VecVirtual, len(x)), make([]reg.VecVirtual, len(x)),
		make([]reg.VecVirtual, len(x)), make([]reg.VecVirtual, len(x))
	for i := range x {
		if v.wide {
			k[i], f[i] = v.getParts(x[i])
		} else {
			k[i], f[i] = v.parts(x[i], 0.75)
		}
		p[i], lifted[i] = v.fresh(), v.fresh()
	}
	each := func(do func(i int)) {
		for i := range x {
			do(i)
		}
	}
	series := func(of []float64, at []reg.VecVirtual) {
		each(func(i int) { v.move(v.constant(of[len(of)-1]), p[i]) })
		for n := len(of) - 2; n >= 0; n-- {
			each(func(i int) { v.fma213(v.constant(of[n]), at[i], p[i]) })
		}
	}
	series(binaryLog, f)
	each(func(i int) { v.fma213(k[i], f[i], p[i]) })
	each(func(i int) { v.mul(p[i], y[i], y[i]) })
	each(func(i int) { v.least(v.constant(most), y[i], y[i]) })
	each(func(i int) { v.largest(v.constant(-most), y[i], y[i]) })
	each(func(i int) { v.add(v.constant(v.large()), y[i], lifted[i]) })
	each(func(i int) { v.sub(v.constant(v.large()), lifted[i], k[i]) })
	each(func(i int) { v.sub(k[i], y[i], y[i]) })
	series(binaryPower, y)
	each(func(i int) { v.fma213(v.constant(1), y[i], p[i]) })
	each(func(i int) {
		if v.wide {
			v.scaleByPower(k[i], p[i])
		} else {
			v.mul(v.powerOf(lifted[i]), p[i], p[i])
		}
	})
	return p
}

// pick emits a copy of x to y in the lanes of m.
func (v vector) pick(m mask, x, y reg.VecVirtual) {
	if v.wide {
		VMOVAPS(x, m.k, y)
	} else {
		VBLENDVPS(m.y, x, y, y)
	}
}

// short is a two-byte float type. from emits the conversion of a register of elements at x to
// float32 in y, and to emits the conversion of float32 in x to elements at y.
type short struct {
	name string
	from func(x Mem, y reg.VecVirtual)
	to   func(x reg.VecVirtual, y Mem)
}

// shorts emits the function for arithmetic on two-byte elements in single precision. Each
// result is rounded once. name is the operation, a key of arithmeticTexts.
func (v vector) shorts(name string, s short, do instruction) {
	result, dtype := arithmeticTexts[name], map[string]string{"Half": "float16", "Brain": "bfloat16"}[s.name]
	v.shortsTo(name+s.name+map[bool]string{false: "AVX2", true: "AVX512"}[v.wide], result, dtype, s, do)
}

// shortsTo is [vector.shorts] for a function with the given name. result and dtype describe it
// in the doc comment.
func (v vector) shortsTo(name, result, dtype string, s short, do instruction) {
	pixels(name, "n int, x, y, z *byte",
		"writes "+result+" to z, for n "+dtype+" numbers, a multiple of 16.")
	n, x, y, z := pointer("n"), pointer("x"), pointer("y"), pointer("z")
	loop(n, 16, func() {
		for i := range 16 / v.lanes {
			a, b := v.fresh(), v.fresh()
			s.from(at(x, 2*v.lanes*i), a)
			s.from(at(y, 2*v.lanes*i), b)
			do(b, a, a)
			s.to(a, at(z, 2*v.lanes*i))
		}
		ADDQ(Imm(32), x)
		ADDQ(Imm(32), y)
		ADDQ(Imm(32), z)
	})
}

func (v vector) fromHalf(x Mem, y reg.VecVirtual) { VCVTPH2PS(x, y) }
func (v vector) toHalf(x reg.VecVirtual, y Mem)   { VCVTPS2PH(Imm(0), x, y) }

func (v vector) fromBrain(x Mem, y reg.VecVirtual) {
	VPMOVZXWD(x, y)
	v.shift(Imm(16), y, y)
}

// toBrain emits the rounding of x to elements at y, as castToBrain. It overwrites x.
func (v vector) toBrain(x reg.VecVirtual, y Mem) {
	odd := v.fresh()
	none := v.compare(unordered, x, x)
	v.shiftRight(Imm(16), x, odd)
	v.and(v.bits(1), odd, odd)
	v.plus(v.bits(0x7fff), x, x)
	v.plus(odd, x, x)
	v.shiftRight(Imm(16), x, x)
	nan := v.fresh()
	v.move(v.bits(0x7fc0), nan)
	v.pick(none, nan, x)
	if v.wide {
		VPMOVDW(x, y)
		return
	}
	high := XMM()
	VEXTRACTI128(Imm(1), x, high)
	VPACKUSDW(high, x.AsX(), high)
	VMOVDQU(high, y)
}

// shortSum emits the function for a sum of two-byte elements. Like rowSums, it adds four
// registers in single precision, and these sums in double precision.
func (v vector) shortSum(s short) {
	name := "Sum" + s.name + map[bool]string{false: "AVX2", true: "AVX512"}[v.wide]
	TEXT(name, NOSPLIT, "func(n int, x *byte) float64")
	Pragma("noescape")
	Doc(name + " returns the sum of n elements. n must be a positive multiple of 64.")
	n, from := pointer("n"), pointer("x")
	wide := v.double()
	low, high := wide.fresh(), wide.fresh()
	wide.zero(low)
	wide.zero(high)
	step := together * v.lanes
	Label("loop")
	var x [together]reg.VecVirtual
	for i := range x {
		x[i] = v.fresh()
		s.from(at(from, 2*v.lanes*i), x[i])
	}
	v.add(x[1], x[0], x[0])
	v.add(x[3], x[2], x[2])
	v.add(x[2], x[0], x[0])
	lo, hi := v.doubled(x[0])
	wide.add(lo, low, low)
	wide.add(hi, high, high)
	ADDQ(I32(int32(2*step)), from)
	SUBQ(I32(int32(step)), n)
	JG(LabelRef("loop"))
	wide.add(high, low, low)
	wide.result(wide.added(low))
	v.end()
}

// shortRelu emits the function name for the ReLU of two-byte elements. infinity is the constant
// of the type's infinity. It clears elements with the sign set, except NaN, which has a larger
// magnitude than infinity.
func shortRelu(name string, infinity Mem) {
	pixels(name, "n int, x, y *byte", "writes the larger of x and zero to y, and NaN where x is, of n elements, a "+
		"multiple of 16.")
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	size, most := YMM(), YMM()
	VMOVDQU(shorts("Magnitude", 0x7fff), size)
	VMOVDQU(infinity, most)
	loop(n, 16, func() {
		v, none, below := YMM(), YMM(), YMM()
		VMOVDQU(at(x, 0), v)
		VPAND(size, v, none)
		VPCMPGTW(most, none, none)
		VPSRAW(Imm(15), v, below)
		VPANDN(below, none, below)
		VPANDN(v, below, v)
		VMOVDQU(v, at(y, 0))
		ADDQ(Imm(32), x)
		ADDQ(Imm(32), y)
	})
}
