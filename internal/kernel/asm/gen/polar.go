package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// polars writes √(-2·log(x)/x), rounded step by step as kernel.polar is: the numbers of a generator
// are the same on all machines, so products and sums are not fused.
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

// polar is that of AVX2.
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

// polarsOf is polar of several registers by turns, since each step waits for the one before.
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
	each(func(i int) { VGETEXPPD(x[i], k[i]) }) // of mantissas from 1 on
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
	each(func(i int) { VBROADCASTSD(v.constant(-0x1p-53-0x1p-105), odd[i], s[i]) }) // all bits of 1+m are set
	each(func(i int) { v.mul(s[i], s[i], square[i]) })
	each(func(i int) { v.move(v.constant(1./25), sum[i]) })
	for n := 23; n > 0; n -= 2 {
		each(func(i int) { v.mul(square[i], sum[i], sum[i]) })
		each(func(i int) { v.add(v.constant(1/float64(n)), sum[i], sum[i]) })
	}
	each(func(i int) { v.mul(v.constant(-4), s[i], s[i]) }) // powers of two round nothing
	each(func(i int) { v.mul(sum[i], s[i], s[i]) })
	each(func(i int) { v.mul(v.constant(-2*math.Ln2), k[i], k[i]) })
	each(func(i int) { v.add(k[i], s[i], s[i]) })
	for i, q := range v.quotients(x, s) {
		v.sqrt(q, x[i])
	}
}

// quotients returns a/b, as IEEE 754 rounds it, of normal numbers whose quotient and rest are
// normal or 0. It uses a up. The instruction for that takes longer than an estimate of 14 bits of
// 1/b and these steps. Two steps make the reciprocal right to a unit in the last place, and a third
// one makes it the number that is nearest to 1/b, unless all bits of b are set. Then it is right of
// some a only, and a caller has to know of which. By it what the product
// misses of a, which is known exactly, makes the product the number that is nearest to the quotient
// (Markstein's theorems). Package kernel tests the polar method with all b whose bits are set.
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
