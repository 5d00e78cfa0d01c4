package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// element is a number type that can be compared, with the instructions for it. Those that the
// type does not need are nil.
type element struct {
	name    string
	size    int
	equal   instruction // equality of integers
	greater instruction // greater-than of signed integers
	least   instruction // minimum of unsigned integers
	ordered instruction // comparison of floats with a predicate
}

// elements must be in the order of the tables of package kernel.
var elements = []element{
	{name: "Uint8", size: 1, equal: VPCMPEQB, least: VPMINUB},
	{name: "Int8", size: 1, equal: VPCMPEQB, greater: VPCMPGTB},
	{name: "Int16", size: 2, equal: VPCMPEQW, greater: VPCMPGTW},
	{name: "Int32", size: 4, equal: VPCMPEQD, greater: VPCMPGTD},
	{name: "Int64", size: 8, equal: VPCMPEQQ, greater: VPCMPGTQ},
	{name: "Float32", size: 4, ordered: VCMPPS},
	{name: "Float64", size: 8, ordered: VCMPPD},
}

// comparison is a relation of two numbers. If one is NaN, only notEqual is true.
type comparison int

const (
	isEqual comparison = iota
	notEqual
	isLess
	notGreater
)

var (
	comparisonNames = []string{"Equal", "NotEqual", "Less", "LessOrEqual"}
	comparisonTexts = []string{"equals", "differs from", "is less than", "is at most"}
)

// writeComparisons emits the comparisons, which produce bytes of 1 and 0. They are limited by
// memory bandwidth, so AVX2 registers suffice.
func writeComparisons([]vector) {
	for _, e := range elements {
		for c := range comparisonNames {
			e.compare(comparison(c))
		}
	}
}

// compare emits the function for the comparison c of elements e. Each iteration compares 32
// elements.
func (e element) compare(c comparison) {
	pixels(comparisonNames[c]+e.name+"AVX2", "n int, x, y, z *byte",
		"writes 1 to z where x "+comparisonTexts[c]+" y, and 0 elsewhere. n must be a multiple of 32.")
	n, x, y, z := pointer("n"), pointer("x"), pointer("y"), pointer("z")
	ones, order := YMM(), YMM()
	VMOVDQU(words("Ones", 0x01010101), ones)
	if e.size >= 4 {
		VMOVDQU(words("Narrowed", 0, 4, 1, 5, 2, 6, 3, 7), order)
	}
	loop(n, 32, func() {
		var masks []reg.VecVirtual
		no := false // the masks are inverted
		for i := range e.size {
			var m reg.VecVirtual
			m, no = e.mask(c, at(x, 32*i), at(y, 32*i))
			masks = append(masks, m)
		}
		m := e.narrow(masks, order)
		if no {
			VPANDN(ones, m, m)
		} else {
			VPAND(ones, m, m)
		}
		VMOVDQU(m, at(z, 0))
		ADDQ(I32(int32(32*e.size)), x)
		ADDQ(I32(int32(32*e.size)), y)
		ADDQ(Imm(32), z)
	})
}

// mask emits the comparison of one register of elements at x and y, and returns a mask with all
// bits set in the elements that satisfy c. If not is true, the mask is inverted.
func (e element) mask(c comparison, x, y Mem) (m reg.VecVirtual, not bool) {
	m = YMM()
	first, second := x, y
	if e.greater != nil && c == isLess || e.least != nil && c == isLess {
		first, second = y, x // x < y is y > x, or not y ≤ x
	}
	VMOVDQU(first, m)
	switch {
	case e.ordered != nil:
		e.ordered(U8([]uint8{equal, notEqualOrNone, below, atMost}[c]), second, m, m)
		return m, false
	case c == isEqual, c == notEqual:
		e.equal(second, m, m)
		return m, c == notEqual
	case e.greater != nil:
		e.greater(second, m, m)
		return m, c == notGreater
	default: // x ≤ y if min(x, y) == x
		low := YMM()
		e.least(second, m, low)
		e.equal(low, m, m)
		return m, c == isLess
	}
}

// narrow emits the packing of the masks of 32 elements into bytes, and returns the register.
// masks has a register for each byte of an element; narrow overwrites them. order is the
// permutation of 32-bit lanes for elements of 4 and 8 bytes. The pack instructions work within
// 128-bit lanes, so their results must be permuted.
func (e element) narrow(masks []reg.VecVirtual, order reg.VecVirtual) reg.VecVirtual {
	halves := func(m reg.VecVirtual) { VPERMQ(Imm(0xd8), m, m) }
	switch e.size {
	case 8:
		for i := range 4 {
			m := masks[2*i]
			VSHUFPS(Imm(0x88), masks[2*i+1], m, m)
			halves(m)
			masks[i] = m
		}
		fallthrough
	case 4:
		VPACKSSDW(masks[1], masks[0], masks[0])
		VPACKSSDW(masks[3], masks[2], masks[2])
		VPACKSSWB(masks[2], masks[0], masks[0])
		VPERMD(masks[0], order, masks[0])
	case 2:
		VPACKSSWB(masks[1], masks[0], masks[0])
		halves(masks[0])
	}
	return masks[0]
}
