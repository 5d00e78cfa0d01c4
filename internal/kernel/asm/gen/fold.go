package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// writeFolds emits reductions: products in double precision, and reductions of 64-bit integers.
func writeFolds(vectors []vector) {
	for _, v := range vectors {
		v.product()
	}
	if onARM64 {
		v := neonVector(8)
		v.longs("LargestInt64AVX2", "the largest of", extremeLong(true), extremeLong(true), nil)
		v.longs("SmallestInt64AVX2", "the smallest of", extremeLong(false), extremeLong(false), nil)
	}
	for _, v := range []vector{avx2(8), avx512(8)} {
		suffix := map[bool]string{false: "AVX2", true: "AVX512"}[v.wide]
		v.longs("SumInt64"+suffix, "the sum of", v.plus, v.plus, v.zero)
		v.beyond("BeyondInt64" + suffix)
	}
	v := avx512(8)
	v.longs("LargestInt64AVX512", "the largest of", VPMAXSQ, VPMAXSQ, nil)
	v.longs("SmallestInt64AVX512", "the smallest of", VPMINSQ, VPMINSQ, nil)
}

// product emits the function for a product in double precision, with enough accumulators to
// hide the latency of a multiplication. The function requires whole iterations of 32 elements;
// its caller must multiply the rest.
func (v vector) product() {
	TEXT("Product"+v.suffix, NOSPLIT, "func(n int, x *"+v.goType+") float64")
	Pragma("noescape")
	v.doc("Product", "returns the product of n elements, a multiple of 32.")
	n, from := pointer("n"), pointer("x")
	wide, mode := v.double(), Mem{}
	if v.single() && !v.neon {
		mode = AllocLocal(16)
		flushed(mode)
	}
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = wide.fresh()
		wide.move(wide.constant(1), acc[i])
	}
	step := wide.lanes * len(acc)
	Label("loop")
	TESTQ(n, n)
	JLE(LabelRef("end"))
	for i := range acc {
		here := at(from, i*wide.lanes*v.size)
		if v.single() {
			x := wide.fresh()
			VCVTPS2PD(here, x)
			wide.mul(x, acc[i], acc[i])
		} else {
			wide.mul(here, acc[i], acc[i])
		}
	}
	ADDQ(I32(int32(step*v.size)), from)
	SUBQ(I32(int32(step)), n)
	JMP(LabelRef("loop"))
	Label("end")
	wide.mul(acc[1], acc[0], acc[0])
	wide.mul(acc[3], acc[2], acc[2])
	wide.mul(acc[2], acc[0], acc[0])
	if v.single() && !v.neon {
		LDMXCSR(mode)
	}
	wide.result(wide.folded(acc[0], wide.mul))
	v.end()
}

// flushed emits code that sets the flush-to-zero bit of MXCSR, and saves the previous value in
// mode, which the caller must restore. mode must have 8 bytes. Subnormal results would cost a
// hundred times as much as normal ones. A float64 product that small is 0 in float32.
func flushed(mode Mem) {
	const tiny = 1 << 15
	bits := GP32()
	STMXCSR(mode)
	MOVL(mode, bits)
	ORL(U32(tiny), bits)
	MOVL(bits, mode.Offset(4))
	LDMXCSR(mode.Offset(4))
}

// folded emits the combination of all lanes, of 64 bits, by do, and returns a register with it
// in the lowest lane.
func (v vector) folded(x reg.VecVirtual, do instruction) reg.VecVirtual {
	half := x
	if v.wide {
		half = YMM()
		VEXTRACTF64X4(Imm(1), x, half)
		do(x.AsY(), half, half)
	}
	low, next := XMM(), XMM()
	VEXTRACTF128(Imm(1), half, low)
	do(half.AsX(), low, low)
	VUNPCKHPD(low, low, next)
	do(next, low, low)
	return low
}

// longs emits the function name, a reduction of 64-bit integers by do; narrow is the operation
// on half registers. zero must emit the initial value of an accumulator; if it is nil, each
// accumulator starts with the first number.
func (v vector) longs(name, what string, do, narrow instruction, zero func(reg.VecVirtual)) {
	TEXT(name, NOSPLIT, "func(n int, x *int64) int64")
	Pragma("noescape")
	Doc(name + " returns " + what + " n elements. n must be a positive multiple of 32.")
	n, from := pointer("n"), pointer("x")
	var acc [4]reg.VecVirtual
	for i := range acc {
		acc[i] = v.fresh()
		if zero != nil {
			zero(acc[i])
		} else {
			VPBROADCASTQ(at(from, 0), acc[i])
		}
	}
	step := v.lanes * len(acc)
	Label("loop")
	for i := range acc {
		do(at(from, i*v.bytes()), acc[i], acc[i])
	}
	ADDQ(I32(int32(step*v.size)), from)
	SUBQ(I32(int32(step)), n)
	JG(LabelRef("loop"))
	do(acc[1], acc[0], acc[0])
	do(acc[3], acc[2], acc[2])
	do(acc[2], acc[0], acc[0])
	sum := GP64()
	VMOVQ(v.folded(acc[0], narrow).AsX(), sum)
	Store(sum, ReturnIndex(0))
	v.end()
}

// beyond emits a function that returns a negative number if an index is out of range. It
// combines all indices and their distances to the last index by OR: if an index is negative or
// larger than the last one, its sign or the sign of its distance is set.
func (v vector) beyond(name string) {
	TEXT(name, NOSPLIT, "func(n, last int, x *int64) int64")
	Pragma("noescape")
	Doc(name + " returns a negative number if one of n elements is below 0 or above last. n must be a positive " +
		"multiple of 32.")
	n, from := pointer("n"), pointer("x")
	last, left := v.fresh(), v.fresh()
	most, err := Param("last").Resolve()
	if err != nil {
		panic(err)
	}
	VPBROADCASTQ(most.Addr, last)
	var signs [4]reg.VecVirtual
	for i := range signs {
		signs[i] = v.fresh()
		v.zero(signs[i])
	}
	step := v.lanes * len(signs)
	Label("loop")
	for i := range signs {
		here := at(from, i*v.bytes())
		VPSUBQ(here, last, left)
		v.or(here, signs[i], signs[i])
		v.or(left, signs[i], signs[i])
	}
	ADDQ(I32(int32(step*v.size)), from)
	SUBQ(I32(int32(step)), n)
	JG(LabelRef("loop"))
	v.or(signs[1], signs[0], signs[0])
	v.or(signs[3], signs[2], signs[2])
	v.or(signs[2], signs[0], signs[0])
	sum := GP64()
	VMOVQ(v.folded(signs[0], v.or).AsX(), sum)
	Store(sum, ReturnIndex(0))
	v.end()
}
