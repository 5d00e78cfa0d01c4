package neon

import (
	"fmt"
	"strings"
)

// kind is an instruction on vectors: its name and its encoding for the smallest lanes.
type kind struct {
	name string
	word uint32
}

// The instructions with three registers, by the Arm Architecture Reference Manual for A-profile,
// C7.2. Those on floats are for lanes of four bytes.
var (
	fadd   = kind{"fadd", 0x4e20d400}
	fsub   = kind{"fsub", 0x4ea0d400}
	fmul   = kind{"fmul", 0x6e20dc00}
	fdiv   = kind{"fdiv", 0x6e20fc00}
	fmla   = kind{"fmla", 0x4e20cc00}
	fmls   = kind{"fmls", 0x4ea0cc00}
	fmax   = kind{"fmax", 0x4e20f400}
	fmin   = kind{"fmin", 0x4ea0f400}
	fmaxnm = kind{"fmaxnm", 0x4e20c400}
	fminnm = kind{"fminnm", 0x4ea0c400}
	fcmeq  = kind{"fcmeq", 0x4e20e400}
	fcmge  = kind{"fcmge", 0x6e20e400}
	fcmgt  = kind{"fcmgt", 0x6ea0e400}

	fsqrt  = kind{"fsqrt", 0x6ea1f800}
	fabs   = kind{"fabs", 0x4ea0f800}
	fneg   = kind{"fneg", 0x6ea0f800}
	frintn = kind{"frintn", 0x4e218800}
	frintm = kind{"frintm", 0x4e219800}
	frintp = kind{"frintp", 0x4ea18800}
	frintz = kind{"frintz", 0x4ea19800}
	scvtf  = kind{"scvtf", 0x4e21d800}
	fcvtzs = kind{"fcvtzs", 0x4ea1b800}

	and = kind{"and", 0x4e201c00}
	bic = kind{"bic", 0x4e601c00}
	orr = kind{"orr", 0x4ea01c00}
	orn = kind{"orn", 0x4ee01c00}
	eor = kind{"eor", 0x6e201c00}
	bsl = kind{"bsl", 0x6e601c00}
	not = kind{"not", 0x6e205800}

	add   = kind{"add", 0x4e208400}
	sub   = kind{"sub", 0x6e208400}
	mul   = kind{"mul", 0x4e209c00}
	sqadd = kind{"sqadd", 0x4e200c00}
	cmeq  = kind{"cmeq", 0x6e208c00}
	cmgt  = kind{"cmgt", 0x4e203400}
	cmhs  = kind{"cmhs", 0x6e203c00}
	cmhi  = kind{"cmhi", 0x6e203400}
	smax  = kind{"smax", 0x4e206400}
	smin  = kind{"smin", 0x4e206c00}
	umax  = kind{"umax", 0x6e206400}
	umin  = kind{"umin", 0x6e206c00}
	abs   = kind{"abs", 0x4e20b800}
	ushl  = kind{"ushl", 0x6e204400}
	rev64 = kind{"rev64", 0x4e200800}
	zip1  = kind{"zip1", 0x4e003800}
	zip2  = kind{"zip2", 0x4e007800}
	uzp1  = kind{"uzp1", 0x4e001800}
	uzp2  = kind{"uzp2", 0x4e005800}
	trn1  = kind{"trn1", 0x4e002800}
	trn2  = kind{"trn2", 0x4e006800}
	tbl   = kind{"tbl", 0x4e000000}

	sqxtn  = kind{"sqxtn", 0x0e214800}
	sqxtun = kind{"sqxtun", 0x2e212800}
	xtn    = kind{"xtn", 0x0e212800}
	fcvtl  = kind{"fcvtl", 0x0e217800}
	fcvtn  = kind{"fcvtn", 0x0e216800}
	bfcvtn = kind{"bfcvtn", 0x0ea16800}
	ushll  = kind{"ushll", 0x2f00a400}
	sshll  = kind{"sshll", 0x0f00a400}
)

// whole names the registers by the size of a lane in bytes, and halves their lower halves.
var (
	whole  = map[int]string{1: "16b", 2: "8h", 4: "4s", 8: "2d"}
	halves = map[int]string{1: "8b", 2: "4h", 4: "2s"}
)

// sizeBits returns the bits 22 and 23 of an instruction on integers.
func sizeBits(size int) uint32 {
	return map[int]uint32{1: 0, 2: 1, 4: 2, 8: 3}[size] << 22
}

// floatBit returns bit 22 of an instruction on floats.
func floatBit(size int) uint32 { return uint32(size/8) << 22 }

// isFloat reports whether k is an instruction on floats.
func (k kind) isFloat() bool { return k.name[0] == 'f' || k == scvtf }

