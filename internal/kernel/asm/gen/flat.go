package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// flat is a loop over vectors of n elements, which [vector.flat] emits. Its body reads and
// writes the elements at the current position.
type flat struct {
	vector
	at    reg.GPVirtual
	whole bool // all lanes are in use
	rest  mask
	bases map[string]reg.GPVirtual
}

// read emits the load of the elements of a parameter at the current position, and returns the
// register. Lanes beyond the last element are 0.
func (f *flat) read(name string) reg.VecVirtual {
	x := f.fresh()
	if from := f.place(name); f.whole {
		f.move(from, x)
	} else {
		f.load(from, f.rest, x)
	}
	return x
}

func (f *flat) write(x reg.VecVirtual, name string) {
	if to := f.place(name); f.whole {
		f.move(x, to)
	} else {
		f.store(x, f.rest, to)
	}
}

func (f *flat) place(name string) Mem {
	if f.neon {
		return Mem{Base: f.bases[name]}
	}
	return Mem{Base: f.bases[name], Index: f.at, Scale: uint8(f.size)}
}

// flat emits a loop over n elements of the named vectors, which are parameters of the function
// in progress. It calls body twice, for whole registers and for the rest. Code that does not
// depend on the position must be emitted before.
func (v vector) flat(vectors []string, body func(f *flat)) {
	f := flat{vector: v, bases: map[string]reg.GPVirtual{}}
	for _, name := range vectors {
		f.bases[name] = pointer(name)
	}
	if v.neon {
		v.follow(&f, vectors, body)
		return
	}
	n, rest := pointer("n"), GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(v.lanes-1)), rest)
	SUBQ(rest, n) // elements in whole registers
	f.at = GP64()
	XORQ(f.at, f.at)
	Label("whole")
	CMPQ(f.at, n)
	JGE(LabelRef("rest"))
	f.whole = true
	body(&f)
	ADDQ(Imm(uint64(v.lanes)), f.at)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(rest, rest)
	JZ(LabelRef("end"))
	f.whole, f.rest = false, v.first(rest)
	body(&f)
	Label("end")
}

func (v vector) end() {
	VZEROUPPER()
	RET()
}

// doc sets the doc comment of the function in progress: its name with the suffix, a blank and
// what.
func (v vector) doc(name, what string) { Doc(fmt.Sprintf("%s%s %s", name, v.suffix, what)) }

func (v vector) axpy() {
	v.text("Axpy", "n int, alpha F, x, y *F")
	v.doc("Axpy", "adds alpha·x to y.")
	alpha := v.scalar("alpha")
	v.short().flat([]string{"x", "y"}, func(f *flat) {
		x, y := f.read("x"), f.read("y")
		f.fma231(x, alpha, y)
		f.write(y, "y")
	})
	v.end()
}

// scaled emits the function y = do(alpha, x). what describes the result for the doc comment.
func (v vector) scaled(name, what string, do func(ops ...Op)) {
	v.text(name, "n int, alpha F, x, y *F")
	v.doc(name, "writes "+what+" to y.")
	alpha := v.scalar("alpha")
	v.short().flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		do(alpha, x, x)
		f.write(x, "y")
	})
	v.end()
}

// pairwise emits the function z = op(x, y). do must emit the operation; it gets y, x and the
// destination, in the operand order of instructions. what describes the result for the doc
// comment.
func (v vector) pairwise(name, what string, do func(ops ...Op)) {
	v.text(name, "n int, x, y, z *F")
	v.doc(name, "writes "+what+" to z, element by element.")
	v.short().flat([]string{"x", "y", "z"}, func(f *flat) {
		x, y := f.read("x"), f.read("y")
		do(y, x, x)
		f.write(x, "z")
	})
	v.end()
}

// apart emits the function y = do(x). do must emit the computation of a register and return its
// result. what describes the result for the doc comment.
func (v vector) apart(name, what string, do func(x reg.VecVirtual) reg.VecVirtual) {
	v.text(name, "n int, x, y *F")
	v.doc(name, "writes "+what+" to y, element by element.")
	if slices.Contains(shortFunctions, name) {
		v = v.short()
	}
	v.flat([]string{"x", "y"}, func(f *flat) { f.write(do(f.read("x")), "y") })
	v.end()
}

func (v vector) relu() {
	v.text("Relu", "n int, x, y *F")
	v.doc("Relu", "writes the larger of x and zero to y, and NaN where x is.")
	zero := v.fresh()
	v.zero(zero)
	v.short().flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.largest(x, zero, x) // in this operand order NaN in x is kept
		f.write(x, "y")
	})
	v.end()
}

func (v vector) reluBackward() {
	v.text("ReluBackward", "n int, y, dy, dx *F")
	v.doc("ReluBackward", "writes dy to dx where y is above zero or NaN, and zero elsewhere.")
	zero := v.fresh()
	v.zero(zero)
	v.short().flat([]string{"y", "dy", "dx"}, func(f *flat) {
		y, dy := f.read("y"), f.read("dy")
		f.write(f.where(f.compare(notAtMost, zero, y), dy), "dx")
	})
	v.end()
}

// Predicates of VCMPPS and VCMPPD, see the Intel 64 and IA-32 Architectures Software Developer's
// Manual. If an operand is NaN, unordered, notEqualOrNone, notAtMost and notAtLeast are true, and
// the others are false.
const (
	equal          = 0x00
	notEqualOrNone = 0x04
	below          = 0x11
	atMost         = 0x12
	greater        = 0x1e
	unordered      = 0x03
	notAtMost      = 0x16
	notAtLeast     = 0x19
)

// compare emits a comparison and returns a mask of the lanes where b relates to a by the
// predicate.
func (v vector) compare(predicate uint8, a, b reg.VecVirtual) mask {
	do := map[bool]func(ops ...Op){true: VCMPPS, false: VCMPPD}[v.single()]
	m := mask{}
	if v.wide {
		m.k = K()
		do(U8(predicate), a, b, m.k)
	} else {
		m.y = YMM()
		do(U8(predicate), a, b, m.y)
	}
	return m
}

// where emits x = x in the lanes of m and zero in the others, in place, and returns x.
func (v vector) where(m mask, x reg.VecVirtual) reg.VecVirtual {
	switch {
	case !v.wide:
		VANDPS(m.y, x, x)
	case v.single():
		VMOVAPS_Z(x, m.k, x)
	default:
		VMOVAPD_Z(x, m.k, x)
	}
	return x
}
