package ptx

import (
	"fmt"
	"math"
)

// Sequence returns the kernel of a device.Sequence of the given kind: Arithmetic, RandomUniform,
// RandomNormal, RandomBernoulli, RandomInteger, or RandomKept, which also has an input. The extra
// words are the key, A, B, and for RandomUniform the shift and the divisor of u or w. RandomInteger
// has From and Count instead of A and B. RandomBernoulli and RandomKept have the [Chance] instead
// of A.
func Sequence(kind string, out Type) Kernel {
	e := each{name: kind, operands: []access{{out, writes}}, extra: 5}
	if kind == "RandomKept" {
		e.operands = append(e.operands, access{out, reads})
	}
	if draw := ofWords[kind]; draw != nil && sharesCounter(out) {
		e.body, e.neighbours = drawFunctions(kind, draw)
		return e.kernel()
	}
	e.body = func(a *asm, x []string, place string, extra int) []string {
		f, from := sequences[kind], Float64
		if kind == "RandomInteger" {
			from = Int64
		}
		v := f(a, place, func(i int) string { return a.loadWord("u64", extra+i) })
		if kind == "RandomKept" {
			t := out.computeType()
			return []string{a.emitResult(op("mul", t), x[1], a.cast(t, from, v))}
		}
		return []string{a.convert(out, from, v)}
	}
	return e.kernel()
}

// sharesCounter reports whether four adjacent elements of a type share a Philox counter.
func sharesCounter(t Type) bool { return t.isFloat() && t.Size() < 8 }

// Chance returns the threshold for the random bits of RandomBernoulli with probability p: the bits
// of w, or the upper 53 bits of u.
func Chance(p float64, t Type) uint64 {
	if sharesCounter(t) {
		return uint64(math.Ceil(p * (1 << 32)))
	}
	return uint64(math.Ceil(p * (1 << 53)))
}

var sequences = map[string]func(a *asm, place string, word func(int) string) string{
	"Arithmetic": func(a *asm, place string, word func(int) string) string {
		return a.emitResult("add.rn.f64", word(1),
			a.emitResult("mul.rn.f64", a.emitResult("cvt.rn.f64.u64", place), word(2)))
	},
	"RandomUniform": func(a *asm, place string, word func(int) string) string {
		u, _ := a.wordPair(place, word(0))
		v := a.emitResult("cvt.rn.f64.u64", a.emitResult("shr.u64", u, a.emitResult("cvt.u32.u64", word(3))))
		v = a.emitResult("mul.rn.f64", a.emitResult("sub.rn.f64", word(2), word(1)), v)
		return a.emitResult("add.rn.f64", word(1), a.emitResult("div.rn.f64", v, word(4)))
	},
	"RandomNormal": func(a *asm, place string, word func(int) string) string {
		u, v := a.wordPair(place, word(0))
		above := a.emitResult("cvt.rn.f64.u64", a.emitResult("add.u64", a.emitResult("shr.u64", u, "11"), "1"))
		radius := a.emitResult("sqrt.rn.f64",
			a.emitResult("mul.rn.f64", c(-2), log(a, Float64, a.emitResult("mul.rn.f64", above, c(0x1p-53)))))
		angle := a.emitResult("mul.rn.f64", a.emitResult("mul.rn.f64", c(2*math.Pi),
			a.emitResult("cvt.rn.f64.u64", a.emitResult("shr.u64", v, "11"))), c(0x1p-53))
		z := a.emitResult("mul.rn.f64", radius, sine(1)(a, Float64, angle))
		return a.emitResult("add.rn.f64", word(1), a.emitResult("mul.rn.f64", word(2), z))
	},
	"RandomBernoulli": func(a *asm, place string, word func(int) string) string {
		return a.emitResult("selp.f64", c(1), c(0), a.applyChance(place, word))
	},
	"RandomKept": func(a *asm, place string, word func(int) string) string {
		return a.emitResult("selp.f64", word(2), c(0), a.applyChance(place, word))
	},
	"RandomInteger": func(a *asm, place string, word func(int) string) string {
		u, _ := a.wordPair(place, word(0))
		return a.emitResult("add.s64", word(1), a.emitResult("mul.hi.u64", u, word(2)))
	},
}

func (a *asm) applyChance(place string, word func(int) string) string {
	u, _ := a.wordPair(place, word(0))
	return a.emitResult("setp.lt.u64", a.emitResult("shr.u64", u, "11"), word(1))
}

// wordPair returns the random words u and v of the element with the row-major index place, as
// device.Sequence defines them.
func (a *asm) wordPair(place, key string) (u, v string) {
	x := a.philox(place, key)
	join := func(lo, hi string) string {
		return a.emitResult("or.b64", a.emitResult("shl.b64", a.emitResult("cvt.u64.u32", hi), "32"),
			a.emitResult("cvt.u64.u32", lo))
	}
	return join(x[0], x[1]), join(x[2], x[3])
}

// philox returns the four words (u32) of Philox 4×32-10 (Salmon et al., 2011) for a counter and
// a key (u64). The upper half of the counter is 0.
func (a *asm) philox(counter, key string) [4]string {
	low := func(x string) string { return a.emitResult("cvt.u32.u64", x) }
	high := func(x string) string { return low(a.emitResult("shr.u64", x, "32")) }
	x := [4]string{low(counter), high(counter), a.emitResult("mov.u32", "0"), a.emitResult("mov.u32", "0")}
	k := [2]string{low(key), high(key)}
	for range 10 {
		first, second := a.emitResult("mul.wide.u32", x[0], fmt.Sprint(0xd2511f53)),
			a.emitResult("mul.wide.u32", x[2], fmt.Sprint(0xcd9e8d57))
		x = [4]string{
			a.emitResult("xor.b32", a.emitResult("xor.b32", high(second), x[1]), k[0]), low(second),
			a.emitResult("xor.b32", a.emitResult("xor.b32", high(first), x[3]), k[1]), low(first),
		}
		k = [2]string{a.emitResult("add.u32", k[0], fmt.Sprint(0x9e3779b9)),
			a.emitResult("add.u32", k[1], fmt.Sprint(0xbb67ae85))}
	}
	return x
}