// isBitwise reports whether k does not depend on the size of a lane.
func (k kind) isBitwise() bool {
	return strings.Contains(" and bic orr orn eor bsl not tbl ", " "+k.name+" ")
}

// sized returns the encoding of k for lanes of the given size in bytes, and the suffix of the
// names of its registers, such as 4s.
func (k kind) sized(size int) (uint32, string) {
	switch {
	case k.isBitwise():
		return k.word, whole[1]
	case k.isFloat():
		return k.word | floatBit(size), whole[size]
	}
	return k.word | sizeBits(size), whole[size]
}

// encode adds an instruction that is written as a word, without its registers, and returns it.
// text is its comment, with @i for the register args[i], and shifts are the positions of the
// registers in the word. It is taken to write args[0] and to read the others.
func (c *Code) encode(word uint32, text string, shifts []uint, args ...Value) *operation {
	o := c.set(text, args...)
	o.word, o.shifts = word, shifts
	return o
}

var (
	threeShifts = []uint{0, 5, 16}
	twoShifts   = []uint{0, 5}
)

// three emits k(a, b) in a new register for lanes of size bytes, and returns it.
func (c *Code) three(k kind, size int, a, b Value) Value {
	d := c.Vector()
	word, lanes := k.sized(size)
	if k == tbl {
		c.encode(word, "tbl v@0.16b, {v@1.16b}, v@2.16b", threeShifts, d, a, b)
		return d
	}
	c.encode(word, fmt.Sprintf("%s v@0.%s, v@1.%[2]s, v@2.%[2]s", k.name, lanes), threeShifts, d, a, b)
	return d
}

// into emits k(d, a, b) in d, for instructions that read d, and lanes of size bytes.
func (c *Code) into(k kind, size int, d, a, b Value) {
	word, lanes := k.sized(size)
	o := c.encode(word, fmt.Sprintf("%s v@0.%s, v@1.%[2]s, v@2.%[2]s", k.name, lanes), threeShifts, d, a, b)
	o.uses |= 1
}

// two emits k(a) in a new register for lanes of size bytes, and returns it.
func (c *Code) two(k kind, size int, a Value) Value {
	d := c.Vector()
	word, lanes := k.sized(size)
	c.encode(word, fmt.Sprintf("%s v@0.%s, v@1.%[2]s", k.name, lanes), twoShifts, d, a)
	return d
}

// copied emits a new register with the contents of v, and returns it.
func (c *Code) copied(v Value) Value {
	d := c.Vector()
	c.Move(d, v)
	return d
}

// chosen emits a new register with the bits of a where mask is set and the bits of b elsewhere,
// and returns it.
func (c *Code) chosen(mask, a, b Value) Value {
	d := c.copied(mask)
	c.into(bsl, 1, d, a, b)
	return d
}

// fused emits sum + a·b, or sum - a·b if k is fmls, in a new register, and returns it.
func (c *Code) fused(k kind, size int, sum, a, b Value) Value {
	d := c.copied(sum)
	c.into(k, size, d, a, b)
	return d
}

// zero emits a new register of zeros, and returns it.
func (c *Code) zero() Value {
	d := c.Vector()
	c.encode(0x6f00e400, "movi v@0.2d, #0", twoShifts[:1], d)
	return d
}

// ones emits a new register with all bits set, and returns it.
func (c *Code) ones() Value {
	d := c.Vector()
	c.encode(0x4f07e7e0, "movi v@0.16b, #255", twoShifts[:1], d)
	return d
}

// shifted emits the shift of lanes of size bytes by n bits, and returns the result, which is a
// itself if n is 0. name is shl for left, ushr for right, or sshr for right with the sign.
func (c *Code) shifted(name string, size, n int, a Value) Value {
	if n == 0 {
		return a
	}
	d := c.Vector()
	field := 16*size - n
	if name == "shl" {
		field = 8*size + n
	}
	word := map[string]uint32{"shl": 0x4f005400, "ushr": 0x6f000400, "sshr": 0x4f000400}[name]
	c.encode(word|uint32(field)<<16, fmt.Sprintf("%s v@0.%s, v@1.%[2]s, #%d", name, whole[size], n), twoShifts, d, a)
	return d
}

// widened emits the conversion of the lower or the upper half of the lanes, of size bytes, to
// twice the size, and returns the new register. k must be ushll, sshll or fcvtl.
func (c *Code) widened(k kind, size int, upper bool, a Value) Value {
	d := c.Vector()
	word, suffix, from := k.word, "", halves[size]
	if upper {
		word, suffix, from = word|1<<30, "2", whole[size]
	}
	zero := ", #0"
	if k == fcvtl {
		word, zero = word|uint32(size/4)<<22, ""
	} else {
		word |= uint32(8*size) << 16
	}
	c.encode(word, fmt.Sprintf("%s%s v@0.%s, v@1.%s%s", k.name, suffix, whole[2*size], from, zero), twoShifts, d, a)
	return d
}

