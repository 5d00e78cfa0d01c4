package neon

import "github.com/mmcloughlin/avo/reg"

// spreadGeneral emits a new register with the general register v in both lanes of 64 bits, and
// returns it.
func (c *Code) spreadGeneral(v Value) Value {
	d := c.Vector()
	c.encode(0x4e080c00, "dup v@0.2d, x@1", twoShifts, d, v)
	return d
}

// Fractions emits the body of a loop over four numbers: it writes lo + width·part·(b >> shift)
// to to for the numbers b at bits. shift, width, part and lo are in all lanes, and shift is
// negative. The body does not advance the addresses.
func (c *Code) Fractions(bits, shift, width, part, lo, to reg.Register) {
	low, high := c.LoadPair(c.Register(bits), 0)
	var made [2]Value
	for i, x := range []Value{low, high} {
		x = c.three(ushl, 8, x, c.Low(shift))
		x = c.two(scvtf, 8, x)
		x = c.three(fmul, 8, x, c.Low(width))
		x = c.three(fmul, 8, x, c.Low(part))
		made[i] = c.three(fadd, 8, x, c.Low(lo))
	}
	c.StorePair(made[0], made[1], c.Register(to), 0)
}

// Negated emits the negative of a general register in all lanes of 64 bits of the lower half of
// to.
func (c *Code) Negated(from, to reg.Register) {
	negative := c.General()
	c.set("NEG R@1, R@0", negative, c.Register(from))
	all := c.spreadGeneral(negative)
	c.Move(c.Low(to), all)
}

// Points emits the body of a loop over two points: it writes those inside the disc behind the
// count of earlier ones, which it increases. part is 2⁻⁵² and one 1 in all lanes. to are the
// addresses of x, y and s. The body does not advance bits.
func (c *Code) Points(bits, part, one, count reg.Register, to [3]reg.Register) {
	a, b := c.LoadPair(c.Register(bits), 0)
	point := [3]Value{c.three(uzp1, 8, a, b), c.three(uzp2, 8, a, b)}
	for i, x := range point[:2] {
		x = c.two(scvtf, 8, c.shifted("ushr", 8, 11, x))
		x = c.three(fmul, 8, x, c.Low(part))
		point[i] = c.three(fsub, 8, x, c.Low(one))
	}
	point[2] = c.three(fadd, 8, c.three(fmul, 8, point[0], point[0]), c.three(fmul, 8, point[1], point[1]))
	inside := c.three(and, 1, c.three(fcmgt, 8, point[2], c.zero()), c.three(fcmgt, 8, c.Low(one), point[2]))
	n := c.Register(count)
	for lane := range 2 {
		for i, x := range point {
			if lane == 1 {
				x = c.rotated(x, x, 8)
			}
			c.effect("FMOVD F@0, (R@1)(R@2<<3)", x, c.Register(to[i]), n)
		}
		found := c.General()
		c.encode(0x4e003c00|laneField(8, lane)<<16, "mov x@0, v@1.d["+string(rune('0'+lane))+"]", twoShifts,
			found, inside)
		c.set("SUB R@2, R@1, R@0", n, n, found) // the mask is -1
	}
}

// Pairs emits the body of a loop over two points: it writes mean + std·x·factor and mean +
// std·y·factor alternately to to. mean and std are in all lanes. The body does not advance the
// addresses.
func (c *Code) Pairs(mean, std, x, y, factor, to reg.Register) {
	f := c.Load(c.Register(factor), 0, 16)
	var made [2]Value
	for i, from := range []reg.Register{x, y} {
		v := c.three(fmul, 8, c.Load(c.Register(from), 0, 16), f)
		v = c.three(fmul, 8, v, c.Low(std))
		made[i] = c.three(fadd, 8, v, c.Low(mean))
	}
	c.StorePair(c.three(zip1, 8, made[0], made[1]), c.three(zip2, 8, made[0], made[1]), c.Register(to), 0)
}

// LongsFromFloats emits the conversion of eight float32 numbers at x to int64 numbers at y,
// towards 0. A number out of range becomes the nearest int64, as in Go on arm64.
func (c *Code) LongsFromFloats(x, y reg.Register) {
	low, high := c.LoadPair(c.Register(x), 0)
	for i, v := range []Value{low, high} {
		a, b := c.widened(fcvtl, 4, false, v), c.widened(fcvtl, 4, true, v)
		c.StorePair(c.two(fcvtzs, 8, a), c.two(fcvtzs, 8, b), c.Register(y), 32*i)
	}
}

// FloatsFromLongs emits the conversion of eight int64 numbers at x to float32 numbers at y. It
// converts one at a time, because no vector instruction rounds only once.
func (c *Code) FloatsFromLongs(x, y reg.Register) {
	for i := range 8 {
		v, f := c.General(), c.Vector()
		base := c.Register(x)
		c.access("MOVD @m, R@0", base, 1, 8*i, 8, []Value{v, base}, 1, 0)
		c.set("SCVTFS R@1, F@0", f, v)
		c.Store(f, c.Register(y), 4*i, 4)
	}
}
