package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

type translation = func(c *Code, ops []operand.Op)

// vectors translates the instructions on vector registers. Operands must be in the order of Go's
// assembler: the destination is last, the first source second to last.
var vectors = map[string]translation{
	"VADDPS": binary3(fadd, 4), "VADDPD": binary3(fadd, 8), "VSUBPS": binary3(fsub, 4), "VSUBPD": binary3(fsub, 8),
	"VMULPS": binary3(fmul, 4), "VMULPD": binary3(fmul, 8), "VDIVPS": binary3(fdiv, 4), "VDIVPD": binary3(fdiv, 8),
	"VMAXPS": extreme(4, true), "VMAXPD": extreme(8, true), "VMINPS": extreme(4, false), "VMINPD": extreme(8, false),
	"VFMADD231PS": fused231(fmla, 4), "VFMADD231PD": fused231(fmla, 8),
	"VFNMADD231PS": fused231(fmls, 4), "VFNMADD231PD": fused231(fmls, 8),
	"VFMADD213PS": fused213(4), "VFMADD213PD": fused213(8),

	"VANDPS": binary3(and, 1), "VANDPD": binary3(and, 1), "VPAND": binary3(and, 1),
	"VORPS": binary3(orr, 1), "VORPD": binary3(orr, 1), "VPOR": binary3(orr, 1),
	"VXORPS": exclusiveOr, "VXORPD": exclusiveOr, "VPXOR": exclusiveOr,
	"VANDNPS": andNot, "VANDNPD": andNot, "VPANDN": andNot,

	"VPADDB": binary3(add, 1), "VPADDW": binary3(add, 2), "VPADDD": binary3(add, 4), "VPADDQ": binary3(add, 8),
	"VPSUBB": binary3(sub, 1), "VPSUBW": binary3(sub, 2), "VPSUBD": binary3(sub, 4), "VPSUBQ": binary3(sub, 8),
	"VPADDSW": binary3(sqadd, 2), "VPMULLW": binary3(mul, 2), "VPMULLD": binary3(mul, 4),
	"VPMAXSB": binary3(smax, 1), "VPMAXSW": binary3(smax, 2), "VPMAXSD": binary3(smax, 4), "VPMAXUB": binary3(umax, 1),
	"VPMINSB": binary3(smin, 1), "VPMINSW": binary3(smin, 2), "VPMINSD": binary3(smin, 4), "VPMINUB": binary3(umin, 1),
	"VPCMPEQB": binary3(cmeq, 1), "VPCMPEQW": binary3(cmeq, 2), "VPCMPEQD": binary3(cmeq, 4),
	"VPCMPEQQ": binary3(cmeq, 8), "VPCMPGTB": binary3(cmgt, 1), "VPCMPGTW": binary3(cmgt, 2),
	"VPCMPGTD": binary3(cmgt, 4), "VPCMPGTQ": binary3(cmgt, 8),
	"VPABSW": unary(abs, 2), "VCVTDQ2PS": unary(scvtf, 4),
	"VSQRTPS": unary(fsqrt, 4), "VSQRTPD": unary(fsqrt, 8),
	"VROUNDPS": rounding(4), "VROUNDPD": rounding(8),
	"VCMPPS": comparison(4), "VCMPPD": comparison(8),
	"VBLENDVPS": blend, "VBLENDVPD": blend, "VPBLENDVB": blend,

	"VPSLLW": shift("shl", 2), "VPSLLD": shift("shl", 4), "VPSLLQ": shift("shl", 8),
	"VPSRLW": shift("ushr", 2), "VPSRLD": shift("ushr", 4), "VPSRLQ": shift("ushr", 8),
	"VPSRAW": shift("sshr", 2), "VPSRAD": shift("sshr", 4),

	"VUNPCKLPS": binary3(zip1, 4), "VUNPCKHPS": binary3(zip2, 4), "VUNPCKLPD": binary3(zip1, 8),
	"VUNPCKHPD": binary3(zip2, 8), "VPUNPCKLDQ": binary3(zip1, 4), "VPUNPCKHDQ": binary3(zip2, 4),
	"VPUNPCKLQDQ": binary3(zip1, 8), "VPUNPCKHQDQ": binary3(zip2, 8),
	"VPACKSSDW": pack(sqxtn, 2), "VPACKSSWB": pack(sqxtn, 1), "VPACKUSDW": pack(sqxtun, 2),
	"VPACKUSWB": pack(sqxtun, 1),
	"VPSHUFB":   shuffleBytes, "VSHUFPS": shuffleFloats, "VPSHUFD": shuffleWords, "VPERMD": permuteWords,
	"VPERMQ": permuteLongs, "VPERM2F128": permuteHalves, "VPERM2I128": permuteHalves,
	"VEXTRACTF128": extractHalf, "VEXTRACTI128": extractHalf, "VINSERTF128": insertHalf,
	"VMOVSHDUP": func(c *Code, ops []operand.Op) {
		x := c.read(ops[0], 1)
		c.write(ops[1], c.three(trn2, 4, x[0], x[0]))
	},

	"VCVTPS2PD": widening(fcvtl, 4, 16), "VCVTPH2PS": widening(fcvtl, 2, 16), "VPMOVZXBW": widening(ushll, 1, 16),
	"VPMOVZXWD": widening(ushll, 2, 16), "VPMOVSXWD": widening(sshll, 2, 16), "VPMOVZXBD": bytesToWords,
	"VCVTPD2PSY": narrowing(fcvtn, 4, 0), "VCVTPS2PH": narrowing(fcvtn, 2, 1),

	"VMOVUPS": moveVector, "VMOVUPD": moveVector, "VMOVDQU": moveVector, "VMOVDQA": moveVector, "VMOVNTDQ": storeAround,
	"VBROADCASTSS": spread(4), "VBROADCASTSD": spread(8), "VPBROADCASTD": spread(4), "VPBROADCASTQ": spread(8),
	"VMOVD": moveLane(4), "VMOVQ": moveLane(8), "VMOVSD": moveLane(8), "MOVSS": moveLane(4), "MOVSD": moveLane(8),
	"VPEXTRQ": extractLane(8), "VPEXTRW": extractLane(2), "VPEXTRB": extractLane(1),
}

