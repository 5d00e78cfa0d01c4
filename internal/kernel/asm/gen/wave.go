package main

import (
	"math"
	"math/big"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quarter is π/2, with more digits than its parts need.
var quarter, _ = new(big.Float).SetPrec(300).SetString(
	"1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931401741267105853399107404326")

// quarters returns π/2 as a sum of three numbers. Each is the remainder after the previous ones,
// truncated to the precision of the type. None is negative, so 0 times each is 0, and -0 minus that
// is -0.
func (v vector) quarters() (parts [3]float64) {
	rest, digits := new(big.Float).Set(quarter), uint(53)
	if v.single() {
		digits = 24
	}
	for i := range parts {
		part := new(big.Float).SetMode(big.ToZero).SetPrec(digits).Set(rest)
		parts[i], _ = part.Float64()
		rest.Sub(rest, part)
	}
	return parts
}

// wave emits the sine of x + quarters·π/2, and returns its register. It overwrites x. It
// reduces x to n·π/2 + r with |r| at most π/4, by the method of Cody and Waite. x must be in
// the range that package kernel allows: n then has so few bits that x minus n times the first
// part of π/2 is exact, because the difference is less than 1 and a multiple of the last bit of
// that part.
//
// The sine and cosine of |r| are Taylor series, truncated when the remainder is less than a
// tenth of a unit in the last place. The lowest bit of n selects one of them, and the next bit
// is the sign. The sign of r, which may be -0, applies to the sine only.
func (v vector) wave(x reg.VecVirtual, quarters uint64) reg.VecVirtual {
	lifted, n := v.fresh(), v.fresh()
	v.move(v.constant(v.large()), lifted)
	v.fma231(v.constant(2/math.Pi), x, lifted)
	v.sub(v.constant(v.large()), lifted, n)
	for _, part := range v.quarters() {
		v.less231(v.constant(part), n, x)
	}
	if quarters != 0 {
		v.plus(v.bits(quarters), lifted, lifted)
	}
	sign, size, square := v.fresh(), v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.andNot(x, sign, size)
	v.and(sign, x, x)
	v.mul(size, size, square)
	sine, cosine := v.sine(size, square), v.cosine(square)

	zero, half := v.fresh(), v.fresh()
	v.zero(zero)
	top := uint8(8*v.size - 1)
	v.shift(U8(top), lifted, half)
	v.or(v.constant(1), half, half) // -1 for odd n, 1 for even n
	odd, even := v.compare(below, zero, half), v.compare(greater, zero, half)
	v.shift(U8(top-1), lifted, lifted)
	v.and(sign, lifted, lifted)
	v.xor(v.where(even, x), lifted, lifted)
	v.or(v.where(even, sine), lifted, lifted)
	v.or(v.where(odd, cosine), lifted, lifted)
	return lifted
}

// sine emits r + r·z·(-1/3! + z/5! - …) with z = r², and returns its register.
func (v vector) sine(r, z reg.VecVirtual) reg.VecVirtual {
	last := 17
	if v.single() {
		last = 9
	}
	s := v.series(last, 3, z)
	v.mul(z, s, s)
	v.fma213(r, r, s)
	return s
}

// cosine emits 1 - z/2 + z²·(1/4! - z/6! + …), and returns its register. It compensates the
// rounding error of 1 - z/2.
func (v vector) cosine(z reg.VecVirtual) reg.VecVirtual {
	last := 16
	if v.single() {
		last = 10
	}
	s := v.series(last, 4, z)
	half, whole, lost := v.fresh(), v.fresh(), v.fresh()
	v.mul(v.constant(0.5), z, half)
	v.move(v.constant(1), whole)
	v.move(v.constant(1), lost)
	v.sub(half, whole, whole)
	v.sub(whole, lost, lost)
	v.sub(half, lost, lost)
	v.mul(z, s, s)
	v.fma213(lost, z, s)
	v.add(whole, s, s)
	return s
}

// series emits the sum of ±z^i/n! for every second n from first to last, where i counts from 0,
// and returns its register. The signs are as in the Taylor series of sine and cosine.
func (v vector) series(last, first int, z reg.VecVirtual) reg.VecVirtual {
	s := v.fresh()
	for n := last; n >= first; n -= 2 {
		term := 1 / math.Gamma(float64(n+1))
		if n/2%2 != 0 {
			term = -term
		}
		if n == last {
			v.move(v.constant(term), s)
		} else {
			v.fma213(v.constant(term), z, s)
		}
	}
	return s
}

// angles approximates atan(t)/t by a polynomial in t², for t from 0 to 1. It was fitted to a
// relative error of at most 2.4e-9.
var angles = []float64{
	0.999999997630624, -0.33333283641640016, 0.19998266040064305, -0.14261933090770818, 0.10942030586215523,
	-0.08377315206367855, 0.057552097664473945, -0.030804592623541047, 0.010726941577286831, -0.0017539295873026937,
}

// atan emits t·angles(t²) for t = |x|, or π/2 minus that with t = 1/|x| if |x| exceeds 1, with
// the sign of x, and returns its register. It overwrites x.
func (v vector) atan(x reg.VecVirtual) reg.VecVirtual {
	sign, size, t := v.fresh(), v.fresh(), v.fresh()
	v.move(v.sign(), sign)
	v.andNot(x, sign, size)
	v.move(size, t)
	t = v.over(t)
	v.least(t, size, t)
	square, a := v.fresh(), v.fresh()
	v.mul(t, t, square)
	v.move(v.constant(angles[len(angles)-1]), a)
	for n := len(angles) - 2; n >= 0; n-- {
		v.fma213(v.constant(angles[n]), square, a)
	}
	v.mul(t, a, a)

	one, turned := v.fresh(), v.fresh()
	v.move(v.constant(1), one)
	quarters := v.quarters()
	v.move(v.constant(quarters[0]), turned)
	v.sub(a, turned, turned)
	v.add(v.constant(quarters[1]), turned, turned)
	near, far := v.compare(atMost, one, size), v.compare(notAtMost, one, size) // NaN belongs to far
	turned, a = v.where(far, turned), v.where(near, a)
	v.or(a, turned, turned)
	v.withSign(sign, x, turned)
	return turned
}
