package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pooling is the state of a loop over 2×2 windows. It processes two rows of the image at a time,
// and separates each row into the left and the right pixels of the windows.
type pooling struct {
	vector
	rows, n, rest            reg.GPVirtual // n counts the elements in whole registers
	image, w, pooled, places reg.GPVirtual
	one                      mask   // remaining lanes of a pooled row
	two                      []mask // remaining lanes of an image row
	even, odd                reg.VecVirtual
	low, high                reg.VecVirtual
	steps                    [4]reg.VecVirtual // index offsets of the four pixels of each window
	base                     reg.GPVirtual
}

// newPooling emits the loads of the parameters and constants that both directions use. image
// and pooled are the names of the parameters for the image and the pooled image.
func (v vector) newPooling(image, pooled string) *pooling {
	p := &pooling{vector: v, rows: pointer("rows"), n: pointer("n"), rest: GP64(), image: pointer(image),
		w:      pointer("w"),
		pooled: pointer(pooled), places: pointer("idx"), base: pointer("base")}
	MOVQ(p.n, p.rest)
	ANDQ(Imm(uint64(v.lanes-1)), p.rest)
	SUBQ(p.rest, p.n)
	count := GP64()
	MOVQ(p.rest, count)
	p.one = v.first(count)
	MOVQ(p.rest, count)
	SHLQ(Imm(1), count)
	p.two = v.masks(count, 2)
	p.steps[0] = v.fresh()
	v.move(v.numbers("even", 0, 2), p.steps[0])
	one, row := v.fresh(), v.fresh()
	v.move(v.numbers("one", 1, 0), one)
	low := XMM()
	VMOVD(p.w.As32(), low)
	VPBROADCASTD(low, row)
	for i := 1; i < 4; i++ {
		p.steps[i] = v.fresh()
	}
	VPADDD(one, p.steps[0], p.steps[1])
	VPADDD(row, p.steps[0], p.steps[2])
	VPADDD(row, p.steps[1], p.steps[3])
	return p
}

var constants = map[string]Mem{}

// numbers returns a constant register of the 32-bit numbers first, first+step and so on. Calls
// with the same name return the same constant.
func (v vector) numbers(name string, first, step int) Mem {
	name += v.suffix
	if _, ok := constants[name]; !ok {
		constants[name] = GLOBL(name, RODATA|NOPTR)
		for i := range v.lanes {
			DATA(4*i, U32(uint32(first+i*step)))
		}
	}
	return constants[name]
}

// interleaved returns a constant, the permutation that alternates the lanes of two registers,
// starting with lane first of each.
func (v vector) interleaved(name string, first int) Mem {
	name += v.suffix
	m := GLOBL(name, RODATA|NOPTR)
	for i := range v.lanes {
		DATA(4*i, U32(uint32(first+i/2+i%2*v.lanes)))
	}
	return m
}

// each emits the loops over rows and positions, and the return from the function. body must
// emit the code for one register of windows at the position at; first holds the index of its
// first pixel in all lanes. whole is false for the last lanes of a row.
func (p *pooling) each(body func(whole bool, at reg.GPVirtual, first reg.VecVirtual)) {
	Label("row")
	at := GP64()
	XORQ(at, at)
	Label("whole")
	CMPQ(at, p.n)
	JGE(LabelRef("rest"))
	body(true, at, p.first(at))
	ADDQ(Imm(uint64(p.lanes)), at)
	JMP(LabelRef("whole"))
	Label("rest")
	TESTQ(p.rest, p.rest)
	JZ(LabelRef("next"))
	body(false, at, p.first(at))
	ADDQ(p.rest, at)
	Label("next")
	LEAQ(Mem{Base: p.pooled, Index: at, Scale: 4}, p.pooled)
	LEAQ(Mem{Base: p.places, Index: at, Scale: 4}, p.places)
	LEAQ(Mem{Base: p.image, Index: p.w, Scale: 8}, p.image)
	LEAQ(Mem{Base: p.base, Index: p.w, Scale: 2}, p.base)
	DECQ(p.rows)
	JNZ(LabelRef("row"))
	p.end()
}

// first emits the index of the first pixel at a position, in all lanes of a new register, and
// returns it.
func (p *pooling) first(at reg.GPVirtual) reg.VecVirtual {
	i := GP64()
	LEAQ(Mem{Base: p.base, Index: at, Scale: 2}, i)
	low, all := XMM(), p.fresh()
	VMOVD(i.As32(), low)
	VPBROADCASTD(low, all)
	return all
}

// half returns the address of register i, 0 or 1, of the two registers of pixels at a position
// of a row of the image.
func (p *pooling) half(row, at reg.GPVirtual, i int) Mem {
	return Mem{Base: row, Index: at, Scale: 8, Disp: i * p.bytes()}
}

