package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A whole is what is made of two registers of integers, in the first one.
type whole struct {
	name string
	make func(x, y reg.VecVirtual)
}

// instructed is one instruction, whose last operand is what it writes.
func instructed(name string, do instruction) whole {
	return whole{name, func(x, y reg.VecVirtual) { do(y, x, x) }}
}

// wholes are what package kernel has tables of. There is no instruction for the products of
// integers of 64 bits, which plain code multiplies as quickly.
var wholes = []whole{
	instructed("AddInt8", VPADDB), instructed("AddInt16", VPADDW), instructed("AddInt32", VPADDD),
	instructed("AddInt64", VPADDQ),
	instructed("SubInt8", VPSUBB), instructed("SubInt16", VPSUBW), instructed("SubInt32", VPSUBD),
	instructed("SubInt64", VPSUBQ),
	{"MulInt8", timesBytes}, instructed("MulInt16", VPMULLW), instructed("MulInt32", VPMULLD),
	instructed("MaxUint8", VPMAXUB), instructed("MaxInt8", VPMAXSB), instructed("MaxInt16", VPMAXSW),
	instructed("MaxInt32", VPMAXSD), {"MaxInt64", func(x, y reg.VecVirtual) { pickLong(x, y, y, x) }},
	instructed("MinUint8", VPMINUB), instructed("MinInt8", VPMINSB), instructed("MinInt16", VPMINSW),
	instructed("MinInt32", VPMINSD), {"MinInt64", func(x, y reg.VecVirtual) { pickLong(x, y, x, y) }},
}

// writeWholes writes loops over pairs of integers. They mostly wait for memory, so registers of
// AVX2 are wide enough.
func writeWholes([]vector) {
	for _, w := range wholes {
		pixels(w.name+"AVX2", "n int, x, y, z *byte",
			"makes n bytes of z, a multiple of 32, of those of x and y.")
		n, x, y, z := pointer("n"), pointer("x"), pointer("y"), pointer("z")
		loop(n, 32, func() {
			a, b := YMM(), YMM()
			VMOVDQU(at(x, 0), a)
			VMOVDQU(at(y, 0), b)
			w.make(a, b)
			VMOVDQU(a, at(z, 0))
			ADDQ(Imm(32), x)
			ADDQ(Imm(32), y)
			ADDQ(Imm(32), z)
		})
	}
}

// timesBytes multiplies bytes in pairs: the lower ones, and the higher ones once they are moved.
func timesBytes(x, y reg.VecVirtual) {
	high, other := YMM(), YMM()
	VPSRLW(Imm(8), x, high)
	VPSRLW(Imm(8), y, other)
	VPMULLW(other, high, high)
	VPSLLW(Imm(8), high, high)
	VPMULLW(y, x, x)
	VPAND(words("LowBytes", 0x00ff00ff), x, x)
	VPOR(high, x, x)
}

// pickLong makes x the elements of y where those of greater are greater than those of less.
func pickLong(x, y, greater, less reg.VecVirtual) {
	m := YMM()
	VPCMPGTQ(less, greater, m)
	VBLENDVPD(m, y, x, x)
}
