package neon

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// LoadFirst emits the load of the first n numbers of size bytes, 4 or 8, into a pair of
// registers, and clears the other lanes. n is a register, and must not exceed the number of
// lanes of a pair. The code only reads these numbers.
func (c *Code) LoadFirst(size int, from operand.Mem, n, to reg.Register) {
	base, disp := c.address(from)
	low, high := c.loadFirst(size, base, disp, c.Register(n))
	c.Move(c.Low(to), low)
	c.Move(c.High(to), high)
}

func (c *Code) loadFirst(size int, base Value, disp int, n Value) (low, high Value) {
	low, high = c.zero(), c.zero()
	c.parts(size, n, func() {
		a, b := c.LoadPair(base, disp)
		c.Move(low, a)
		c.Move(high, b)
	}, func() { c.LoadTo(low, base, disp, 16) }, func(upper bool) {
		v, at := low, disp
		if upper {
			v, at = high, disp+16
		}
		c.loadTail(size, v, base, at, n)
	})
	return low, high
}

// StoreFirst emits the store of the first n numbers, of size bytes, of a pair of registers. n
// is a register, and must not exceed the number of lanes of a pair. The code only writes these
// numbers.
func (c *Code) StoreFirst(size int, from reg.Register, to operand.Mem, n reg.Register) {
	base, disp := c.address(to)
	c.storeFirst(size, c.Low(from), c.High(from), base, disp, c.Register(n))
}

func (c *Code) storeFirst(size int, low, high, base Value, disp int, n Value) {
	c.parts(size, n, func() { c.StorePair(low, high, base, disp) }, func() { c.Store(low, base, disp, 16) },
		func(upper bool) {
			v, at := low, disp
			if upper {
				v, at = high, disp+16
			}
			c.storeTail(size, v, base, at, n)
		})
}

// parts emits the distinction by the bits of n: all lanes, a whole register and a tail in the
// upper register, or a tail in the lower one. all, lower and tail must emit the code for these
// parts.
func (c *Code) parts(size int, n Value, all, lower func(), tail func(upper bool)) {
	bit := map[int]int{4: 3, 8: 2}[size] // the number of lanes of a pair is 1 << bit
	some, few, end := c.local("some"), c.local("few"), c.local("end")
	c.Branch(fmt.Sprintf("TBZ $%d, R@0", bit), some, n)
	all()
	c.Branch("B", end)
	c.Label(some)
	c.Branch(fmt.Sprintf("TBZ $%d, R@0", bit-1), few, n)
	lower()
	tail(true)
	c.Branch("B", end)
	c.Label(few)
	tail(false)
	c.Label(end)
}

// loadTail emits the load of the numbers, of size bytes, that the lowest bits of n count, fewer
// than a register has lanes, into v. v must be zero before; its other lanes stay zero.
func (c *Code) loadTail(size int, v, base Value, disp int, n Value) {
	end := c.local("end")
	if size == 8 {
		c.Branch("TBZ $0, R@0", end, n)
		c.LoadTo(v, base, disp, 8)
		c.Label(end)
		return
	}
	one := c.local("one")
	c.Branch("TBZ $1, R@0", one, n)
	c.LoadTo(v, base, disp, 8)
	c.Branch("TBZ $0, R@0", end, n)
	c.loadLane(4, v, 2, base, disp+8)
	c.Branch("B", end)
	c.Label(one)
	c.Branch("TBZ $0, R@0", end, n)
	c.LoadTo(v, base, disp, 4)
	c.Label(end)
}

func (c *Code) storeTail(size int, v, base Value, disp int, n Value) {
	end := c.local("end")
	if size == 8 {
		c.Branch("TBZ $0, R@0", end, n)
		c.Store(v, base, disp, 8)
		c.Label(end)
		return
	}
	one := c.local("one")
	c.Branch("TBZ $1, R@0", one, n)
	c.Store(v, base, disp, 8)
	c.Branch("TBZ $0, R@0", end, n)
	c.storeLane(4, v, 2, base, disp+8)
	c.Branch("B", end)
	c.Label(one)
	c.Branch("TBZ $0, R@0", end, n)
	c.Store(v, base, disp, 4)
	c.Label(end)
}
