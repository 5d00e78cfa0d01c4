package ptx

import (
	"fmt"
	"math"
)

// ofWords maps a kind of sequence to a function that computes four adjacent elements in float32
// from the four words of Philox.
var ofWords = map[string]func(a *asm, w [4]string, word func(int) string) [4]string{
	"RandomUniform": func(a *asm, w [4]string, word func(int) string) (y [4]string) {
		from, to := a.asFloat32(word(1)), word(2)
		wide := a.asFloat32(a.emitResult("sub.rn.f64", to, word(1)))
		shift := a.emitResult("sub.u32", a.emitResult("cvt.u32.u64", word(3)), "32")
		unit := a.emitResult("rcp.rn.f32", a.asFloat32(word(4)))
		for i := range w {
			v := a.emitResult("cvt.rn.f32.u32", a.emitResult("shr.u32", w[i], shift))
			y[i] = a.emitResult("fma.rn.f32", a.emitResult("mul.rn.f32", v, unit), wide, from)
		}
		return y
	},
	"RandomNormal": func(a *asm, w [4]string, word func(int) string) (y [4]string) {
		mean, deviation := a.asFloat32(word(1)), a.asFloat32(word(2))
		for i := 0; i < 4; i += 2 {
			above := a.emitResult("fma.rn.f32", a.emitResult("cvt.rn.f32.u32", w[i]), f(0x1p-32), f(0x1p-33))
			radius := a.emitResult("sqrt.rn.f32", a.emitResult("mul.rn.f32", f(-2), a.logOfNormal32(above)))
			radius = a.emitResult("mul.rn.f32", radius, deviation)
			co, s := a.cosSinOfTurn32(w[i+1])
			y[i] = a.emitResult("fma.rn.f32", radius, co, mean)
			y[i+1] = a.emitResult("fma.rn.f32", radius, s, mean)
		}
		return y
	},
	"RandomBernoulli": func(a *asm, w [4]string, word func(int) string) [4]string {
		return a.applyChances(w, word, f(1))
	},
	"RandomKept": func(a *asm, w [4]string, word func(int) string) [4]string {
		return a.applyChances(w, word, a.asFloat32(word(2)))
	},
}

func (a *asm) asFloat32(v string) string { return a.emitResult("cvt.rn.f32.f64", v) }

// applyChances returns, for each of the random words w, v with the probability of the [Chance],
// and otherwise 0. word returns an extra word of the kernel.
func (a *asm) applyChances(w [4]string, word func(int) string, v string) (y [4]string) {
	below := word(1)
	for i := range w {
		y[i] = a.emitResult("selp.f32", v, f(0), a.emitResult("setp.lt.u64", a.emitResult("cvt.u64.u32", w[i]), below))
	}
	return y
}

// cosSinOfTurn32 returns the cosine and the sine of w/2³² of a full turn. It reduces the angle to
// the nearest quarter turn.
func (a *asm) cosSinOfTurn32(w string) (co, s string) {
	quarter := a.emitResult("shr.u32", a.emitResult("add.u32", w, fmt.Sprint(1<<29)), "30")
	rest := a.emitResult("cvt.rn.f32.s32", a.emitResult("sub.u32", w, a.emitResult("shl.b32", quarter, "30")))
	return a.ofQuarters32(a.emitResult("mul.rn.f32", rest, f(2*math.Pi/(1<<32))), quarter)
}

// drawFunctions returns the functions body and neighbours of an each, for one element and for
// four elements that share a counter. draw computes the four elements from the four words w of
// Philox; word(i) loads extra word i of the kernel. If kind is RandomKept, the elements are
// multiplied by the values of the second operand.
func drawFunctions(kind string, draw func(a *asm, w [4]string, word func(int) string) [4]string) (
	body func(a *asm, x []string, place string, extra int) []string,
	neighbours func(a *asm, x [][]string, place string, extra int) [][]string) {
	four := func(a *asm, place string, extra int) [4]string {
		word := func(i int) string { return a.loadWord("u64", extra+i) }
		return draw(a, a.philox(a.emitResult("shr.u64", place, "2"), word(0)), word)
	}
	put := func(a *asm, x []string, v string) []string {
		if kind == "RandomKept" {
			v = a.emitResult("mul.rn.f32", x[1], v)
		}
		return []string{v}
	}
	body = func(a *asm, x []string, place string, extra int) []string {
		y, at := four(a, place, extra), a.emitResult("and.b32", a.emitResult("cvt.u32.u64", place), "3")
		v := y[3]
		for i := range 3 {
			v = a.emitResult("selp.f32", y[i], v, a.emitResult("setp.eq.u32", at, fmt.Sprint(i)))
		}
		return put(a, x, v)
	}
	neighbours = func(a *asm, x [][]string, place string, extra int) (results [][]string) {
		for i, v := range four(a, place, extra) {
			results = append(results, put(a, x[i], v))
		}
		return results
	}
	return body, neighbours
}
