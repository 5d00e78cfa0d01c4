package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// congruence writes the steps of a linear congruential generator with 128 bits of state, eight
// states at once: each becomes state·factor + increment. There are no products of 64 bits that are
// twice as wide, so they are put together of those of halves.
func congruence() {
	TEXT("CongruenceAVX512", NOSPLIT, "func(n int, state, rule *uint64, to *uint64)")
	Pragma("noescape")
	Doc("CongruenceAVX512 moves eight states on and writes a number of each, n in all, a multiple of 8. The upper halves of the states come first, and so do those of factor and increment in rule.")
	n, state, rule, to := pointer("n"), pointer("state"), pointer("rule"), pointer("to")
	load := func(base reg.GPVirtual, at int, spread bool) reg.VecVirtual {
		x := ZMM()
		if spread {
			VPBROADCASTQ(Mem{Base: base, Disp: at}, x)
		} else {
			VMOVDQU64(Mem{Base: base, Disp: at}, x)
		}
		return x
	}
	hi, lo := load(state, 0, false), load(state, 64, false)
	factorHi, factorLo := load(rule, 0, true), load(rule, 8, true)
	addHi, addLo := load(rule, 16, true), load(rule, 24, true)
	factorUp, ones, lower := ZMM(), ZMM(), ZMM()
	VPSRLQ(Imm(32), factorLo, factorUp)
	VPTERNLOGQ(U8(0xff), ones, ones, ones)
	VPSRLQ(Imm(32), ones, lower)
	Label("loop")
	TESTQ(n, n)
	JLE(LabelRef("end"))
	up, low, left, right, high, mid, part := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VPSRLQ(Imm(32), lo, up)
	VPMULUDQ(factorLo, lo, low)
	VPMULUDQ(factorUp, lo, left)
	VPMULUDQ(factorLo, up, right)
	VPMULUDQ(factorUp, up, high)
	VPSRLQ(Imm(32), low, mid)
	VPADDQ(right, mid, mid)
	VPANDQ(lower, left, part)
	VPADDQ(part, mid, mid) // has room for that
	VPSRLQ(Imm(32), left, left)
	VPADDQ(left, high, high)
	VPSRLQ(Imm(32), mid, part)
	VPADDQ(part, high, high)
	VPMULLQ(factorHi, lo, part)
	VPADDQ(part, high, high)
	VPMULLQ(factorLo, hi, part)
	VPADDQ(part, high, hi)
	VPSLLQ(Imm(32), mid, mid)
	VPANDQ(lower, low, low)
	VPORQ(mid, low, lo)
	carry := K()
	VPADDQ(addLo, lo, lo)
	VPCMPUQ(Imm(1), addLo, lo, carry) // less than what was added
	VPADDQ(addHi, hi, hi)
	VPSUBQ(ones, hi, carry, hi)
	count, number := ZMM(), ZMM()
	VPSRLQ(Imm(58), hi, count)
	VPXORQ(lo, hi, number)
	VPRORVQ(count, number, number)
	VMOVDQU64(number, Mem{Base: to})
	ADDQ(Imm(64), to)
	SUBQ(Imm(8), n)
	JMP(LabelRef("loop"))
	Label("end")
	VMOVDQU64(hi, Mem{Base: state})
	VMOVDQU64(lo, Mem{Base: state, Disp: 64})
	VZEROUPPER()
	RET()
}