// binary3 returns the translation of an instruction with two sources that works lane by lane,
// or within each 128 bits. size is the size of a lane in bytes.
func binary3(k kind, size int) translation {
	return func(c *Code, ops []operand.Op) {
		if k == cmeq && isSame(ops[0], ops[1]) {
			ones := c.ones()
			c.write(ops[2], []Value{ones, ones}[:count(ops[2])]...)
			return
		}
		n := count(ops[2])
		c.each(ops, n, func(second, first Value) Value { return c.three(k, size, first, second) })
	}
}

// each writes do of each of the n halves of two operands, the second and the first source, to
// ops[2].
func (c *Code) each(ops []operand.Op, n int, do func(second, first Value) Value) {
	second, first := c.read(ops[0], n), c.read(ops[1], n)
	made := make([]Value, n)
	for i := range made {
		made[i] = do(second[i], first[i])
	}
	c.write(ops[2], made...)
}

func exclusiveOr(c *Code, ops []operand.Op) {
	if isSame(ops[0], ops[1]) {
		zero := c.zero()
		c.write(ops[2], []Value{zero, zero}[:count(ops[2])]...)
		return
	}
	binary3(eor, 1)(c, ops)
}

func andNot(c *Code, ops []operand.Op) {
	c.each(ops, count(ops[2]), func(second, first Value) Value { return c.three(bic, 1, second, first) })
}

// extreme returns the translation of the maximum or minimum of amd64, which is the second
// source unless the first one is larger or smaller.
func extreme(size int, largest bool) translation {
	return func(c *Code, ops []operand.Op) {
		if k := c.extremeKind(ops[0], ops[1], largest); k.name != "" {
			c.each(ops, count(ops[2]), func(second, first Value) Value { return c.three(k, size, first, second) })
			return
		}
		c.each(ops, count(ops[2]), func(second, first Value) Value {
			greater, less := first, second
			if !largest {
				greater, less = second, first
			}
			return c.chosen(c.three(fcmgt, size, greater, less), first, second)
		})
	}
}

// extremeKind returns the instruction that behaves as on amd64 if one of the sources is a
// constant, and so cannot be NaN: the maximum or minimum is NaN if the second source is, and
// the second source if the first is NaN. The zeros of both signs may be exchanged. If neither
// is a constant, it returns the zero kind.
func (c *Code) extremeKind(second, first operand.Op, largest bool) kind {
	m, ok := second.(operand.Mem)
	switch {
	case (ok && isStatic(m) || c.holdsConstant(second)) && largest:
		return fmaxnm
	case ok && isStatic(m) || c.holdsConstant(second):
		return fminnm
	case c.holdsConstant(first) && largest:
		return fmax
	case c.holdsConstant(first):
		return fmin
	}
	return kind{}
}

// holdsConstant reports whether op is a register that holds a constant.
func (c *Code) holdsConstant(op operand.Op) bool {
	r, ok := op.(reg.Register)
	return ok && (c.steady[r.ID()] || c.fixed[r.ID()] != nil)
}

