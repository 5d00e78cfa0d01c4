package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeExps emits the exponential and functions derived from it.
func writeExps(vectors []vector) {
	for _, v := range vectors {
		v.apart("Exp", "e to the power of x", v.exp)
		v.apart("Sigmoid", "1/(1+exp(-x))", v.sigmoid)
		v.apart("Tanh", "the hyperbolic tangent of x", v.tanh)
		v.expSum()
		v.expTo()
		v.lessExp()
	}
}

// reduced represents x as k·ln 2 + r with |r| at most half of ln 2. Then e^x is 2^k·(1 + q), where
// q is e^r - 1.
type reduced struct {
	vector
	k, q   reg.VecVirtual
	lifted reg.VecVirtual // k + large, in which the lowest bits are k
}

// reduce emits the argument reduction of e^x by the method of Cody and Waite, and returns the
// registers. It first clamps x, except NaN, to [lo, hi], or only to at least lo if hi is 0; the
// caller must then ensure that x is not large. It overwrites x.
//
// Adding large to x·log₂e rounds it to the integer k. q is the Taylor series of e^r - 1,
// truncated when the remainder is less than a tenth of a unit in the last place.
func (v vector) reduce(x reg.VecVirtual, lo, hi float64) reduced {
	terms, high, low := 13, 0x1.62e42fefp-1, math.Ln2-0x1.62e42fefp-1 // k·high is exact
	if v.single() {
		terms, high, low = 7, 0x1.63p-1, math.Ln2-0x1.63p-1
	}
	limit := v.fresh()
	v.move(v.constant(lo), limit)
	v.largest(x, limit, x) // in this operand order NaN in x is kept
	if hi != 0 {
		v.move(v.constant(hi), limit)
		v.least(x, limit, x)
	}
	lifted, k := v.fresh(), v.fresh()
	v.move(v.constant(v.large()), lifted)
	v.fma231(v.constant(math.Log2E), x, lifted)
	v.sub(v.constant(v.large()), lifted, k)
	v.less231(v.constant(high), k, x)
	v.less231(v.constant(low), k, x)

	q := v.fresh()
	v.move(v.constant(1/math.Gamma(float64(terms+1))), q)
	for n := terms - 1; n > 1; n-- {
		v.fma213(v.constant(1/math.Gamma(float64(n+1))), x, q)
	}
	v.mul(x, q, q)
	v.fma213(x, x, q)
	return reduced{v, k, q, lifted}
}

// large returns a number so large that adjacent floats are 1 apart. large + k is positive for
// all k that occur, and its lowest bits are k.
func (v vector) large() float64 {
	if v.single() {
		return 1.5 * (1 << 23)
	}
	return 1.5 * (1 << 52)
}

// power emits 2^k for integers k, and returns k, which it overwrites. 2^k must be a normal
// number.
func (v vector) power(k reg.VecVirtual) reg.VecVirtual {
	v.add(v.constant(v.large()), k, k)
	return v.powerOf(k)
}

// powerOf is [vector.power] for a register with k + large.
func (v vector) powerOf(k reg.VecVirtual) reg.VecVirtual {
	digits := uint8(52)
	if v.single() {
		digits = 23
	}
	v.shift(U8(digits), k, k)
	v.plus(v.constant(1), k, k)
	return k
}

// exp emits e^x and returns its register. It overwrites x. 2^k may overflow or underflow
// although e^x does not. Without an instruction for scaling, it therefore multiplies by 2^k in
// two factors.
func (v vector) exp(x reg.VecVirtual) reg.VecVirtual {
	lo, hi := -746.0, 710.0 // bounds of a result of 0 and of infinity
	if v.single() {
		lo, hi = -104, 89
	}
	r := v.reduce(x, lo, hi)
	if v.wide {
		v.add(v.constant(1), r.q, r.q)
		v.scaleByPower(r.k, r.q)
		return r.q
	}
	half := v.fresh()
	v.move(v.constant(v.large()), half)
	v.fma231(v.constant(0.5), r.k, half)
	v.sub(v.constant(v.large()), half, half)
	v.sub(half, r.k, r.k)
	v.add(v.constant(1), r.q, r.q)
	v.mul(v.power(half), r.q, r.q)
	v.mul(v.power(r.k), r.q, r.q)
	return r.q
}

