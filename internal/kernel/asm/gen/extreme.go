package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extreme writes the larger or smaller of two numbers: do is of a NaN and a number the first
// operand, and if that is the number, the NaN is put in.
func (v vector) extreme(name, what string, do func(ops ...Op)) {
	v.pairwise(name, "the "+what+" of x and y, NaN if one is,", func(ops ...Op) {
		y, x, z := ops[0].(reg.VecVirtual), ops[1].(reg.VecVirtual), ops[2]
		none := v.fresh()
		v.move(x, none)
		none = v.where(v.compare(unordered, x, x), none)
		do(y, x, z)
		v.or(none, z, z)
	})
}

// extremes is the largest or smallest of numbers, which fill a register at least. The last one is
// read whole, so that some numbers count twice.
func (v vector) extremes(name, what string, do func(ops ...Op)) {
	TEXT(name+v.suffix, NOSPLIT, strings.ReplaceAll("func(n int, x *F) F", "F", v.goType))
	Pragma("noescape")
	v.doc(name, "returns the "+what+" element of x, NaN if one is. There are as many as a register has lanes, or more.")
	n, from := pointer("n"), pointer("x")
	best, none := v.fresh(), v.fresh()
	v.broadcast(Mem{Base: from}, best)
	v.zero(none)
	take := func(at Mem) {
		x := v.fresh()
		v.move(at, x)
		do(best, x, best)
		v.or(v.where(v.compare(unordered, x, x), x), none, none)
	}
	Label("whole")
	CMPQ(n, Imm(uint64(v.lanes)))
	JLE(LabelRef("rest"))
	take(Mem{Base: from})
	ADDQ(I32(int32(v.bytes())), from)
	SUBQ(Imm(uint64(v.lanes)), n)
	JMP(LabelRef("whole"))
	Label("rest")
	take(Mem{Base: from, Index: n, Scale: uint8(v.size), Disp: -v.bytes()})
	v.or(none, best, best)
	v.result(v.extremeLane(best, do))
	v.end()
}

// extremeLane returns the largest or smallest lane, in the lowest one.
func (v vector) extremeLane(x reg.VecVirtual, do func(ops ...Op)) reg.VecVirtual {
	compare := map[bool]func(ops ...Op){true: VCMPPS, false: VCMPPD}[v.single()]
	of := func(a, b, none reg.VecVirtual) {
		compare(U8(unordered), a, a, none)
		VANDPS(a, none, none)
		do(b, a, b)
		VORPS(none, b, b)
	}
	half := YMM()
	if v.wide {
		VEXTRACTF64X4(Imm(1), x, half)
		of(x.AsY().(reg.VecVirtual), half, YMM())
	} else {
		half = x
	}
	low, next := XMM(), XMM()
	VEXTRACTF128(Imm(1), half, low)
	of(half.AsX().(reg.VecVirtual), low, XMM())
	VUNPCKHPD(low, low, next)
	of(next, low, XMM())
	if v.single() {
		VMOVSHDUP(low, next)
		of(next, low, XMM())
	}
	return low
}