// Extreme emits the maximum or minimum of each lane, of size bytes, of a and b, which is NaN if
// one is, in to.
func (c *Code) Extreme(size int, largest bool, a, b, to reg.Register) {
	k := fmin
	if largest {
		k = fmax
	}
	binary3(k, size)(c, []operand.Op{a, b, to})
}

func fused231(k kind, size int) translation {
	return func(c *Code, ops []operand.Op) {
		n := count(ops[2])
		a, b, sum := c.read(ops[0], n), c.read(ops[1], n), c.read(ops[2], n)
		made := make([]Value, n)
		for i := range made {
			made[i] = c.fused(k, size, sum[i], b[i], a[i])
		}
		c.write(ops[2], made...)
	}
}

// fused213 returns the translation of the product of the last two operands plus the first one.
func fused213(size int) translation {
	return func(c *Code, ops []operand.Op) {
		n := count(ops[2])
		made := make([]Value, n)
		b, a := c.read(ops[1], n), c.read(ops[2], n)
		m, isMemory := ops[0].(operand.Mem)
		var sum []Value
		if !isMemory {
			sum = c.read(ops[0], n)
		}
		for i := range made {
			if isMemory { // the instruction overwrites the sum, so each half has its own
				made[i] = c.constantOf(m, i)
				c.into(fmla, size, made[i], a[i], b[i])
			} else {
				made[i] = c.fused(fmla, size, sum[i], a[i], b[i])
			}
		}
		c.write(ops[2], made...)
	}
}

func unary(k kind, size int) translation {
	return func(c *Code, ops []operand.Op) {
		n := count(ops[1])
		made := make([]Value, n)
		for i, x := range c.read(ops[0], n) {
			made[i] = c.two(k, size, x)
		}
		c.write(ops[1], made...)
	}
}

// rounding returns the translation of rounding, for lanes of size bytes, with the mode of the
// first operand: to nearest, down, up, to zero.
func rounding(size int) translation {
	return func(c *Code, ops []operand.Op) {
		k := []kind{frintn, frintm, frintp, frintz}[immediate(ops[0])]
		unary(k, size)(c, ops[1:])
	}
}

// comparison returns the translation of the comparison of the second source with the first by a
// predicate.
func comparison(size int) translation {
	return func(c *Code, ops []operand.Op) {
		predicate := immediate(ops[0])
		same := isSame(ops[1], ops[2])
		c.each(ops[1:], count(ops[3]), func(b, a Value) Value { return c.compare(predicate, size, a, b, same) })
	}
}

// compare emits the mask of the lanes, of size bytes, where a and b have the relation of a
// predicate of amd64, and returns it. same must be true if a is b. It panics for an unknown
// predicate.
func (c *Code) compare(predicate, size int, a, b Value, same bool) Value {
	switch predicate {
	case 0x00: // equal
		return c.three(fcmeq, size, a, b)
	case 0x04: // not equal, or unordered
		return c.two(not, 1, c.three(fcmeq, size, a, b))
	case 0x03: // unordered
		ordered := c.three(fcmeq, size, a, a)
		if !same {
			ordered = c.three(and, 1, ordered, c.three(fcmeq, size, b, b))
		}
		return c.two(not, 1, ordered)
	case 0x11: // less
		return c.three(fcmgt, size, b, a)
	case 0x12: // less or equal
		return c.three(fcmge, size, b, a)
	case 0x1e: // greater
		return c.three(fcmgt, size, a, b)
	case 0x16: // not less or equal
		return c.two(not, 1, c.three(fcmge, size, b, a))
	case 0x19: // not greater or equal
		return c.two(not, 1, c.three(fcmge, size, a, b))
	}
	panic(fmt.Sprintf("neon: comparison with predicate %#x: want a known one", predicate))
}

// blend translates a choice by a mask of whole lanes.
func blend(c *Code, ops []operand.Op) {
	n := count(ops[3])
	mask, set, clear := c.read(ops[0], n), c.read(ops[1], n), c.read(ops[2], n)
	made := make([]Value, n)
	for i := range made {
		made[i] = c.chosen(mask[i], set[i], clear[i])
	}
	c.write(ops[3], made...)
}

func shift(name string, size int) translation {
	return func(c *Code, ops []operand.Op) {
		n := count(ops[2])
		made := make([]Value, n)
		for i, x := range c.read(ops[1], n) {
			made[i] = c.shifted(name, size, immediate(ops[0]), x)
		}
		c.write(ops[2], made...)
	}
}