// scaleByPower emits x = x·2^k with a single rounding. It needs AVX-512.
func (v vector) scaleByPower(k, x reg.VecVirtual) {
	if v.single() {
		VSCALEFPS(k, x, x)
	} else {
		VSCALEFPD(k, x, x)
	}
}

// sigmoid emits 1/(1+e), or e/(1+e) for negative x, where e = exp(-|x|), and returns the
// register. Neither form loses digits. It overwrites x.
func (v vector) sigmoid(x reg.VecVirtual) reg.VecVirtual {
	zero, above := v.fresh(), v.fresh()
	v.zero(zero)
	v.move(v.constant(1), above)
	above = v.where(v.compare(greater, zero, x), above)
	v.or(v.sign(), x, x)
	e, sum := v.exp(x), v.fresh()
	v.add(v.constant(1), e, sum)
	v.largest(above, e, e)
	v.div(sum, e, e)
	return e
}

// tanh emits -m/(m+2) with the sign of x, where m = exp(-2|x|) - 1, and returns the register.
// This is accurate near 0. It overwrites x.
func (v vector) tanh(x reg.VecVirtual) reg.VecVirtual {
	sign, twice := v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.or(sign, x, twice)
	v.add(twice, twice, twice)
	r := v.reduce(twice, -40, 0)
	m, scale := v.fresh(), v.powerOf(r.lifted)
	v.sub(v.constant(1), scale, m)
	v.fma231(scale, r.q, m)
	sum := v.fresh()
	v.add(v.constant(2), m, sum)
	v.div(sum, m, m)
	v.withSign(sign, x, m)
	return m
}

// expm1 emits e^x - 1, computed as (2^(k-1) - 1/2 + 2^(k-1)·q)·2 with the sign of x, and
// returns the register. For k = 0 this is q, and 2^(k-1) does not overflow where 2^k would. It
// overwrites x.
func (v vector) expm1(x reg.VecVirtual) reg.VecVirtual {
	hi := 710.0 // bound of a result of infinity
	if v.single() {
		hi = 89
	}
	sign, own := v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.move(x, own)
	r := v.reduce(x, -40, hi)
	v.plus(v.bits(math.MaxUint64), r.lifted, r.lifted) // minus 1
	m, scale := v.fresh(), v.powerOf(r.lifted)
	v.sub(v.constant(0.5), scale, m)
	v.fma231(scale, r.q, m)
	v.add(m, m, m)
	v.withSign(sign, own, m)
	return m
}

// erfScale is the upper bound of erfRate. Beyond it the error function is 1 in float32.
const erfScale = 4

// erfRate approximates -log(1-erf(x))/x by a polynomial, for x from 0 to erfScale. It was fitted so
// that the relative error of erf(x) is at most 4e-9.
var erfRate = []float64{
	1.1283791716116713, 0.6366193819466981, 0.10277783061225715, -0.019153064053436187, -0.00016039622629315843,
	0.0016670280014153963, -0.0006328373018097668, 0.00011764142253156295, -9.256283487314902e-06,
}

// erf emits 1 - e^(-|x|·erfRate(|x|)) with the sign of x, and returns the register. It is
// accurate near 0. It overwrites x.
func (v vector) erf(x reg.VecVirtual) reg.VecVirtual {
	sign, size, limit, rate := v.fresh(), v.fresh(), v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.andNot(x, sign, size)
	v.move(v.constant(erfScale), limit)
	v.least(size, limit, size) // in this operand order NaN in size is kept
	v.move(v.constant(-erfRate[len(erfRate)-1]), rate)
	for n := len(erfRate) - 2; n >= 0; n-- {
		v.fma213(v.constant(-erfRate[n]), size, rate)
	}
	v.mul(size, rate, rate)
	r := v.reduce(rate, -40, 0)
	m, scale := v.fresh(), v.powerOf(r.lifted)
	v.sub(v.constant(1), scale, m)
	v.fma231(scale, r.q, m)
	v.withSign(sign, x, m)
	return m
}

