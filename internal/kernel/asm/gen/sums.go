package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// together is the number of elements that are added in single precision before their sum is added
// in double precision. Converting each element would take longer than loading it.
const together = 4

// rowSums emits the function for the sums of many rows per call. The final additions of one row
// then overlap with the next row.
func (v vector) rowSums() {
	TEXT("RowSums"+v.suffix, NOSPLIT, "func(rows, n int, x *float32, y *float64)")
	Pragma("noescape")
	v.doc("RowSums", "writes the sums of rows of n elements to y: four registers are added, and such sums in "+
		"double precision.")
	wide := v.double()
	rows, n, x, y := pointer("rows"), pointer("n"), pointer("x"), pointer("y")
	rest := v.split(n)
	last := v.first(twin(rest))
	low, high, left := wide.fresh(), wide.fresh(), GP64()
	Label("row")
	wide.zero(low)
	wide.zero(high)
	MOVQ(n, left)
	take := func(registers int) {
		lo, hi := v.doubled(v.upright(registers, func(i int) Mem { return at(x, i*v.bytes()) }))
		wide.add(lo, low, low)
		wide.add(hi, high, high)
		ADDQ(I32(int32(registers*v.bytes())), x)
		SUBQ(I32(int32(registers*v.lanes)), left)
	}
	Label("together")
	CMPQ(left, I32(int32(together*v.lanes)))
	JL(LabelRef("one"))
	take(together)
	JMP(LabelRef("together"))
	Label("one")
	TESTQ(left, left)
	JZ(LabelRef("rest"))
	take(1)
	JMP(LabelRef("one"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("next"))
	few := v.fresh()
	v.load(at(x, 0), last, few)
	lo, hi := v.doubled(few)
	wide.add(lo, low, low)
	wide.add(hi, high, high)
	LEAQ(Mem{Base: x, Index: rest, Scale: uint8(v.size)}, x)
	Label("next")
	wide.add(high, low, low)
	VMOVSD(wide.added(low), at(y, 0))
	ADDQ(Imm(uint64(wide.size)), y)
	DECQ(rows)
	JNZ(LabelRef("row"))
	v.end()
}

// columnSums emits the function for the sums of columns. It reads the rows in memory order, so
// each of the rows is one stream for the prefetcher.
func (v vector) columnSums() {
	TEXT("ColumnSums"+v.suffix, NOSPLIT, "func(rows, n int, x *float32, ld int, y *float64)")
	Pragma("noescape")
	v.doc("ColumnSums", "adds the columns of rows of n elements, ld apart, to y: four rows are added, and such "+
		"sums in double precision.")
	wide := v.double()
	rows, n, x, ld, y := pointer("rows"), pointer("n"), pointer("x"), v.loadByteCount("ld"), pointer("y")
	rest := v.split(n)
	last, lasts := v.first(twin(rest)), wide.masks(twin(rest), 2)
	v.downwards(rows, n, rest, x, ld, y, wide.size, func(row func(i int) Mem, sums reg.GPVirtual, n int, whole bool) {
		read := func(at Mem) reg.VecVirtual {
			r := v.fresh()
			if whole {
				v.move(at, r)
			} else {
				v.load(at, last, r)
			}
			return r
		}
		halves := [2]reg.VecVirtual{}
		if whole {
			halves[0], halves[1] = v.doubled(v.upright(n, row))
		} else {
			x := read(row(0))
			if n > 1 {
				second, third, fourth := read(row(1)), read(row(2)), read(row(3))
				v.add(second, x, x)
				v.add(fourth, third, third)
				v.add(third, x, x)
			}
			halves[0], halves[1] = v.doubled(x)
		}
		for i, half := range halves {
			to := at(sums, i*wide.bytes())
			if whole {
				wide.add(to, half, half)
				wide.move(half, to)
				continue
			}
			sum := wide.fresh()
			wide.load(to, lasts[i], sum)
			wide.add(sum, half, half)
			wide.store(half, lasts[i], to)
		}
	})
}

// split emits the reduction of n to a multiple of the lanes, in place, and returns a register
// with the remainder.
func (v vector) split(n reg.GPVirtual) (rest reg.GPVirtual) {
	rest = GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(v.lanes-1)), rest)
	SUBQ(rest, n)
	return rest
}

