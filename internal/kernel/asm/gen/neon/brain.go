package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// RoundToBrain emits the store of a pair of registers of float32 numbers to memory as BFloat16,
// with the instruction of the extension BF16.
func (c *Code) RoundToBrain(from reg.Register, to operand.Mem) {
	base, disp := c.address(to)
	c.Store(c.narrowed(bfcvtn, 2, c.Low(from), c.High(from)), base, disp, 16)
}

// dotLane emits the addition to d of the products of pairs of BFloat16 numbers of a and the
// pair of b with the number lane. It is bfdot by element, of the extension BF16.
func (c *Code) dotLane(lane int, d, a, b Value) {
	word := uint32(0x4f40f000) | uint32(lane&1)<<21 | uint32(lane>>1)<<11
	text := fmt.Sprintf("bfdot v@0.4s, v@1.8h, v@2.2h[%d]", lane)
	c.encode(word, text, threeShifts, d, a, b).uses |= 1
}

// The block of a product of BFloat16 that fits into registers.
const (
	BrainRows    = 8
	BrainColumns = 8
)

// BrainBlock emits the loop that computes eight rows and columns of a product. rows must hold
// the addresses of eight rows of a, and pairs the address of the columns in a panel with a row
// stride of stride bytes; the loop advances them. groups must be the number of groups of four
// pairs, at least 1, and the loop counts it down to 0. The sums overwrite the memory at the
// address to, with a row stride of ldc bytes.
func (c *Code) BrainBlock(rows []reg.Register, pairs, groups, to, ldc reg.Register, stride int) {
	var sums [BrainRows][2]Value
	for i := range sums {
		sums[i] = [2]Value{c.zero(), c.zero()}
	}
	again, k, b := c.local("sum"), c.Register(groups), c.Register(pairs)
	c.Label(again)
	var a [BrainRows]Value
	for i, r := range rows {
		a[i] = c.Load(c.Register(r), 0, 16)
		c.set("ADD $16, R@1, R@0", c.Register(r), c.Register(r))
	}
	for lane := range 4 {
		low, high := c.LoadPair(b, stride*lane)
		for i := range rows {
			c.dotLane(lane, sums[i][0], low, a[i])
			c.dotLane(lane, sums[i][1], high, a[i])
		}
	}
	c.set(fmt.Sprintf("ADD $%d, R@1, R@0", 4*stride), b, b)
	c.set("SUBS $1, R@1, R@0", k, k).effect = true
	c.Branch("BNE", again)
	at := c.Register(to)
	for i, s := range sums {
		if i > 0 {
			next := c.General()
			c.set("ADD R@2, R@1, R@0", next, at, c.Register(ldc))
			at = next
		}
		c.StorePair(s[0], s[1], at, 0)
	}
}

// PairRows emits the store of sixteen elements of two bytes at upper and at lower alternately,
// beginning with upper, at to. The arguments are registers with addresses.
func (c *Code) PairRows(upper, lower, to reg.Register) {
	a, b := c.LoadPair(c.Register(upper), 0)
	d, e := c.LoadPair(c.Register(lower), 0)
	for i, x := range [][2]Value{{a, d}, {b, e}} {
		c.StorePair(c.three(zip1, 2, x[0], x[1]), c.three(zip2, 2, x[0], x[1]), c.Register(to), 32*i)
	}
}