// withSign emits a copy of the sign of x to y; sign must be the sign bit in all lanes. It
// overwrites x.
func (v vector) withSign(sign, x, y reg.VecVirtual) {
	if v.wide {
		VPTERNLOGD(U8(0xd8), sign, x, y) // bits of x where sign is set, and of y elsewhere
		return
	}
	v.andNot(y, sign, y)
	v.and(sign, x, x)
	v.or(x, y, y)
}

// expSum emits the function for the sum of exponentials of a softmax.
func (v vector) expSum() {
	TEXT("ExpSum"+v.suffix, NOSPLIT, fmt.Sprintf("func(n int, x *%s, shift %[1]s) %[1]s", v.goType))
	Pragma("noescape")
	v.doc("ExpSum", "returns the sum of e to the power of x-shift.")
	shift, sum := v.scalar("shift"), v.fresh()
	v.zero(sum)
	v.flat([]string{"x"}, func(f *flat) {
		x := f.read("x")
		f.sub(shift, x, x)
		x = f.exp(x)
		if !f.whole {
			x = f.where(f.rest, x)
		}
		f.add(x, sum, sum)
	})
	v.result(v.added(sum))
	v.end()
}

// expTo emits the function for the exponentials of a softmax and their sum.
func (v vector) expTo() {
	TEXT("ExpTo"+v.suffix, NOSPLIT, fmt.Sprintf("func(n int, x *%s, shift %[1]s, y *%[1]s) %[1]s", v.goType))
	Pragma("noescape")
	v.doc("ExpTo", "writes e to the power of x-shift to y, and returns the sum.")
	shift, sum := v.scalar("shift"), v.fresh()
	v.zero(sum)
	v.flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.sub(shift, x, x)
		x = f.exp(x)
		f.write(x, "y")
		if !f.whole {
			x = f.where(f.rest, x)
		}
		f.add(x, sum, sum)
	})
	v.result(v.added(sum))
	v.end()
}

// lessExp emits the function for the gradient of a log-softmax.
func (v vector) lessExp() {
	v.text("LessExp", "n int, alpha F, x, y, z *F")
	v.doc("LessExp", "writes y - alpha·exp(x) to z.")
	alpha := v.scalar("alpha")
	v.flat([]string{"x", "y", "z"}, func(f *flat) {
		e, y := f.exp(f.read("x")), f.read("y")
		f.less231(e, alpha, y)
		f.write(y, "z")
	})
	v.end()
}

// everywhere holds constants in memory: a full AVX2 register of each, or a single number for
// AVX-512.
var everywhere = map[string]Mem{}

// constant returns a constant in memory with c in all lanes. With AVX-512 it is a single number
// in memory, which may only be the first operand of an instruction that broadcasts it, such as
// v.add.
func (v vector) constant(c float64) Mem {
	if v.single() {
		return v.bits(uint64(math.Float32bits(float32(c))))
	}
	return v.bits(math.Float64bits(c))
}

// sign returns a constant with the sign bit in all lanes, to be used like a result of
// [vector.constant].
func (v vector) sign() Mem { return v.bits(1 << (8*v.size - 1)) }

func (v vector) bits(b uint64) Mem {
	name, size := fmt.Sprintf("all%d_%d_%x", 8*v.bytes(), 8*v.size, b), v.bytes()
	if v.wide {
		name, size = fmt.Sprintf("%s%d_%x", once, 8*v.size, b), v.size
	}
	m, ok := everywhere[name]
	if ok {
		return m
	}
	m = GLOBL(name, RODATA|NOPTR)
	for at := 0; at < size; at += v.size {
		if v.single() {
			DATA(at, U32(uint32(b)))
		} else {
			DATA(at, U64(b))
		}
	}
	everywhere[name] = m
	return m
}