// twin emits a copy of n, for code that overwrites it, and returns the copy.
func twin(n reg.GPVirtual) reg.GPVirtual {
	same := GP64()
	MOVQ(n, same)
	return same
}

// upright emits the sum of the given number of registers in memory, 1 or [together], in a new
// register, and returns it. at returns the address of each.
func (v vector) upright(registers int, at func(i int) Mem) reg.VecVirtual {
	x := v.fresh()
	v.move(at(0), x)
	if registers > 1 {
		v.add(at(1), x, x)
		y := v.fresh()
		v.move(at(2), y)
		v.add(at(3), y, y)
		v.add(y, x, x)
	}
	return x
}

// doubled emits the conversion of both halves of x, which are float32, to double precision, and
// returns the two registers.
func (v vector) doubled(x reg.VecVirtual) (low, high reg.VecVirtual) {
	wide := v.double()
	low, high = wide.fresh(), wide.fresh()
	if v.wide {
		half := YMM()
		VEXTRACTF64X4(Imm(1), x, half)
		VCVTPS2PD(x.AsY(), low)
		VCVTPS2PD(half, high)
		return low, high
	}
	half := XMM()
	VEXTRACTF128(Imm(1), x, half)
	VCVTPS2PD(x.AsX(), low)
	VCVTPS2PD(half, high)
	return low, high
}

// downwards emits a walk over rows of n columns in whole registers and a rest of columns, and
// the return from the function. It processes four rows at a time, and then single rows. For
// each register of columns it calls body, which must emit the update of the elements of size
// bytes at to. row returns the address of each of the given number of rows. whole is false for
// the rest of the columns. ld is the distance between rows in bytes. The code overwrites rows
// and x.
func (v vector) downwards(rows, n, rest, x, ld, to reg.GPVirtual, size int,
	body func(row func(i int) Mem, to reg.GPVirtual, rows int, whole bool)) {
	three := GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, three)
	sweep := func(name string, count int) {
		from, sums, left := twin(x), twin(to), twin(n)
		row := func(i int) Mem {
			return [together]Mem{{Base: from}, {Base: from, Index: ld, Scale: 1}, {Base: from, Index: ld, Scale: 2},
				{Base: from, Index: three, Scale: 1}}[i]
		}
		Label(name + "whole")
		TESTQ(left, left)
		JZ(LabelRef(name + "rest"))
		body(row, sums, count, true)
		ADDQ(I32(int32(v.bytes())), from)
		ADDQ(I32(int32(v.lanes*size)), sums)
		SUBQ(I32(int32(v.lanes)), left)
		JMP(LabelRef(name + "whole"))
		Label(name + "rest")
		TESTQ(rest, rest)
		JZ(LabelRef(name + "next"))
		body(row, sums, count, false)
		Label(name + "next")
	}
	Label("rows")
	CMPQ(rows, Imm(together))
	JL(LabelRef("row"))
	sweep("four", together)
	LEAQ(Mem{Base: x, Index: ld, Scale: together}, x)
	SUBQ(Imm(together), rows)
	JMP(LabelRef("rows"))
	Label("row")
	TESTQ(rows, rows)
	JZ(LabelRef("end"))
	sweep("one", 1)
	ADDQ(ld, x)
	DECQ(rows)
	JMP(LabelRef("row"))
	Label("end")
	v.end()
}

// double returns the vector with the same kind of registers in double precision.
func (v vector) double() vector {
	switch {
	case v.neon:
		return neonVector(8)
	case v.wide:
		return avx512(8)
	}
	return avx2(8)
}
