package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// polars emits the function for √(-2·log(x)/x). Each step must be rounded as in kernel.polar,
// because a random generator must yield the same numbers on all machines. Products and sums are
// therefore not fused.
func (v vector) polars() {
	const name, what = "Polar", "√(-2·log(x)/x), for x between 0 and 1,"
	if !v.wide {
		v.apart(name, what, v.polar)
		return
	}
	v.text(name, "n int, x, y *F")
	v.doc(name, "writes "+what+" to y, element by element.")
	n, from, to := pointer("n"), pointer("x"), pointer("y")
	Label("whole")
	CMPQ(n, U32(uint32(2*v.lanes)))
	JL(LabelRef("rest"))
	x := []reg.VecVirtual{v.fresh(), v.fresh()}
	for i := range x {
		v.move(at(from, i*v.bytes()), x[i])
	}
	v.polarsOf(x)
	for i := range x {
		v.move(x[i], at(to, i*v.bytes()))
	}
	ADDQ(U32(uint32(2*v.bytes())), from)
	ADDQ(U32(uint32(2*v.bytes())), to)
	SUBQ(U32(uint32(2*v.lanes)), n)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(n, n)
	JZ(LabelRef("end"))
	masks := v.masks(n, len(x))
	for i := range x {
		v.load(at(from, i*v.bytes()), masks[i], x[i])
	}
	v.polarsOf(x)
	for i := range x {
		v.store(x[i], masks[i], at(to, i*v.bytes()))
	}
	Label("end")
	v.end()
}

// polar emits √(-2·log(x)/x) for one register without AVX-512, and returns the register of the
// result.
func (v vector) polar(x reg.VecVirtual) reg.VecVirtual {
	own := v.fresh()
	v.move(x, own)
	k, f := v.parts(x, math.Sqrt2/2)
	s, square, sum := v.fresh(), v.fresh(), v.fresh()
	v.add(v.constant(2), f, s)
	v.div(s, f, s)
	v.mul(s, s, square)
	v.move(v.constant(1./25), sum)
	for n := 23; n > 0; n -= 2 {
		v.mul(square, sum, sum)
		v.add(v.constant(1/float64(n)), sum, sum)
	}
	v.add(s, s, s)
	v.mul(sum, s, s)
	v.mul(v.constant(math.Ln2), k, k)
	v.add(k, s, s)
	v.mul(v.constant(-2), s, s)
	v.div(own, s, s)
	v.sqrt(s, s)
	return s
}

// polarsOf emits √(-2·log(x)/x) for two registers of AVX-512, in place, interleaved to hide
// latencies.
func (v vector) polarsOf(x []reg.VecVirtual) {
	const fromHalf = 2
	fresh := func() []reg.VecVirtual {
		all := make([]reg.VecVirtual, len(x))
		for i := range all {
			all[i] = v.fresh()
		}
		return all
	}
	each := func(do func(i int)) {
		for i := range x {
			do(i)
		}
	}
	k, m, s, square, sum := fresh(), fresh(), fresh(), fresh(), fresh()
	each(func(i int) { VGETEXPPD(x[i], k[i]) }) // exponents for mantissas in [1, 2)
	each(func(i int) { VGETMANTPD(U8(fromHalf), x[i], m[i]) })
	root := v.fresh()
	v.move(v.constant(math.Sqrt2/2), root)
	each(func(i int) {
		low, upper := v.compare(below, root, m[i]).k, K()
		KNOTB(low, upper)
		VADDPD(m[i], m[i], low, m[i])
		VADDPD_BCST(v.constant(1), k[i], upper, k[i])
	})
	each(func(i int) { v.sub(v.constant(1), m[i], m[i]) })
	each(func(i int) { v.add(v.constant(2), m[i], s[i]) })
	odd := []reg.OpmaskVirtual{K(), K()}
	each(func(i int) { VCMPPD_BCST(U8(equal), v.constant(-0x1p-52), m[i], odd[i]) })
	s = v.quotients(s, m)
	// If all bits of the divisor 1+m are set, quotients does not round correctly.
	each(func(i int) { VBROADCASTSD(v.constant(-0x1p-53-0x1p-105), odd[i], s[i]) })
	each(func(i int) { v.mul(s[i], s[i], square[i]) })
	each(func(i int) { v.move(v.constant(1./25), sum[i]) })
	for n := 23; n > 0; n -= 2 {
		each(func(i int) { v.mul(square[i], sum[i], sum[i]) })
		each(func(i int) { v.add(v.constant(1/float64(n)), sum[i], sum[i]) })
	}
	each(func(i int) { v.mul(v.constant(-4), s[i], s[i]) }) // exact, because powers of two do not round
	each(func(i int) { v.mul(sum[i], s[i], s[i]) })
	each(func(i int) { v.mul(v.constant(-2*math.Ln2), k[i], k[i]) })
	each(func(i int) { v.add(k[i], s[i], s[i]) })
	for i, q := range v.quotients(x, s) {
		v.sqrt(q, x[i])
	}
}

// quotients emits the correctly rounded a/b for several registers, and returns the registers of the
// quotients. a, b, the quotient and the residual must be normal numbers; the quotient and the
// residual may also be 0. It overwrites a. It needs AVX-512.
//
// The instruction VDIVPD takes longer than these steps. They start with the 14-bit estimate of
// 1/b. Two Newton steps yield the reciprocal to within a unit in the last place, and a third
// one the correctly rounded reciprocal, unless all bits of the significand of b are set. The
// residual of the product, which FMA computes exactly, then corrects the product to the
// correctly rounded quotient, by Markstein's theorems (Markstein, Computation of elementary
// functions on the IBM RISC System/6000 processor, 1990). For b with all bits set, the result
// is correct for some a only, and the caller must handle the others. The tests of package
// kernel cover all such b for the polar method.
func (v vector) quotients(b, a []reg.VecVirtual) []reg.VecVirtual {
	y, e, q := make([]reg.VecVirtual, len(a)), make([]reg.VecVirtual, len(a)), make([]reg.VecVirtual, len(a))
	for i := range a {
		y[i], e[i], q[i] = v.fresh(), v.fresh(), v.fresh()
		VRCP14PD(b[i], y[i])
	}
	for range 3 {
		for i := range a {
			v.move(v.constant(1), e[i])
			v.less231(b[i], y[i], e[i])
		}
		for i := range a {
			v.fma231(e[i], y[i], y[i])
		}
	}
	for i := range a {
		v.mul(y[i], a[i], q[i])
	}
	for i := range a {
		v.less231(b[i], q[i], a[i])
	}
	for i := range a {
		v.fma231(a[i], y[i], q[i])
	}
	return q
}