// pack returns the translation of the conversion to lanes of half the size, of size bytes, with
// saturation.
func pack(k kind, size int) translation {
	return func(c *Code, ops []operand.Op) {
		c.each(ops, count(ops[2]), func(second, first Value) Value { return c.narrowed(k, size, first, second) })
	}
}

// shuffleBytes translates a shuffle. In the mask, bytes that do not clear a lane must be below 16.
func shuffleBytes(c *Code, ops []operand.Op) {
	n := count(ops[2])
	order, x := c.read(ops[0], n), c.read(ops[1], n)
	made := make([]Value, n)
	for i := range made {
		made[i] = c.three(tbl, 1, x[i], order[i])
	}
	c.write(ops[2], made...)
}

func shuffleFloats(c *Code, ops []operand.Op) {
	k, ok := map[int]kind{0x88: uzp1, 0xdd: uzp2}[immediate(ops[0])]
	if !ok {
		panic("neon: VSHUFPS " + ops[0].Asm() + ": want the even or the odd lanes")
	}
	binary3(k, 4)(c, ops[1:])
}

func shuffleWords(c *Code, ops []operand.Op) {
	x := c.read(ops[1], 1)[0]
	switch immediate(ops[0]) {
	case 0x4e:
		c.write(ops[2], c.rotated(x, x, 8))
	case 0xb1:
		c.write(ops[2], c.two(rev64, 4, x))
	default:
		panic("neon: VPSHUFD " + ops[0].Asm() + ": want an exchange of halves or of neighbours")
	}
}

// permuteWords translates a permutation of 32-bit lanes in one of the two orders that the
// generator uses. It panics for another one.
func permuteWords(c *Code, ops []operand.Op) {
	x, fixed := c.read(ops[0], 2), c.fixedLanes(ops[1])
	if fixed == nil {
		panic("neon: VPERMD: want an order that is a constant")
	}
	switch words(fixed) {
	case [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}:
		c.write(ops[2], c.three(zip1, 4, x[0], x[1]), c.three(zip2, 4, x[0], x[1]))
	case [8]uint32{7, 6, 5, 4, 3, 2, 1, 0}:
		low, high := c.two(rev64, 4, x[1]), c.two(rev64, 4, x[0])
		c.write(ops[2], c.rotated(low, low, 8), c.rotated(high, high, 8))
	default:
		panic(fmt.Sprintf("neon: VPERMD with order %v: want a known one", words(fixed)))
	}
}

func permuteLongs(c *Code, ops []operand.Op) {
	order := immediate(ops[0])
	x := c.read(ops[1], 2)
	c.write(ops[2], c.longs(x, order&3, order>>2&3), c.longs(x, order>>4&3, order>>6&3))
}

// longs emits a register with lanes i and j of the four 64-bit lanes of a pair of registers,
// and returns it. It may be one of the pair.
func (c *Code) longs(x []Value, i, j int) Value {
	a, b := x[i/2], x[j/2]
	switch {
	case i%2 == 0 && j == i+1:
		return a
	case i%2 == 0 && j%2 == 0:
		return c.three(zip1, 8, a, b)
	case i%2 == 1 && j%2 == 1:
		return c.three(zip2, 8, a, b)
	case i%2 == 1:
		return c.rotated(a, b, 8)
	}
	d := c.copied(b)
	c.putLane(8, d, 0, a, 0)
	return d
}

func permuteHalves(c *Code, ops []operand.Op) {
	order := immediate(ops[0])
	all := append(c.read(ops[2], 2), c.read(ops[1], 2)...)
	c.write(ops[3], all[order&3], all[order>>4&3])
}

func extractHalf(c *Code, ops []operand.Op) {
	c.write(ops[2], c.read(ops[1], 2)[immediate(ops[0])])
}

func insertHalf(c *Code, ops []operand.Op) {
	all := c.read(ops[2], 2)
	all[immediate(ops[0])] = c.read(ops[1], 1)[0]
	c.write(ops[3], all...)
}

// widening returns the translation of the conversion of bytes of memory, or of the lower half
// of a register, to lanes of twice the size. size is the size of a lane before.
func widening(k kind, size, bytes int) translation {
	return func(c *Code, ops []operand.Op) {
		var x Value
		if m, ok := ops[0].(operand.Mem); ok && count(ops[1]) == 1 {
			base, disp := c.address(m)
			x = c.Load(base, disp, bytes/2)
		} else {
			x = c.read(ops[0], 1)[0]
		}
		made := []Value{c.widened(k, size, false, x)}
		if count(ops[1]) == 2 {
			made = append(made, c.widened(k, size, true, x))
		}
		c.write(ops[1], made...)
	}
}