// narrowed emits the conversion of the lanes of two registers to half their size, to lanes of
// size bytes, and returns the new register. b may be none; the upper half of the result is then
// zero.
func (c *Code) narrowed(k kind, size int, a, b Value) Value {
	d := c.Vector()
	word := k.word
	switch k {
	case fcvtn:
		word |= uint32(size/4) << 22
	case bfcvtn:
	default:
		word |= sizeBits(size)
	}
	text := fmt.Sprintf("%s v@0.%s, v@1.%s", k.name, halves[size], whole[2*size])
	c.encode(word, text, twoShifts, d, a)
	if b != none {
		text = fmt.Sprintf("%s2 v@0.%s, v@1.%s", k.name, whole[size], whole[2*size])
		c.encode(word|1<<30, text, twoShifts, d, b).uses |= 1
	}
	return d
}

// rotated emits a new register with the upper bytes of a from n on, followed by the first n
// bytes of b, and returns it.
func (c *Code) rotated(a, b Value, n int) Value {
	d := c.Vector()
	c.encode(0x6e000000|uint32(n)<<11, fmt.Sprintf("ext v@0.16b, v@1.16b, v@2.16b, #%d", n), threeShifts, d, a, b)
	return d
}

// laneField returns the field of an instruction that selects a lane of size bytes.
func laneField(size, lane int) uint32 { return uint32(2*lane+1) * uint32(size) }

// spreadLane emits a new register with one lane of a, of size bytes, in all lanes, and returns
// it.
func (c *Code) spreadLane(size, lane int, a Value) Value {
	d := c.Vector()
	c.encode(0x4e000400|laneField(size, lane)<<16,
		fmt.Sprintf("dup v@0.%s, v@1.%s[%d]", whole[size], whole[size][len(whole[size])-1:], lane), twoShifts, d, a)
	return d
}

// putLane emits the copy of lane from of a to lane to of d, both of size bytes.
func (c *Code) putLane(size int, d Value, to int, a Value, from int) {
	letter := whole[size][len(whole[size])-1:]
	c.encode(0x6e000400|laneField(size, to)<<16|uint32(from*size)<<11,
		fmt.Sprintf("mov v@0.%s[%d], v@1.%[1]s[%d]", letter, to, from), twoShifts, d, a).uses |= 1
}

// fusedLane emits the addition to d of a times a lane of b, of size bytes, 4 or 8. It is fmla
// by element.
func (c *Code) fusedLane(size, lane int, d, a, b Value) {
	word, letter := uint32(0x4f801000)|uint32(lane&1)<<21|uint32(lane>>1)<<11, "s"
	if size == 8 {
		word, letter = 0x4fc01000|uint32(lane)<<11, "d"
	}
	c.encode(word, fmt.Sprintf("fmla v@0.%s, v@1.%[1]s, v@2.%s[%d]", whole[size], letter, lane), threeShifts, d, a,
		b).uses |= 1
}

// timesLane emits a times a lane of b, of size bytes, 4 or 8, in a new register, and returns
// it.
func (c *Code) timesLane(size, lane int, a, b Value) Value {
	d := c.Vector()
	word, letter := uint32(0x4f809000)|uint32(lane&1)<<21|uint32(lane>>1)<<11, "s"
	if size == 8 {
		word, letter = 0x4fc09000|uint32(lane)<<11, "d"
	}
	c.encode(word, fmt.Sprintf("fmul v@0.%s, v@1.%[1]s, v@2.%s[%d]", whole[size], letter, lane), threeShifts, d, a, b)
	return d
}

// loadLane emits the load of one lane of v, of size bytes, from an address, and storeLane emits
// the store of one. The address is base plus disp bytes.
func (c *Code) loadLane(size int, v Value, lane int, base Value, disp int) {
	letter := strings.ToUpper(whole[size][len(whole[size])-1:])
	at := c.offset(base, disp)
	c.set(fmt.Sprintf("VLD1 (R@1), V@0.%s[%d]", letter, lane), v, at).uses |= 1
}

func (c *Code) storeLane(size int, v Value, lane int, base Value, disp int) {
	letter := strings.ToUpper(whole[size][len(whole[size])-1:])
	at := c.offset(base, disp)
	c.effect(fmt.Sprintf("VST1 V@0.%s[%d], (R@1)", letter, lane), v, at)
}
