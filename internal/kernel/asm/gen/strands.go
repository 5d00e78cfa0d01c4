package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sum and dot emit reductions of one and two vectors by [vector.strands].
func (v vector) sum() {
	v.strands("Sum", "returns the sum of x.", []string{"x"},
		func(acc reg.VecVirtual, x func(i int) Op) { v.add(x(0), acc, acc) })
}

func (v vector) dot() {
	v.strands("Dot", "returns the sum of the products of x and y.", []string{"x", "y"},
		func(acc reg.VecVirtual, x func(i int) Op) {
			factor := v.fresh()
			v.move(x(0), factor)
			v.fma231(x(1), factor, acc)
		})
}

// strands emits the function name, a reduction with four accumulators, which hides the latency
// of an addition. It finally adds their lanes. add must emit the addition to acc of the
// elements x(i) of each vector i, which are in memory or in registers.
func (v vector) strands(name, what string, vectors []string, add func(acc reg.VecVirtual, x func(i int) Op)) {
	const ways = 4
	TEXT(name+v.suffix, NOSPLIT, "func(n int, "+strings.Join(vectors, ", ")+" *"+v.goType+") "+v.goType)
	Pragma("noescape")
	v.doc(name, what)
	n := pointer("n")
	var from []reg.GPVirtual
	for _, name := range vectors {
		from = append(from, pointer(name))
	}
	acc := make([]reg.VecVirtual, ways)
	for i := range acc {
		acc[i] = v.fresh()
		v.zero(acc[i])
	}
	// take accumulates the given number of whole registers and advances the pointers.
	take := func(registers int) {
		for i := range registers {
			add(acc[i], func(j int) Op { return Mem{Base: from[j], Disp: i * v.bytes()} })
		}
		for _, p := range from {
			ADDQ(I32(int32(registers*v.bytes())), p)
		}
		SUBQ(I32(int32(registers*v.lanes)), n)
	}
	Label("ways")
	CMPQ(n, I32(int32(ways*v.lanes)))
	JL(LabelRef("whole"))
	take(ways)
	JMP(LabelRef("ways"))
	Label("whole")
	CMPQ(n, Imm(uint64(v.lanes)))
	JL(LabelRef("rest"))
	take(1)
	JMP(LabelRef("whole"))
	Label("rest")
	rest := v.first(n)
	last := make([]reg.VecVirtual, len(from))
	for i, p := range from {
		last[i] = v.fresh()
		v.load(Mem{Base: p}, rest, last[i])
	}
	add(acc[1], func(i int) Op { return last[i] })
	v.add(acc[1], acc[0], acc[0])
	v.add(acc[3], acc[2], acc[2])
	v.add(acc[2], acc[0], acc[0])
	v.result(v.added(acc[0]))
	v.end()
}

// added emits the sum of all lanes, and returns a register with it in the lowest lane.
func (v vector) added(x reg.VecVirtual) reg.VecVirtual {
	half := YMM()
	if v.wide {
		VEXTRACTF64X4(Imm(1), x, half)
		v.add(half, x.AsY(), half)
	} else {
		half = x.(reg.VecVirtual)
	}
	low, next := XMM(), XMM()
	VEXTRACTF128(Imm(1), half, low)
	v.add(half.AsX(), low, low)
	VUNPCKHPD(low, low, next)
	v.add(next, low, low)
	if v.single() {
		VMOVSHDUP(low, next)
		v.add(next, low, low)
	}
	return low
}

func (v vector) result(x reg.VecVirtual) { Store(x, ReturnIndex(0)) }
