package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// rowwise emits the function name of two matrices with n columns and rows lds and ldd apart.
// dst is overwritten, or added to if add is not nil. rows and n must be at least 1. doc is the
// format of the doc comment, for the suffix.
func (v vector) rowwise(name, doc string, add func(ops ...Op)) {
	v.text(name, "rows, n int, src *F, lds int, dst *F, ldd int")
	Doc(fmt.Sprintf(doc, v.suffix))
	rows, n, src, lds, dst, ldd := pointer("rows"), pointer("n"), pointer("src"), v.loadByteCount("lds"),
		pointer("dst"), v.loadByteCount("ldd")
	rest := GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(v.lanes-1)), rest)
	SUBQ(rest, n) // elements in whole registers
	tail := GP64()
	MOVQ(rest, tail)
	last := v.first(tail)

	Label("row")
	// prefetch, because the hardware prefetcher does not follow distant rows
	next := Mem{Base: src, Index: lds, Scale: 8}
	PREFETCHT0(next)
	PREFETCHT0(next.Offset(64))
	i := GP64()
	XORQ(i, i)
	Label("whole")
	CMPQ(i, n)
	JGE(LabelRef("rest"))
	step := func(move func(from Op, to reg.VecVirtual), store func(x reg.VecVirtual, to Op)) {
		from, to := Mem{Base: src, Index: i, Scale: uint8(v.size)}, Mem{Base: dst, Index: i, Scale: uint8(v.size)}
		x := v.fresh()
		move(from, x)
		if add != nil {
			old := v.fresh()
			move(to, old)
			add(old, x, x)
		}
		store(x, to)
	}
	step(func(from Op, to reg.VecVirtual) { v.move(from, to) }, func(x reg.VecVirtual, to Op) { v.move(x, to) })
	ADDQ(Imm(uint64(v.lanes)), i)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	step(func(from Op, to reg.VecVirtual) { v.load(from, last, to) },
		func(x reg.VecVirtual, to Op) { v.store(x, last, to) })
	Label("next")
	ADDQ(lds, src)
	ADDQ(ldd, dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// transpose emits the function dst[j·ldd + i] = src[off[i] + j] for i < rows and j < cols. rows
// must not exceed the lanes of a register; rows and cols must be at least 1.
func (v vector) transpose() {
	v.text("Transpose", "rows, cols int, src *F, off *int, dst *F, ldd int")
	Doc(fmt.Sprintf("Transpose%s writes up to %d rows, which begin at off, as columns.", v.suffix, v.lanes))
	rows, cols, src, off, dst, ldd := pointer("rows"), pointer("cols"), pointer("src"), pointer("off"),
		pointer("dst"), v.loadByteCount("ldd")
	// Missing rows alias the first row. Their lanes are masked by the store.
	from := make([]reg.GPVirtual, v.lanes)
	for i := range from {
		from[i] = GP64()
		MOVQ(Mem{Base: off, Disp: 0}, from[i])
		if i > 0 {
			skip := fmt.Sprint("short", i)
			CMPQ(rows, Imm(uint64(i)))
			JLE(LabelRef(skip))
			MOVQ(Mem{Base: off, Disp: 8 * i}, from[i])
			Label(skip)
		}
		LEAQ(Mem{Base: src, Index: from[i], Scale: uint8(v.size)}, from[i])
	}
	if v.neon {
		v.squares(rows, cols, dst, ldd, from)
	}
	high := v.first(rows)
	Label("block")
	n := GP64()
	MOVL(U32(uint32(v.lanes)), n.As32())
	CMPQ(cols, n)
	CMOVQLT(cols, n)
	wide := v.first(n)
	x := make([]reg.VecVirtual, v.lanes)
	for i := range x {
		x[i] = v.fresh()
		v.load(Mem{Base: from[i]}, wide, x[i])
		ADDQ(Imm(uint64(v.bytes())), from[i])
	}
	x = v.transposed(x)
	for _, y := range x {
		v.store(y, high, Mem{Base: dst})
		ADDQ(ldd, dst)
		DECQ(cols)
		JZ(LabelRef("end"))
	}
	JMP(LabelRef("block"))
	Label("end")
	VZEROUPPER()
	RET()
}

// squares emits the transposition of whole squares, while all rows exist and enough columns.
// The code advances dst and from, and subtracts the columns that are done from cols. It jumps
// to the label end if none is left.
func (v vector) squares(rows, cols, dst, ldd reg.GPVirtual, from []reg.GPVirtual) {
	CMPQ(rows, Imm(uint64(v.lanes)))
	JNE(LabelRef("parts"))
	Label("square")
	CMPQ(cols, Imm(uint64(v.lanes)))
	JL(LabelRef("parts"))
	x := make([]reg.VecVirtual, v.lanes)
	for i := range x {
		x[i] = v.fresh()
		v.move(Mem{Base: from[i]}, x[i])
		ADDQ(Imm(uint64(v.bytes())), from[i])
	}
	for _, y := range v.transposed(x) {
		v.move(y, Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	SUBQ(Imm(uint64(v.lanes)), cols)
	JZ(LabelRef("end"))
	JMP(LabelRef("square"))
	Label("parts")
}

// transposed emits the transposition of a square matrix in registers, and returns the new
// registers.
func (v vector) transposed(x []reg.VecVirtual) []reg.VecVirtual {
	fresh := func() []reg.VecVirtual {
		y := make([]reg.VecVirtual, len(x))
		for i := range y {
			y[i] = YMM()
		}
		return y
	}
	if !v.single() {
		y, z := fresh(), fresh()
		for i := 0; i < 4; i += 2 {
			VUNPCKLPD(x[i+1], x[i], y[i])
			VUNPCKHPD(x[i+1], x[i], y[i+1])
		}
		for i := range 2 {
			VPERM2F128(Imm(0x20), y[i+2], y[i], z[i])
			VPERM2F128(Imm(0x31), y[i+2], y[i], z[i+2])
		}
		return z
	}
	y := fresh()
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(x[i+1], x[i], y[i])
		VUNPCKHPS(x[i+1], x[i], y[i+1])
	}
	z := fresh()
	for i := 0; i < 8; i += 4 {
		for j := range 2 {
			VUNPCKLPD(y[i+j+2], y[i+j], z[i+2*j])
			VUNPCKHPD(y[i+j+2], y[i+j], z[i+2*j+1])
		}
	}
	w := fresh()
	for i := range 4 {
		VPERM2F128(Imm(0x20), z[i+4], z[i], w[i])
		VPERM2F128(Imm(0x31), z[i+4], z[i], w[i+4])
	}
	return w
}

// transposeSixteen emits the function that writes sixteen float32 rows as columns, so that each
// store fills a cache line. It interleaves elements of two rows, then pairs of elements, and
// finally permutes 128-bit quarters.
func (v vector) transposeSixteen() {
	const rows = 16
	v.text("TransposeSixteen", "n int, src *F, lds int, dst *F, ldd int")
	v.doc("TransposeSixteen", "writes n columns of src, a multiple of 16, of sixteen rows as rows of dst.")
	n, src, lds, dst, ldd := pointer("n"), pointer("src"), v.loadByteCount("lds"), pointer("dst"), v.loadByteCount("ldd")
	exchange := func(low, high func(ops ...Op), a, b *reg.VecVirtual) {
		l := v.fresh()
		low(*b, *a, l)
		high(*b, *a, *b)
		*a = l
	}
	quarters := func(a, b *reg.VecVirtual) { // the even quarters of both, and the odd ones
		l := v.fresh()
		VSHUFF32X4(U8(0x88), *b, *a, l)
		VSHUFF32X4(U8(0xdd), *b, *a, *b)
		*a = l
	}
	Label("loop")
	from := twin(src)
	var x [rows]reg.VecVirtual
	for i := range x {
		x[i] = v.fresh()
		v.move(Mem{Base: from}, x[i])
		if i < rows-1 {
			ADDQ(lds, from)
		}
	}
	for i := 0; i < rows; i += 2 {
		exchange(VUNPCKLPS, VUNPCKHPS, &x[i], &x[i+1])
	}
	for i := 0; i < rows; i += 4 {
		exchange(VUNPCKLPD, VUNPCKHPD, &x[i], &x[i+2])
		exchange(VUNPCKLPD, VUNPCKHPD, &x[i+1], &x[i+3])
		x[i+1], x[i+2] = x[i+2], x[i+1]
	}
	for c := range 4 { // column c of each quarter
		quarters(&x[c], &x[4+c])
		quarters(&x[8+c], &x[12+c])
		quarters(&x[c], &x[8+c])    // first and third quarters
		quarters(&x[4+c], &x[12+c]) // second and fourth quarters
	}
	for i := range x {
		v.move(x[i], Mem{Base: dst})
		ADDQ(ldd, dst)
	}
	ADDQ(Imm(64), src)
	SUBQ(Imm(rows), n)
	JG(LabelRef("loop"))
	v.end()
}