// pool emits the function for the pooling of 2×2 windows.
func (v vector) pool() {
	v.text("Pool", "rows, n int, x *F, w int, y *F, idx *int32, base int")
	v.doc("Pool",
		"writes the largest pixels of windows of 2×2, n to a row, and their indices, where the first pixel has "+
			"index base.")
	p := v.newPooling("x", "y")
	if v.wide {
		p.even, p.odd = v.fresh(), v.fresh()
		v.move(v.numbers("even", 0, 2), p.even)
		v.move(v.numbers("odd", 1, 2), p.odd)
	}
	p.each(func(whole bool, at reg.GPVirtual, first reg.VecVirtual) {
		lower := GP64()
		LEAQ(Mem{Base: p.image, Index: p.w, Scale: 4}, lower)
		a, b := p.columns(p.image, at, whole)
		c, d := p.columns(lower, at, whole)
		best, where := a, v.fresh()
		VPADDD(first, p.steps[0], where)
		for i, next := range []reg.VecVirtual{b, c, d} {
			index := v.fresh()
			VPADDD(first, p.steps[i+1], index)
			p.take(next, index, best, where)
		}
		to, place := Mem{Base: p.pooled, Index: at, Scale: 4}, Mem{Base: p.places, Index: at, Scale: 4}
		if whole {
			v.move(best, to)
			v.move(where, place)
		} else {
			v.store(best, p.one, to)
			v.store(where, p.one, place)
		}
	})
}

// columns emits the loads of the left and the right pixels of the windows at a position of a
// row, and returns the registers.
func (p *pooling) columns(row, at reg.GPVirtual, whole bool) (left, right reg.VecVirtual) {
	var x [2]reg.VecVirtual
	for i := range x {
		x[i] = p.fresh()
		if from := p.half(row, at, i); whole {
			p.move(from, x[i])
		} else {
			p.load(from, p.two[i], x[i])
		}
	}
	left, right = p.fresh(), p.fresh()
	if p.wide {
		p.move(x[0], left)
		p.move(x[0], right)
		VPERMT2PS(x[1], p.even, left)
		VPERMT2PS(x[1], p.odd, right)
		return left, right
	}
	VSHUFPS(Imm(0x88), x[1], x[0], left)
	VSHUFPS(Imm(0xdd), x[1], x[0], right)
	VPERMQ(Imm(0xd8), left, left)
	VPERMQ(Imm(0xd8), right, right)
	return left, right
}

// take emits the replacement of best and its index where by next and index in the lanes where
// next is larger or NaN.
func (p *pooling) take(next, index, best, where reg.VecVirtual) {
	larger, nan := p.compare(greater, best, next), p.compare(unordered, next, next)
	if p.wide {
		KORW(larger.k, nan.k, larger.k)
		VMOVAPS(next, larger.k, best)
		VMOVDQA32(index, larger.k, where)
		return
	}
	VORPS(larger.y, nan.y, larger.y)
	VBLENDVPS(larger.y, next, best, best)
	VBLENDVPS(larger.y, index, where, where)
}

// poolBackward emits the function for the gradient of the pooling.
func (v vector) poolBackward() {
	v.text("PoolBackward", "rows, n int, dy *F, idx *int32, dx *F, w int, base int")
	v.doc("PoolBackward", "writes dy to the pixel with the index in idx of each window of 2×2, and zero to the others.")
	p := v.newPooling("dx", "dy")
	if v.wide {
		p.low, p.high = v.fresh(), v.fresh()
		v.move(v.interleaved("low", 0), p.low)
		v.move(v.interleaved("high", v.lanes/2), p.high)
	}
	p.each(func(whole bool, at reg.GPVirtual, first reg.VecVirtual) {
		lower := GP64()
		LEAQ(Mem{Base: p.image, Index: p.w, Scale: 4}, lower)
		dy, where := v.fresh(), v.fresh()
		from, place := Mem{Base: p.pooled, Index: at, Scale: 4}, Mem{Base: p.places, Index: at, Scale: 4}
		if whole {
			v.move(from, dy)
			v.move(place, where)
		} else {
			v.load(from, p.one, dy)
			v.load(place, p.one, where)
		}
		VPSUBD(first, where, where)
		for i, row := range []reg.GPVirtual{p.image, lower} {
			p.between(p.at(where, p.steps[2*i], dy), p.at(where, p.steps[2*i+1], dy), row, at, whole)
		}
	})
}

// at emits a new register with dy in the lanes with where equal to step, and zero in the
// others, and returns it.
func (p *pooling) at(where, step, dy reg.VecVirtual) reg.VecVirtual {
	x := p.fresh()
	if p.wide {
		k := K()
		VPCMPEQD(step, where, k)
		VMOVAPS_Z(dy, k, x)
		return x
	}
	VPCMPEQD(step, where, x)
	VANDPS(dy, x, x)
	return x
}

// between emits the stores of left and right pixels alternately, at a position of a row.
func (p *pooling) between(left, right reg.VecVirtual, row, at reg.GPVirtual, whole bool) {
	x := []reg.VecVirtual{p.fresh(), p.fresh()}
	if p.wide {
		p.move(left, x[0])
		VPERMT2PS(right, p.low, x[0])
		p.move(left, x[1])
		VPERMT2PS(right, p.high, x[1])
	} else {
		low, high := p.fresh(), p.fresh()
		VUNPCKLPS(right, left, low)
		VUNPCKHPS(right, left, high)
		VPERM2F128(Imm(0x20), high, low, x[0])
		VPERM2F128(Imm(0x31), high, low, x[1])
	}
	for i := range x {
		if to := p.half(row, at, i); whole {
			p.move(x[i], to)
		} else {
			p.store(x[i], p.two[i], to)
		}
	}
}
