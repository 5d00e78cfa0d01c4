package main

import (
	"fmt"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A flat is a loop over vectors of n elements, as its body sees it: what it reads and writes at one place.
type flat struct {
	vector
	at    reg.GPVirtual
	whole bool // no lane is left out
	rest  mask
	bases map[string]reg.GPVirtual
}

// read returns the elements of a parameter.
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
	return Mem{Base: f.bases[name], Index: f.at, Scale: uint8(f.size)}
}

// flat writes a loop over n elements of the vectors that are named. What body needs from all places, it loads before.
func (v vector) flat(vectors []string, body func(f *flat)) {
	f := flat{vector: v, bases: map[string]reg.GPVirtual{}}
	for _, name := range vectors {
		f.bases[name] = pointer(name)
	}
	n, rest := pointer("n"), GP64()
	MOVQ(n, rest)
	ANDQ(Imm(uint64(v.lanes-1)), rest)
	SUBQ(rest, n) // what whole registers take
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

// doc is the comment of a function.
func (v vector) doc(name, what string) { Doc(fmt.Sprintf("%s%s %s", name, v.suffix, what)) }

func (v vector) axpy() {
	v.text("Axpy", "n int, alpha F, x, y *F")
	v.doc("Axpy", "adds alpha·x to y.")
	alpha := v.scalar("alpha")
	v.flat([]string{"x", "y"}, func(f *flat) {
		x, y := f.read("x"), f.read("y")
		f.fma231(x, alpha, y)
		f.write(y, "y")
	})
	v.end()
}

func (v vector) scale() {
	v.text("Scale", "n int, alpha F, x, y *F")
	v.doc("Scale", "writes alpha·x to y.")
	alpha := v.scalar("alpha")
	v.flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.mul(alpha, x, x)
		f.write(x, "y")
	})
	v.end()
}

func (v vector) shiftBy() {
	v.text("Shift", "n int, alpha F, x, y *F")
	v.doc("Shift", "writes x + alpha to y.")
	alpha := v.scalar("alpha")
	v.flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.add(alpha, x, x)
		f.write(x, "y")
	})
	v.end()
}

// pairwise writes z = op(x, y), element by element. do gets y, x and where its result goes, as instructions do.
func (v vector) pairwise(name, what string, do func(ops ...Op)) {
	v.text(name, "n int, x, y, z *F")
	v.doc(name, "writes "+what+" to z, element by element.")
	v.flat([]string{"x", "y", "z"}, func(f *flat) {
		x, y := f.read("x"), f.read("y")
		do(y, x, x)
		f.write(x, "z")
	})
	v.end()
}

// apart writes y = do(x), element by element.
func (v vector) apart(name, what string, do func(x reg.VecVirtual) reg.VecVirtual) {
	v.text(name, "n int, x, y *F")
	v.doc(name, "writes "+what+" to y, element by element.")
	v.flat([]string{"x", "y"}, func(f *flat) { f.write(do(f.read("x")), "y") })
	v.end()
}

func (v vector) relu() {
	v.text("Relu", "n int, x, y *F")
	v.doc("Relu", "writes the larger of x and zero to y, and NaN where x is.")
	zero := v.fresh()
	v.zero(zero)
	v.flat([]string{"x", "y"}, func(f *flat) {
		x := f.read("x")
		f.largest(x, zero, x) // of a NaN and a number it is the first operand in this order
		f.write(x, "y")
	})
	v.end()
}

func (v vector) reluBackward() {
	v.text("ReluBackward", "n int, y, dy, dx *F")
	v.doc("ReluBackward", "writes dy to dx where y is above zero, and zero elsewhere.")
	zero := v.fresh()
	v.zero(zero)
	v.flat([]string{"y", "dy", "dx"}, func(f *flat) {
		y, dy := f.read("y"), f.read("dy")
		f.write(f.where(f.compare(greater, zero, y), dy), "dx")
	})
	v.end()
}

// The predicates of comparisons. Of NaN, unordered and notAtLeast are true, the others false.
const (
	equal      = 0x00
	greater    = 0x1e
	unordered  = 0x03
	notAtLeast = 0x19
)

// compare returns in which lanes b is related to a as the predicate says.
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

