package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeRandoms emits the functions for random bits and the conversion of random bits to
// numbers, eight at a time, with AVX-512. A seed must yield the same numbers on all machines,
// so each step is rounded separately.
func writeRandoms() {
	if onARM64 {
		writeRandomsOnARM64()
		return
	}
	congruence()
	v := avx512(8)
	v.fractions()
	v.points()
	v.pairs()
}

// longs returns a constant of eight 64-bit numbers.
func longs(name string, of [8]uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i, x := range of {
		DATA(8*i, U64(x))
	}
	return m
}

// loaded emits the load of a register from m, and returns it.
func (v vector) loaded(m Mem) reg.VecVirtual {
	x := v.fresh()
	VMOVDQU64(m, x)
	return x
}

// eights emits a loop of n/8 iterations of body. n must be a multiple of 8 and may be 0. n is 0
// afterwards.
func eights(n reg.GPVirtual, body func()) {
	Label("loop")
	TESTQ(n, n)
	JLE(LabelRef("end"))
	body()
	SUBQ(Imm(8), n)
	JMP(LabelRef("loop"))
	Label("end")
}

// fractions emits the function that converts the highest bits of numbers to a uniform
// distribution.
func (v vector) fractions() {
	TEXT("FractionsAVX512", NOSPLIT, "func(n int, bits *uint64, shift uint64, width, part, lo float64, to *float64)")
	Pragma("noescape")
	Doc("FractionsAVX512 writes lo + width·part·(b >> shift) to to, for n numbers b in bits. n must be a " +
		"multiple of 8.")
	shift, width, part, lo := v.scalar("shift"), v.scalar("width"), v.scalar("part"), v.scalar("lo")
	n, bits, to := pointer("n"), pointer("bits"), pointer("to")
	eights(n, func() {
		x := v.loaded(Mem{Base: bits})
		VPSRLVQ(shift, x, x)
		VCVTQQ2PD(x, x)
		v.mul(width, x, x)
		v.mul(part, x, x)
		v.add(lo, x, x)
		v.move(x, Mem{Base: to})
		ADDQ(Imm(64), bits)
		ADDQ(Imm(64), to)
	})
	v.end()
}

// points emits the function that keeps the points of the square that are inside the unit disc.
func (v vector) points() {
	TEXT("PointsAVX512", NOSPLIT, "func(n int, bits *uint64, x, y, s *float64) int")
	Pragma("noescape")
	Doc("PointsAVX512 computes n points with two coordinates in [-1, 1), a multiple of 8, from 2·n numbers in " +
		"bits. It writes the coordinates and the squared distance from the centre of the points inside the unit " +
		"disc, except its centre, and returns their number. The other elements of x, y and s, up to n, have no " +
		"meaning.")
	n, bits, count := pointer("n"), pointer("bits"), GP64()
	to := [3]reg.GPVirtual{pointer("x"), pointer("y"), pointer("s")}
	evens := v.loaded(longs("evens", [8]uint64{0, 2, 4, 6, 8, 10, 12, 14}))
	odds := v.loaded(longs("odds", [8]uint64{1, 3, 5, 7, 9, 11, 13, 15}))
	zero, one := v.fresh(), v.fresh()
	v.zero(zero)
	v.move(v.constant(1), one)
	XORQ(count, count)
	eights(n, func() {
		low, high := v.loaded(Mem{Base: bits}), v.loaded(Mem{Base: bits, Disp: 64})
		x, y := v.fresh(), v.fresh()
		VMOVDQU64(low, x)
		VMOVDQU64(low, y)
		VPERMT2Q(high, evens, x)
		VPERMT2Q(high, odds, y)
		for _, z := range []reg.VecVirtual{x, y} {
			VPSRLQ(Imm(11), z, z)
			VCVTQQ2PD(z, z)
			v.mul(v.constant(0x1p-52), z, z)
			v.sub(one, z, z)
		}
		s, square := v.fresh(), v.fresh()
		v.mul(x, x, s)
		v.mul(y, y, square)
		v.add(square, s, s)
		inside := v.compare(greater, zero, s).k
		KANDB(v.compare(below, one, s).k, inside, inside)
		for i, z := range []reg.VecVirtual{x, y, s} {
			VCOMPRESSPD_Z(z, inside, z)
			v.move(z, Mem{Base: to[i], Index: count, Scale: 8})
		}
		found := GP32()
		KMOVB(inside, found)
		POPCNTL(found, found)
		ADDQ(found.As64(), count)
		ADDQ(I32(128), bits)
	})
	Store(count, ReturnIndex(0))
	v.end()
}

// pairs emits the function that converts points of the unit disc to normally distributed
// numbers.
func (v vector) pairs() {
	TEXT("PairsAVX512", NOSPLIT, "func(n int, mean, std float64, x, y, factor, to *float64)")
	Pragma("noescape")
	Doc("PairsAVX512 writes mean + std·x·factor and mean + std·y·factor alternately to to, for n points (x, " +
		"y). n must be a multiple of 8.")
	mean, std := v.scalar("mean"), v.scalar("std")
	n, x, y, factor, to := pointer("n"), pointer("x"), pointer("y"), pointer("factor"), pointer("to")
	first := v.loaded(longs("firsts", [8]uint64{0, 8, 1, 9, 2, 10, 3, 11}))
	second := v.loaded(longs("seconds", [8]uint64{4, 12, 5, 13, 6, 14, 7, 15}))
	eights(n, func() {
		f, a, b := v.fresh(), v.fresh(), v.fresh()
		v.move(Mem{Base: factor}, f)
		v.mul(Mem{Base: x}, f, a)
		v.mul(Mem{Base: y}, f, b)
		for _, z := range []reg.VecVirtual{a, b} {
			v.mul(std, z, z)
			v.add(mean, z, z)
		}
		low := v.fresh()
		v.move(a, low)
		VPERMT2PD(b, first, low)
		VPERMT2PD(b, second, a)
		v.move(low, Mem{Base: to})
		v.move(a, Mem{Base: to, Disp: 64})
		for _, p := range []reg.GPVirtual{x, y, factor} {
			ADDQ(Imm(64), p)
		}
		ADDQ(I32(128), to)
	})
	v.end()
}
