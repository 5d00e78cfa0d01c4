package main

import (
	"math"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// extreme emits the function name for the maximum or minimum of two numbers, which what names.
// If an operand is NaN, do must return its first operand; extreme merges a NaN in the other
// operand into the result.
func (v vector) extreme(name, what string, do func(ops ...Op)) {
	text := "the " + what + " of x and y, NaN if one is,"
	if v.neon {
		v.pairwise(name, text, do)
		return
	}
	v.pairwise(name, text, func(ops ...Op) {
		y, x, z := ops[0].(reg.VecVirtual), ops[1].(reg.VecVirtual), ops[2]
		none := v.fresh()
		v.move(x, none)
		none = v.where(v.compare(unordered, x, x), none)
		do(y, x, z)
		v.or(none, z, z)
	})
}

// extremes emits the function name for the maximum or minimum of n numbers; n must be at least
// the number of lanes. The last register is loaded in full, so some numbers are processed
// twice. NaN is detected by comparing two numbers at a time, and merged into the result at the
// end.
func (v vector) extremes(name, what string, do func(ops ...Op)) {
	const ways = 4
	TEXT(name+v.suffix, NOSPLIT, strings.ReplaceAll("func(n int, x *F) F", "F", v.goType))
	Pragma("noescape")
	v.doc(name, "returns the "+what+" element of x, NaN if one is. There are as many as a register has lanes, or more.")
	n, from := pointer("n"), pointer("x")
	var best [ways]reg.VecVirtual
	for i := range best {
		best[i] = v.fresh()
		v.broadcast(Mem{Base: from}, best[i])
	}
	none := v.unordered(best[0], best[0])
	Label("ways")
	CMPQ(n, Imm(uint64(ways*v.lanes)))
	JLE(LabelRef("whole"))
	for i := 0; i < ways; i += 2 {
		x, y := v.fresh(), v.fresh()
		v.move(at(from, i*v.bytes()), x)
		v.move(at(from, (i+1)*v.bytes()), y)
		v.mark(x, y, none)
		do(best[i], x, best[i])
		do(best[i+1], y, best[i+1])
	}
	ADDQ(I32(int32(ways*v.bytes())), from)
	SUBQ(Imm(uint64(ways*v.lanes)), n)
	JMP(LabelRef("ways"))
	one := func(at Mem) {
		x := v.fresh()
		v.move(at, x)
		v.mark(x, x, none)
		do(best[0], x, best[0])
	}
	Label("whole")
	CMPQ(n, Imm(uint64(v.lanes)))
	JLE(LabelRef("rest"))
	one(Mem{Base: from})
	ADDQ(I32(int32(v.bytes())), from)
	SUBQ(Imm(uint64(v.lanes)), n)
	JMP(LabelRef("whole"))
	Label("rest")
	one(Mem{Base: from, Index: n, Scale: uint8(v.size), Disp: -v.bytes()})
	do(best[1], best[0], best[0])
	do(best[3], best[2], best[2])
	do(best[2], best[0], best[0])
	v.merge(none, best[0])
	v.result(v.extremeLane(best[0], do))
	v.end()
}

// columnExtremes emits the function name, which replaces y by the maximum or minimum of y and
// the columns of x. If an operand is NaN, do must return its first operand.
func (v vector) columnExtremes(name, what string, do func(ops ...Op)) {
	v.text(name, "rows, n int, x *F, ld int, y *F")
	v.doc(name, "makes y the "+what+" of y and of the columns of rows of n elements, ld apart, NaN if one is.")
	rows, n, x, ld, y := pointer("rows"), pointer("n"), pointer("x"), v.loadByteCount("ld"), pointer("y")
	rest := v.split(n)
	last := v.first(twin(rest))
	v.downwards(rows, n, rest, x, ld, y, v.size, func(row func(i int) Mem, to reg.GPVirtual, n int, whole bool) {
		read := func(at Mem) reg.VecVirtual {
			r := v.fresh()
			if whole {
				v.move(at, r)
			} else {
				v.load(at, last, r)
			}
			return r
		}
		best := read(row(0))
		none := mask{}
		if n == 1 {
			none = v.unordered(best, best)
		} else {
			second, third, fourth := read(row(1)), read(row(2)), read(row(3))
			none = v.unordered(second, best)
			v.mark(fourth, third, none)
			do(second, best, best)
			do(fourth, third, third)
			do(third, best, best)
		}
		do(read(at(to, 0)), best, best) // keeps NaN
		v.merge(none, best)
		if whole {
			v.move(best, at(to, 0))
		} else {
			v.store(best, last, at(to, 0))
		}
	})
}

// unordered emits the mask of the lanes where a or b is NaN and returns it, mark adds it to
// none, and merge makes these lanes of x NaN. On arm64 the maximum of NaN and a number is NaN,
// so they do nothing.
func (v vector) unordered(a, b reg.VecVirtual) mask {
	if v.neon {
		return mask{}
	}
	return v.compare(unordered, a, b)
}

func (v vector) mark(a, b reg.VecVirtual, none mask) {
	if !v.neon {
		v.either(v.compare(unordered, a, b), none)
	}
}

func (v vector) merge(none mask, x reg.VecVirtual) {
	if !v.neon {
		v.or(v.noneWhere(none), x, x)
	}
}

// either emits the addition of the lanes of one to other.
func (v vector) either(one, other mask) {
	if v.wide {
		KORW(one.k, other.k, other.k)
	} else {
		VORPS(one.y, other.y, other.y)
	}
}

// noneWhere emits a new register with NaN in the lanes of m and zero in the others, and returns
// it.
func (v vector) noneWhere(m mask) reg.VecVirtual {
	none := v.fresh()
	v.move(v.constant(math.NaN()), none)
	return v.where(m, none)
}

// extremeLane emits the maximum or minimum of all lanes, and returns a register with it in the
// lowest lane. It may overwrite x.
func (v vector) extremeLane(x reg.VecVirtual, do func(ops ...Op)) reg.VecVirtual {
	compare := map[bool]func(ops ...Op){true: VCMPPS, false: VCMPPD}[v.single()]
	of := func(a, b, none reg.VecVirtual) {
		if v.neon {
			do(b, a, b)
			return
		}
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
