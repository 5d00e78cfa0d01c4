package main

import (
	"os"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"

	"github.com/shoal-mp/shoal/internal/kernel/asm/gen/neon"

	"github.com/mmcloughlin/avo/ir"
)

// onARM64 reports whether functions are written for arm64.
var onARM64 bool

// writeARM64 replaces the last steps of avo for the file with the given name, such as loop: it
// translates the functions, which must not have allocated registers yet, and leaves the
// printing of their declarations to avo.
func writeARM64(name string) {
	onARM64 = true
	pass.Compile = pass.Func(func(f *ir.File) error {
		return neon.Translate(f, "../"+name+"_arm64.s", neonName)
	})
	os.Args = append(os.Args, "-out", os.DevNull)
}

// neonName returns the name on arm64 of a function of amd64, or "" if it does not exist there.
func neonName(name string) string {
	if strings.Contains(name, "AVX512") || strings.Contains(name, "AMX") {
		return ""
	}
	return strings.Replace(name, "AVX2", "NEON", 1)
}

// neonVector describes pairs of NEON registers with numbers of size bytes. Code for them is
// emitted as for AVX2 registers, and then translated.
func neonVector(size int) vector {
	v := avx2(size)
	v.suffix = strings.Replace(v.suffix, "AVX2", "NEON", 1)
	v.neon, v.rows, v.few = true, 12, 3
	return v
}

// counts emits the number of lanes in use of each of one or two pairs of registers, given the
// number n for all, and returns the registers.
func (v vector) counts(n reg.GPVirtual, registers int) (all []reg.GPVirtual) {
	if registers == 1 {
		return []reg.GPVirtual{twin(n)}
	}
	first, second, most, zero := twin(n), twin(n), GP64(), GP64()
	MOVQ(U32(uint32(v.lanes)), most)
	CMPQ(most, first)
	CMOVQLT(most, first)
	XORQ(zero, zero)
	SUBQ(Imm(uint64(v.lanes)), second)
	CMPQ(second, Imm(0))
	CMOVQLT(zero, second)
	return []reg.GPVirtual{first, second}
}

// loadFirst emits the load of the lanes of m and sets the others to zero, and storeFirst emits
// the store of the lanes of m. Both are for arm64.
func (v vector) loadFirst(from Op, m mask, to reg.VecVirtual) {
	neon.Raw(func(c *neon.Code) { c.LoadFirst(v.size, from.(Mem), m.n, to) })
}

func (v vector) storeFirst(from reg.VecVirtual, m mask, to Op) {
	neon.Raw(func(c *neon.Code) { c.StoreFirst(v.size, from, to.(Mem), m.n) })
}

// short returns v for loops with few instructions for each element. On arm64 an iteration then
// processes two pairs of registers.
func (v vector) short() vector {
	v.twice = v.neon
	return v
}

// shortFunctions are the functions with loops that are short.
var shortFunctions = []string{"Neg", "Abs", "Floor", "Ceil", "Round", "Trunc", "Sqrt", "Reciprocal", "Cube"}

// follow is [vector.flat] with pointers that move, which arm64 loads and stores do by
// themselves. It overwrites the pointers of f.
func (v vector) follow(f *flat, vectors []string, body func(f *flat)) {
	n, rest := pointer("n"), GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(v.lanes-1)), rest)
	SUBQ(rest, n)
	f.whole = true
	step := func() {
		body(f)
		for _, name := range vectors {
			ADDQ(Imm(uint64(v.bytes())), f.bases[name])
		}
	}
	if v.twice {
		SUBQ(Imm(uint64(2*v.lanes)), n)
		JL(LabelRef("last"))
		Label("both")
		step()
		step()
		SUBQ(Imm(uint64(2*v.lanes)), n)
		JGE(LabelRef("both"))
		Label("last")
		ADDQ(Imm(uint64(2*v.lanes)), n)
	}
	TESTQ(n, n)
	JLE(LabelRef("rest"))
	Label("whole")
	step()
	SUBQ(Imm(uint64(v.lanes)), n)
	JG(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("end"))
	f.whole, f.rest = false, v.first(rest)
	body(f)
	Label("end")
}

// tileSums emits the loop that computes the sums of a tile in acc, by row and pair of
// registers. t must have all fields but Size, Rows, Pairs and Sums.
func (v vector) tileSums(acc [][]reg.VecVirtual, t neon.Tile) {
	t.Size, t.Rows, t.Pairs = v.size, len(acc), len(acc[0])
	for _, row := range acc {
		var sums []reg.Register
		for _, x := range row {
			sums = append(sums, x)
		}
		t.Sums = append(t.Sums, sums)
	}
	neon.Raw(t.Sum)
}