// where returns x in the lanes of m and zero in others. It uses x up.
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

func (v vector) descend() {
	v.text("Descend", "n int, p, grad, buf *F, lr, decay, keep, take F")
	v.doc("Descend", "is a step of gradient descent: buf becomes keep·buf + take·(g + decay·p), and p loses lr times that.")
	lr, decay, keep, take := v.scalar("lr"), v.scalar("decay"), v.scalar("keep"), v.scalar("take")
	v.flat([]string{"p", "grad", "buf"}, func(f *flat) {
		p, d, buf := f.read("p"), f.read("grad"), f.read("buf")
		f.fma231(p, decay, d)
		f.mul(keep, buf, buf)
		f.fma231(take, d, buf)
		f.write(buf, "buf")
		f.less231(buf, lr, p)
		f.write(p, "p")
	})
	v.end()
}

func (v vector) adam() {
	numbers := []string{"rate", "root", "fresh1", "keep2", "fresh2", "eps", "decay", "shrink"}
	v.text("Adam", "n int, p, grad, mean, square *F, "+strings.Join(numbers, ", ")+" F")
	v.doc("Adam", "is a step of Adam: with g = grad + decay·p, mean moves by fresh1·(g - mean), square becomes keep2·square + fresh2·g², and p loses shrink·p + rate·mean/(root·√square + eps).")
	c := map[string]reg.VecVirtual{}
	for _, name := range numbers {
		c[name] = v.scalar(name)
	}
	v.flat([]string{"p", "grad", "mean", "square"}, func(f *flat) {
		p, g, mean, change := f.read("p"), f.read("grad"), f.read("mean"), f.fresh()
		f.fma231(p, c["decay"], g)
		f.sub(mean, g, change)
		f.fma231(change, c["fresh1"], mean)
		f.write(mean, "mean")
		square := f.read("square")
		f.mul(c["keep2"], square, square)
		f.mul(g, g, g)
		f.fma231(g, c["fresh2"], square)
		f.write(square, "square")
		f.sqrt(square, square)
		f.fma213(c["eps"], c["root"], square)
		f.mul(c["rate"], mean, mean)
		f.div(square, mean, mean)
		f.fma231(p, c["shrink"], mean)
		f.sub(mean, p, p)
		f.write(p, "p")
	})
	v.end()
}

func (v vector) rmsprop() {
	numbers := []string{"rate", "kept", "fresh", "eps", "decay"}
	v.text("RMSprop", "n int, p, grad, square *F, "+strings.Join(numbers, ", ")+" F")
	v.doc("RMSprop", "is a step of RMSprop: with g = grad + decay·p, square becomes kept·square + fresh·g², and p loses rate·g/(√square + eps).")
	c := map[string]reg.VecVirtual{}
	for _, name := range numbers {
		c[name] = v.scalar(name)
	}
	v.flat([]string{"p", "grad", "square"}, func(f *flat) {
		p, g, square, fresh := f.read("p"), f.read("grad"), f.read("square"), f.fresh()
		f.fma231(p, c["decay"], g)
		f.mul(g, g, fresh)
		f.mul(c["kept"], square, square)
		f.fma231(fresh, c["fresh"], square)
		f.write(square, "square")
		f.sqrt(square, square)
		f.add(c["eps"], square, square)
		f.mul(c["rate"], g, g)
		f.div(square, g, g)
		f.sub(g, p, p)
		f.write(p, "p")
	})
	v.end()
}

// sum and dot are strands of one and two vectors.
func (v vector) sum() {
	v.strands("Sum", "returns the sum of x.", []string{"x"}, func(acc reg.VecVirtual, x func(i int) Op) { v.add(x(0), acc, acc) })
}

func (v vector) dot() {
	v.strands("Dot", "returns the sum of the products of x and y.", []string{"x", "y"}, func(acc reg.VecVirtual, x func(i int) Op) {
		factor := v.fresh()
		v.move(x(0), factor)
		v.fma231(x(1), factor, acc)
	})
}

// strands adds in four accumulators, which hides the latency of an addition, and then their lanes. add gets elements of the vectors, in
// memory or in registers.
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
	// take adds so many whole registers and goes on to what is behind them.
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

// added returns the sum of the lanes, in the lowest one.
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
