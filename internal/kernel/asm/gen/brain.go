package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/shoal-mp/shoal/internal/kernel/asm/gen/neon"
)

// writeBrains emits the loops for BFloat16 on arm64 processors with the extension BF16. The
// loops of amd64 are written by hand, because Go's assembler does not know the instructions.
func writeBrains([]vector) {
	v := neonVector(4)
	cast("Float32ToBrainBF16", 4, 2, func(x, y Mem) {
		r := YMM()
		VMOVUPS(x, r)
		v.roundToBrain(r, y)
	})
	s := short{"Brain", v.fromBrain, v.roundToBrain}
	for _, op := range []struct {
		name string
		do   instruction
	}{{"Add", v.add}, {"Sub", v.sub}, {"Mul", v.mul}, {"Div", v.div}} {
		v.shortsTo(op.name+"BrainBF16", arithmeticTexts[op.name], "bfloat16", s, op.do)
	}
	productBrain()
	pairBrain()
}

func (v vector) roundToBrain(x reg.VecVirtual, y Mem) {
	neon.Raw(func(c *neon.Code) { c.RoundToBrain(x, y) })
}

// side is the number of rows and columns of a panel, and pair the bytes of a pair of elements.
const (
	side = 32
	pair = 4
)

func productBrain() {
	pixels("ProductBrainBF16", "depth, panels int, a *byte, lda int, b *byte, step int, c *float32, ldc int",
		"computes c = a·b of BFloat16 in float32, for 32 rows and the given number of panels. a has rows of "+
			"depth·32 elements, lda bytes apart. A panel of b holds 32 columns. It consists of depth·16 rows of 32 "+
			"pairs; a pair is two vertically adjacent elements. Panels are step bytes apart. Rows of c are ldc "+
			"bytes apart. Subnormal numbers count as 0. depth and panels must be positive.")
	groups, panels, a, lda := pointer("depth"), pointer("panels"), pointer("a"), pointer("lda")
	b, step, to, ldc := pointer("b"), pointer("step"), pointer("c"), pointer("ldc")
	SHLQ(Imm(2), groups) // groups of four pairs
	Label("panel")
	from, sums, left := twin(a), twin(to), GP64()
	MOVQ(U32(side/neon.BrainRows), left)
	Label("rows")
	pairs, place, columns := twin(b), twin(sums), GP64()
	MOVQ(U32(side/neon.BrainColumns), columns)
	Label("columns")
	k, at := twin(groups), twin(pairs)
	rows := []reg.Register{twin(from)}
	for i := 1; i < neon.BrainRows; i++ {
		next := GP64()
		LEAQ(Mem{Base: rows[i-1], Index: lda, Scale: 1}, next)
		rows = append(rows, next)
	}
	neon.Raw(func(c *neon.Code) { c.BrainBlock(rows, at, k, place, ldc, side*pair) })
	ADDQ(Imm(neon.BrainColumns*pair), pairs)
	ADDQ(Imm(neon.BrainColumns*4), place)
	DECQ(columns)
	JNZ(LabelRef("columns"))
	LEAQ(Mem{Base: from, Index: lda, Scale: neon.BrainRows}, from)
	LEAQ(Mem{Base: sums, Index: ldc, Scale: neon.BrainRows}, sums)
	DECQ(left)
	JNZ(LabelRef("rows"))
	ADDQ(step, b)
	ADDQ(Imm(side*4), to)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	RET()
}

func pairBrain() {
	pixels("PairBrainNEON", "rows, columns int, x *byte, ld int, y *byte, ldy int",
		"interleaves pairs of rows of two-byte elements for [ProductBrainBF16]. x has 2·rows rows, ld bytes "+
			"apart; each row of y holds the pairs of vertically adjacent elements of two of them. Rows of y are ldy "+
			"bytes apart. columns must be a multiple of 16.")
	rows, columns, x, ld := pointer("rows"), pointer("columns"), pointer("x"), pointer("ld")
	y, ldy := pointer("y"), pointer("ldy")
	TESTQ(rows, rows)
	JLE(LabelRef("end"))
	Label("row")
	upper, lower, to, n := twin(x), GP64(), twin(y), twin(columns)
	LEAQ(Mem{Base: x, Index: ld, Scale: 1}, lower)
	TESTQ(n, n)
	JLE(LabelRef("next"))
	Label("sixteen")
	neon.Raw(func(c *neon.Code) { c.PairRows(upper, lower, to) })
	ADDQ(Imm(32), upper)
	ADDQ(Imm(32), lower)
	ADDQ(Imm(64), to)
	SUBQ(Imm(16), n)
	JG(LabelRef("sixteen"))
	Label("next")
	LEAQ(Mem{Base: x, Index: ld, Scale: 2}, x)
	ADDQ(ldy, y)
	DECQ(rows)
	JNZ(LabelRef("row"))
	Label("end")
	RET()
}
