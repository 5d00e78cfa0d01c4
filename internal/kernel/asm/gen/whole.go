package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// whole is an operation on two registers of integers. make emits it and leaves the result in x.
type whole struct {
	name string
	make func(x, y reg.VecVirtual)
}

// instructed returns the whole of a single instruction do, which writes its last operand.
func instructed(name string, do instruction) whole {
	return whole{name, func(x, y reg.VecVirtual) { do(y, x, x) }}
}

// wholes are the operations in the tables of package kernel. There is no AVX2 instruction to
// multiply 64-bit integers, and plain Go is as fast as a substitute.
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

// arithmeticTexts describes the result of an operation for the comment of a function.
var arithmeticTexts = map[string]string{"Add": "x+y", "Sub": "x-y", "Mul": "x·y", "Div": "x/y",
	"Max": "the larger of x and y", "Min": "the smaller of x and y"}

// writeWholes emits loops over pairs of integers. They are limited by memory bandwidth, so AVX2
// registers suffice.
func writeWholes([]vector) {
	for _, w := range wholes {
		pixels(w.name+"AVX2", "n int, x, y, z *byte",
			"writes "+arithmeticTexts[w.name[:3]]+" to z. The n bytes, a multiple of 32, are "+
				strings.ToLower(w.name[3:])+" numbers.")
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

// timesBytes emits x = x·y for bytes. It multiplies them as 16-bit numbers: first the low
// bytes, then the high bytes after a shift.
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

// pickLong emits a copy of y to x in the elements, 64-bit integers, where greater exceeds less.
func pickLong(x, y, greater, less reg.VecVirtual) {
	m := YMM()
	if x.Size() == 16 {
		m = XMM()
	}
	VPCMPGTQ(less, greater, m)
	VBLENDVPD(m, y, x, x)
}
