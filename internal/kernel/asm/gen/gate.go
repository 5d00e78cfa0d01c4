package main

import (
	"math"

	"github.com/mmcloughlin/avo/reg"
)

// writeGates emits the activations x·gate(x) and their derivatives.
func writeGates(vectors []vector) {
	for _, v := range vectors {
		v.gated("Gated", "x·σ(a·x + b·x³)", vector.open)
		v.gated("GatedSlope", "the derivative of x·σ(a·x + b·x³)", vector.openSlope)
		if v.single() { // only gradient tests use float64
			v.apart("GELU", "x·Φ(x)", v.gelu)
			v.apart("GELUSlope", "Φ(x) + x·φ(x)", v.geluSlope)
		}
	}
}

// tail approximates (1 - Φ(x))·e^(x²/2) for non-negative x by a polynomial in t = 1/(1 +
// tailScale·x) without a constant term. It was fitted to a relative error of at most 3.1e-9.
const tailScale = 0.24

var tail = []float64{
	0.0957424385548334, 0.09585077791229885, 0.08898361412853233, 0.08755179275857541, 0.02871422351517142,
	0.14048795657649316, -0.14319335871833672, 0.2047238379091357, -0.12433464336227926, 0.025473362279044492,
}

// normal emits Φ(x) and e^(-x²/2), and returns their registers. It does not overwrite x.
func (v vector) normal(x reg.VecVirtual) (phi, bell reg.VecVirtual) {
	w, t, q, s := v.fresh(), v.fresh(), v.fresh(), v.fresh()
	v.move(v.sign(), w)
	v.andNot(x, w, w)
	v.move(v.constant(1), t)
	v.fma231(v.constant(tailScale), w, t)
	t = v.over(t)
	v.move(v.constant(tail[len(tail)-1]), q)
	for n := len(tail) - 2; n >= 0; n-- {
		v.fma213(v.constant(tail[n]), t, q)
	}
	v.mul(t, q, q)
	v.mul(w, w, s)
	v.mul(v.constant(-0.5), s, s)
	bell = v.exp(s)
	v.mul(bell, q, q) // 1 - Φ(|x|)
	zero, rest := v.fresh(), v.fresh()
	v.zero(zero)
	v.move(v.constant(1), rest)
	v.less231(v.constant(2), q, rest)
	v.add(v.where(v.compare(notAtMost, zero, x), rest), q, q)
	return q, bell
}

func (v vector) gelu(x reg.VecVirtual) reg.VecVirtual {
	phi, _ := v.normal(x)
	v.mul(x, phi, phi)
	return phi
}

func (v vector) geluSlope(x reg.VecVirtual) reg.VecVirtual {
	phi, bell := v.normal(x)
	v.mul(v.constant(1/math.Sqrt(2*math.Pi)), bell, bell)
	v.fma231(x, bell, phi)
	return phi
}

func (v vector) gated(name, what string, of func(v vector, x, a, b reg.VecVirtual) reg.VecVirtual) {
	v.text(name, "n int, a, b F, x, y *F")
	v.doc(name, "writes "+what+" to y, element by element.")
	a, b := v.scalar("a"), v.scalar("b")
	v.flat([]string{"x", "y"}, func(f *flat) { f.write(of(f.vector, f.read("x"), a, b), "y") })
	v.end()
}

// gate emits σ(a·x + b·x³), and x² clamped so that 0·x² is not NaN, and returns their
// registers. It does not overwrite x.
func (v vector) gate(x, a, b reg.VecVirtual) (sigmoid, square reg.VecVirtual) {
	square = v.fresh()
	v.mul(x, x, square)
	limit, inner := v.fresh(), v.fresh()
	v.move(v.constant(1e30), limit)
	v.least(square, limit, square) // in this operand order NaN in square is kept
	v.move(a, inner)
	v.fma231(square, b, inner)
	v.mul(x, inner, inner)
	return v.sigmoid(inner), square
}

func (v vector) open(x, a, b reg.VecVirtual) reg.VecVirtual {
	s, _ := v.gate(x, a, b)
	v.mul(x, s, s)
	return s
}

// openSlope emits σ + x·σ·(1-σ)·(a + 3b·x²), the derivative of a gate, and returns its
// register.
func (v vector) openSlope(x, a, b reg.VecVirtual) reg.VecVirtual {
	s, square := v.gate(x, a, b)
	v.mul(v.constant(3), square, square)
	v.fma213(a, b, square)
	rest := v.fresh()
	v.move(v.constant(1), rest)
	v.sub(s, rest, rest)
	v.mul(s, rest, rest)
	v.mul(x, rest, rest)
	v.fma231(rest, square, s)
	return s
}
