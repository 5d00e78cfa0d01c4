package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeMoves emits copies of elements in another order. They are limited by memory bandwidth,
// so AVX2 registers suffice.
func writeMoves([]vector) {
	halves := func(x reg.VecVirtual) { VPERMQ(Imm(0x4e), x, x) }
	reverse("ReverseBytesAVX2", words("LastByte", 0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203),
		func(order, x reg.VecVirtual) { VPSHUFB(order, x, x); halves(x) })
	reverse("ReversePairsAVX2", words("LastPair", 0x0d0c0f0e, 0x09080b0a, 0x05040706, 0x01000302),
		func(order, x reg.VecVirtual) { VPSHUFB(order, x, x); halves(x) })
	reverse("ReverseWordsAVX2", words("LastWord", 7, 6, 5, 4, 3, 2, 1, 0),
		func(order, x reg.VecVirtual) { VPERMD(x, order, x) })
	reverse("ReverseLongsAVX2", words("LastWord", 7, 6, 5, 4, 3, 2, 1, 0),
		func(_, x reg.VecVirtual) { VPERMQ(Imm(0x1b), x, x) })
	everyOther("OtherBytesAVX2", func(x, y reg.VecVirtual) {
		for _, v := range []reg.VecVirtual{x, y} {
			VPSLLW(Imm(8), v, v)
			VPSRLW(Imm(8), v, v)
		}
		VPACKUSWB(y, x, x)
	})
	everyOther("OtherPairsAVX2", func(x, y reg.VecVirtual) {
		for _, v := range []reg.VecVirtual{x, y} {
			VPSLLD(Imm(16), v, v)
			VPSRLD(Imm(16), v, v)
		}
		VPACKUSDW(y, x, x)
	})
	everyOther("OtherWordsAVX2", func(x, y reg.VecVirtual) { VSHUFPS(Imm(0x88), y, x, x) })
	everyOther("OtherLongsAVX2", func(x, y reg.VecVirtual) { VUNPCKLPD(y, x, x) })
}

// reverse emits a function with the given name that loads registers from the end of x. turn
// must emit the reversal of the elements of x in place; order is a constant for it.
func reverse(name string, order Mem, turn func(order, x reg.VecVirtual)) {
	pixels(name, "n int, x, y *byte", "writes n bytes of x, a multiple of 32, to y, the last element first.")
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	first := YMM()
	VMOVDQU(order, first)
	take := func(registers int) {
		all := make([]reg.VecVirtual, registers)
		for i := range all { // load all first: a store could appear to alias the next load
			all[i] = YMM()
			VMOVDQU(Mem{Base: x, Index: n, Scale: 1, Disp: -32 * (i + 1)}, all[i])
		}
		for i, v := range all {
			turn(first, v)
			VMOVDQU(v, at(y, 32*i))
		}
		ADDQ(I32(int32(32*registers)), y)
	}
	const ways = 4
	Label("ways")
	CMPQ(n, I32(32*ways))
	JL(LabelRef("loop"))
	take(ways)
	SUBQ(I32(32*ways), n)
	JMP(LabelRef("ways"))
	loop(n, 32, func() { take(1) })
}

// everyOther emits a function with the given name that merges halves of two registers. half
// must emit the merge of x and y into x. Its instructions work within 128-bit lanes, so
// everyOther permutes the result.
func everyOther(name string, half func(x, y reg.VecVirtual)) {
	pixels(name, "n int, x, y *byte", "writes every other element of 2·n bytes of x, from the first one on, to n "+
		"bytes of y, a multiple of 32.")
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	loop(n, 32, func() {
		v, w := YMM(), YMM()
		VMOVDQU(at(x, 0), v)
		VMOVDQU(at(x, 32), w)
		half(v, w)
		VPERMQ(Imm(0xd8), v, v)
		VMOVDQU(v, at(y, 0))
		ADDQ(Imm(64), x)
		ADDQ(Imm(32), y)
	})
}
