package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// congruence emits the function that steps 128-bit linear congruential generators, for sixteen
// states: state = state·factor + increment. There is no vector multiplication of 64-bit numbers
// with a 128-bit result, so the product is composed of 32-bit partial products. The states are
// in two pairs of registers to hide the latency of the multiplications.
func congruence() {
	const registers = 2
	TEXT("CongruenceAVX512", NOSPLIT, "func(n int, state, rule *uint64, to *uint64)")
	Pragma("noescape")
	Doc("CongruenceAVX512 advances sixteen generators and writes one number of each, until it has written n " +
		"numbers, a multiple of 16. state has the upper halves of the states first, and then the lower halves. " +
		"rule has the factor and then the increment, each with the upper half first.")
	n, state, rule, to := pointer("n"), pointer("state"), pointer("rule"), pointer("to")
	spread := func(at int) reg.VecVirtual {
		x := ZMM()
		VPBROADCASTQ(Mem{Base: rule, Disp: at}, x)
		return x
	}
	var hi, lo [registers]reg.VecVirtual
	for i := range registers {
		hi[i], lo[i] = ZMM(), ZMM()
		VMOVDQU64(Mem{Base: state, Disp: 64 * i}, hi[i])
		VMOVDQU64(Mem{Base: state, Disp: 64 * (registers + i)}, lo[i])
	}
	s := stepper{factorHi: spread(0), factorLo: spread(8), addHi: spread(16), addLo: spread(24),
		factorUp: ZMM(), ones: ZMM(), lower: ZMM()}
	VPSRLQ(Imm(32), s.factorLo, s.factorUp)
	VPTERNLOGQ(U8(0xff), s.ones, s.ones, s.ones)
	VPSRLQ(Imm(32), s.ones, s.lower)
	Label("loop")
	TESTQ(n, n)
	JLE(LabelRef("end"))
	for i := range registers {
		s.step(hi[i], lo[i])
		count, number := ZMM(), ZMM()
		VPSRLQ(Imm(58), hi[i], count)
		VPXORQ(lo[i], hi[i], number)
		VPRORVQ(count, number, number)
		VMOVDQU64(number, Mem{Base: to, Disp: 64 * i})
	}
	ADDQ(I32(64*registers), to)
	SUBQ(Imm(8*registers), n)
	JMP(LabelRef("loop"))
	Label("end")
	for i := range registers {
		VMOVDQU64(hi[i], Mem{Base: state, Disp: 64 * i})
		VMOVDQU64(lo[i], Mem{Base: state, Disp: 64 * (registers + i)})
	}
	VZEROUPPER()
	RET()
}

// stepper holds the multiplier and increment of a generator, and masks, in registers.
type stepper struct{ factorHi, factorLo, addHi, addLo, factorUp, ones, lower reg.VecVirtual }

// step emits the step of eight states, with their upper halves in hi and their lower halves in
// lo, in place. To shorten the dependency chain, it first adds the terms that do not depend on
// the product of hi.
func (s stepper) step(hi, lo reg.VecVirtual) {
	up, low, left, right, high, mid, part := ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM(), ZMM()
	VPMULLQ(s.factorLo, hi, hi)
	VPSRLQ(Imm(32), lo, up)
	VPMULUDQ(s.factorLo, lo, low)
	VPMULUDQ(s.factorUp, lo, left)
	VPMULUDQ(s.factorLo, up, right)
	VPMULUDQ(s.factorUp, up, high)
	VPMULLQ(s.factorHi, lo, part)
	VPADDQ(part, high, high)
	VPSRLQ(Imm(32), low, mid)
	VPADDQ(right, mid, mid)
	VPANDQ(s.lower, left, part)
	VPADDQ(part, mid, mid) // cannot overflow
	VPSRLQ(Imm(32), left, left)
	VPADDQ(left, high, high)
	VPSRLQ(Imm(32), mid, part)
	VPADDQ(part, high, high)
	VPSLLQ(Imm(32), mid, mid)
	VPANDQ(s.lower, low, low)
	VPORQ(mid, low, lo)
	carry := K()
	VPADDQ(s.addLo, lo, lo)
	VPCMPUQ(Imm(1), s.addLo, lo, carry) // carry if the sum is less than the addend
	VPADDQ(s.addHi, high, high)
	VPSUBQ(s.ones, high, carry, high)
	VPADDQ(high, hi, hi)
}
