package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeCasts emits the conversions between number formats. They are limited by memory
// bandwidth, so AVX2 registers suffice. Every processor with AVX2 has the half-precision
// conversions (F16C).
func writeCasts([]vector) {
	cast("HalfToFloat32AVX2", 2, 4, func(x, y Mem) {
		v := YMM()
		VCVTPH2PS(x, v)
		VMOVUPS(v, y)
	})
	cast("Float32ToHalfAVX2", 4, 2, func(x, y Mem) {
		v := YMM()
		VMOVUPS(x, v)
		VCVTPS2PH(Imm(0), v, y) // round to nearest, ties to even
	})
	cast("BrainToFloat32AVX2", 2, 4, func(x, y Mem) {
		v := YMM()
		VPMOVZXWD(x, v)
		VPSLLD(Imm(16), v, v)
		VMOVUPS(v, y)
	})
	castToBrain()
	cast("Uint8ToFloat32AVX2", 1, 4, func(x, y Mem) {
		v := YMM()
		VPMOVZXBD(x, v)
		VCVTDQ2PS(v, v)
		VMOVUPS(v, y)
	})
	cast("Int32ToFloat32AVX2", 4, 4, func(x, y Mem) {
		v := YMM()
		VCVTDQ2PS(x, v)
		VMOVUPS(v, y)
	})
	cast("Float32ToFloat64AVX2", 4, 8, func(x, y Mem) {
		for half := range 2 {
			v := YMM()
			VCVTPS2PD(x.Offset(16*half), v)
			VMOVUPD(v, y.Offset(32*half))
		}
	})
	cast("Float32ToInt64AVX512", 4, 8, func(x, y Mem) {
		v := ZMM()
		VCVTTPS2QQ(x, v) // out of range yields the smallest int64, as in Go on amd64
		VMOVDQU64(v, y)
	})
	cast("Int64ToFloat32AVX512", 8, 4, func(x, y Mem) {
		v := YMM()
		VCVTQQ2PS(x, v) // the source is a full register in memory
		VMOVUPS(v, y)
	})
	if onARM64 {
		longCastsOnARM64()
	}
	gathers()
	cast("Float64ToFloat32AVX2", 8, 4, func(x, y Mem) {
		for half := range 2 {
			v := XMM()
			VCVTPD2PSY(x.Offset(32*half), v)
			VMOVUPS(v, y.Offset(16*half))
		}
	})
}

// gathers emits the functions dst[i] = src[places[i]] for four-byte elements.
func gathers() {
	const doc = "writes the element of src at each of n places, a multiple of 8, to dst. Elements have four bytes."
	pixels("GatherAVX2", "n int, places *int, src, dst *byte", doc)
	n, places, src, dst := pointer("n"), pointer("places"), pointer("src"), pointer("dst")
	if onARM64 {
		gatherOnARM64(n, places, src, dst)
		return
	}
	loop(n, 8, func() {
		for half := range 2 {
			index, all, x := YMM(), XMM(), XMM()
			VMOVDQU(Mem{Base: places, Disp: 32 * half}, index)
			VPCMPEQD(all, all, all)
			VXORPS(x, x, x)
			VGATHERQPS(all, Mem{Base: src, Index: index, Scale: 4}, x)
			VMOVUPS(x, Mem{Base: dst, Disp: 16 * half})
		}
		ADDQ(Imm(64), places)
		ADDQ(Imm(32), dst)
	})
	pixels("GatherAVX512", "n int, places *int, src, dst *byte", doc)
	n, places, src, dst = pointer("n"), pointer("places"), pointer("src"), pointer("dst")
	loop(n, 8, func() {
		index, all, x := ZMM(), K(), YMM()
		VMOVDQU64(Mem{Base: places}, index)
		KXNORB(all, all, all)
		VXORPS(x, x, x)
		VGATHERQPS(Mem{Base: src, Index: index, Scale: 4}, all, x)
		VMOVUPS(x, Mem{Base: dst})
		ADDQ(Imm(64), places)
		ADDQ(Imm(32), dst)
	})
}

// cast emits a function with the given name that converts eight elements per iteration, from
// elements of from bytes to elements of to bytes. The number of elements must be a multiple of
// eight. eight must emit the conversion of the eight elements at x to y; cast calls it several
// times.
func cast(name string, from, to int, eight func(x, y Mem)) {
	n, x, y := castBegin(name)
	castLoop(n, x, y, from, to, eight)
}

func castBegin(name string) (n, x, y reg.GPVirtual) {
	pixels(name, "n int, x, y *byte", "converts n elements of x, a multiple of 8, to y.")
	return pointer("n"), pointer("x"), pointer("y")
}

func castLoop(n, x, y reg.GPVirtual, from, to int, eight func(x, y Mem)) {
	const ways = 4
	Label("ways")
	CMPQ(n, Imm(8*ways))
	JL(LabelRef("loop"))
	for i := range ways {
		eight(at(x, 8*from*i), at(y, 8*to*i))
	}
	ADDQ(I32(int32(8*from*ways)), x)
	ADDQ(I32(int32(8*to*ways)), y)
	SUBQ(Imm(8*ways), n)
	JMP(LabelRef("ways"))
	loop(n, 8, func() {
		eight(at(x, 0), at(y, 0))
		ADDQ(Imm(uint64(8*from)), x)
		ADDQ(Imm(uint64(8*to)), y)
	})
}

// castToBrain emits the rounding of float32 to its upper half, to nearest, ties to even. It
// adds 0x7fff, plus 1 if the lowest remaining bit is set, so that the lower half carries
// exactly if it must be rounded up.
func castToBrain() {
	n, x, y := castBegin("Float32ToBrainAVX2")
	one, almost, none := YMM(), YMM(), YMM()
	VMOVDQU(words("One", 1), one)
	VMOVDQU(words("AlmostHalf", 0x7fff), almost)
	VMOVDQU(words("BrainNaN", 0x7fc0), none)
	castLoop(n, x, y, 4, 2, func(x, y Mem) {
		v, odd, nan := YMM(), YMM(), YMM()
		VMOVUPS(x, v)
		VCMPPS(Imm(unordered), v, v, nan)
		VPSRLD(Imm(16), v, odd)
		VPAND(one, odd, odd)
		VPADDD(almost, v, v)
		VPADDD(odd, v, v)
		VPSRLD(Imm(16), v, v)
		VPBLENDVB(nan, none, v, v)
		high := XMM()
		VEXTRACTI128(Imm(1), v, high)
		VPACKUSDW(high, v.AsX(), high)
		VMOVDQU(high, y)
	})
}