// gatherOnARM64 emits the body of the gather function. It loads elements one by one: there is
// no instruction that gathers.
func gatherOnARM64(n, places, src, dst reg.GPVirtual) {
	loop(n, 8, func() {
		for i := range 8 {
			index, x := GP64(), GP32()
			MOVQ(at(places, 8*i), index)
			MOVL(Mem{Base: src, Index: index, Scale: 4}, x)
			MOVL(x, at(dst, 4*i))
		}
		ADDQ(Imm(64), places)
		ADDQ(Imm(32), dst)
	})
}

// extremeInstruction returns the instruction for the maximum or minimum of two numbers, which is
// NaN if one is.
func (v vector) extremeInstruction(largest bool) instruction {
	return func(ops ...Op) {
		a, b, to := ops[0].(reg.Register), ops[1].(reg.Register), ops[2].(reg.Register)
		neon.Raw(func(c *neon.Code) { c.Extreme(v.size, largest, a, b, to) })
	}
}

// writeRandomsOnARM64 emits the loops of random numbers. AVX2 has no instructions for them.
func writeRandomsOnARM64() {
	v := neonVector(8)
	pixels("FractionsAVX2", "n int, bits *uint64, shift uint64, width, part, lo float64, to *float64",
		"writes lo + width·part·(b >> shift) to to, for n numbers b in bits. n must be a multiple of 8.")
	shift, width, part, lo := v.fresh(), v.scalar("width"), v.scalar("part"), v.scalar("lo")
	n, bits, digits, to := pointer("n"), pointer("bits"), pointer("shift"), pointer("to")
	neon.Raw(func(c *neon.Code) { c.Negated(digits, shift) })
	loop(n, 4, func() {
		neon.Raw(func(c *neon.Code) { c.Fractions(bits, shift, width, part, lo, to) })
		ADDQ(Imm(32), bits)
		ADDQ(Imm(32), to)
	})
	v.pointsOnARM64()
	v.pairsOnARM64()
}

func (v vector) pairsOnARM64() {
	pixels("PairsAVX2", "n int, mean, std float64, x, y, factor, to *float64",
		"writes mean + std·x·factor and mean + std·y·factor alternately to to, for n points (x, y). "+
			"n must be a multiple of 8.")
	mean, std := v.scalar("mean"), v.scalar("std")
	n, to := pointer("n"), pointer("to")
	x, y, factor := pointer("x"), pointer("y"), pointer("factor")
	loop(n, 2, func() {
		neon.Raw(func(c *neon.Code) { c.Pairs(mean, std, x, y, factor, to) })
		for _, p := range []reg.GPVirtual{x, y, factor} {
			ADDQ(Imm(16), p)
		}
		ADDQ(Imm(32), to)
	})
}

func (v vector) pointsOnARM64() {
	TEXT("PointsAVX2", NOSPLIT, "func(n int, bits *uint64, x, y, s *float64) int")
	Pragma("noescape")
	Doc("PointsAVX2 computes n points with two coordinates in [-1, 1), a multiple of 8, from 2·n numbers in " +
		"bits. It writes the coordinates and the squared distance from the centre of the points inside the unit " +
		"disc, except its centre, and returns their number. The other elements of x, y and s, up to n, have no " +
		"meaning.")
	n, bits, count := pointer("n"), pointer("bits"), GP64()
	to := [3]reg.Register{pointer("x"), pointer("y"), pointer("s")}
	part, one := v.fresh(), v.fresh()
	v.move(v.constant(0x1p-52), part)
	v.move(v.constant(1), one)
	XORQ(count, count)
	TESTQ(n, n)
	JLE(LabelRef("end"))
	Label("again")
	neon.Raw(func(c *neon.Code) { c.Points(bits, part, one, count, to) })
	ADDQ(Imm(32), bits)
	SUBQ(Imm(2), n)
	JG(LabelRef("again"))
	Label("end")
	Store(count, ReturnIndex(0))
	v.end()
}

// longCastsOnARM64 emits the casts between float32 and int64.
func longCastsOnARM64() {
	longCast("Float32ToInt64AVX2", 4, 8, (*neon.Code).LongsFromFloats)
	longCast("Int64ToFloat32AVX2", 8, 4, (*neon.Code).FloatsFromLongs)
}

func longCast(name string, from, to int, eight func(c *neon.Code, x, y reg.Register)) {
	n, x, y := castBegin(name)
	loop(n, 8, func() {
		neon.Raw(func(c *neon.Code) { eight(c, x, y) })
		ADDQ(Imm(uint64(8*from)), x)
		ADDQ(Imm(uint64(8*to)), y)
	})
}

// extremeLong returns an instruction for the maximum or minimum of 64-bit integers.
func extremeLong(largest bool) instruction {
	return func(ops ...Op) {
		to := ops[2].(reg.VecVirtual)
		y := YMM()
		if to.Size() == 16 {
			y = XMM()
		}
		VMOVDQU(ops[0], y)
		if largest {
			pickLong(to, y, y, to)
		} else {
			pickLong(to, y, to, y)
		}
	}
}