// bytesToWords translates the conversion of eight bytes to 32-bit numbers.
func bytesToWords(c *Code, ops []operand.Op) {
	base, disp := c.address(ops[0].(operand.Mem))
	x := c.widened(ushll, 1, false, c.Load(base, disp, 8))
	c.write(ops[1], c.widened(ushll, 2, false, x), c.widened(ushll, 2, true, x))
}

// narrowing returns the translation of the conversion to lanes of size bytes, half of their
// size before. skip is the number of operands before the source.
func narrowing(k kind, size, skip int) translation {
	return func(c *Code, ops []operand.Op) {
		x := c.read(ops[skip], 2)
		c.write(ops[skip+1], c.narrowed(k, size, x[0], x[1]))
	}
}

func moveVector(c *Code, ops []operand.Op) {
	from, to := ops[0], ops[1]
	n := 2
	if r, ok := to.(reg.Register); ok {
		n = count(r)
	} else {
		n = count(from)
	}
	if m, ok := from.(operand.Mem); ok && isStatic(m) && n == 2 { // the halves may change apart
		c.write(to, c.constantOf(m, 0), c.constantOf(m, 1))
		c.steady[to.(reg.Register).ID()] = true
		return
	}
	c.write(to, c.read(from, n)...)
}

// storeAround translates a store that should not fill the caches.
func storeAround(c *Code, ops []operand.Op) {
	v := c.read(ops[0], 2)
	base, disp := c.address(ops[1].(operand.Mem))
	base, disp = c.ensureAddressRange(base, disp)
	o := c.effect(fmt.Sprintf("stnp q@0, q@1, [x@2, #%d]", disp), v[0], v[1], base)
	o.word, o.shifts = 0xac000000|uint32(disp/16&0x7f)<<15, []uint{0, 10, 5}
}

// spread returns the translation of the copy of one number of size bytes to all lanes.
func spread(size int) translation {
	return func(c *Code, ops []operand.Op) {
		var v Value
		switch from := ops[0].(type) {
		case reg.Register:
			v = c.spreadLane(size, 0, c.Low(from))
		case operand.Mem:
			if isParameter(from) {
				v = c.spreadLane(size, 0, c.loadParameter(from, size))
			} else {
				base, disp := c.address(from)
				v = c.Spread(base, disp, size)
			}
		}
		c.write(ops[1], []Value{v, v}[:count(ops[1])]...)
	}
}

// loadParameter emits the load of a parameter of size bytes, 4 or 8, into the lowest lane of a
// new vector register, and returns it.
func (c *Code) loadParameter(m operand.Mem, size int) Value {
	v := c.Vector()
	name := map[int]string{4: "FMOVS ", 8: "FMOVD "}[size]
	c.set(name+parameter(m)+", F@0", v)
	return v
}

// moveLane returns the translation of moves of the lowest lane, of size bytes, to and from
// memory and general registers.
func moveLane(size int) translation {
	name := map[int]string{4: "FMOVS", 8: "FMOVD"}[size]
	return func(c *Code, ops []operand.Op) {
		switch from := ops[0].(type) {
		case operand.Mem:
			base, disp := c.address(from)
			c.write(ops[1], c.Load(base, disp, size))
		case reg.Register:
			if from.Kind() == reg.KindGP {
				v := c.Vector()
				c.set(name+" R@1, F@0", v, c.Register(from))
				c.write(ops[1], v)
				return
			}
			c.moveLaneFrom(name, size, c.Low(from), ops[1])
		}
	}
}

func (c *Code) moveLaneFrom(name string, size int, v Value, to operand.Op) {
	switch to := to.(type) {
	case reg.Register:
		c.set(name+" F@1, R@0", c.changed(to), v)
	case operand.Mem:
		if isParameter(to) {
			c.effect(name+" F@0, "+parameter(to), v)
			return
		}
		base, disp := c.address(to)
		c.Store(v, base, disp, size)
	}
}

// extractLane returns the translation of the store of one lane of size bytes.
func extractLane(size int) translation {
	return func(c *Code, ops []operand.Op) {
		base, disp := c.address(ops[2].(operand.Mem))
		c.storeLane(size, c.Low(ops[1].(reg.Register)), immediate(ops[0]), base, disp)
	}
}

// isSame reports whether two operands are one register.
func isSame(a, b operand.Op) bool {
	x, ok := a.(reg.Register)
	y, also := b.(reg.Register)
	return ok && also && x.ID() == y.ID()
}
